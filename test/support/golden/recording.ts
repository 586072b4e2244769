// The form of a recorded run: what Temporal held of it, and the log that it had.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LogRow } from '../../../src/ports/log.ts';

export interface Recording {
  readonly name: string;
  readonly runId: string;
  readonly translateVersion: number;
  /** Per segment: protobuf temporal.api.history.v1.History, base64. */
  readonly segments: readonly string[];
  readonly rows: readonly LogRow[];
}

export const RECORDED = fileURLToPath(new URL('../../histories/recorded/', import.meta.url));

export function recordings(): Recording[] {
  return readdirSync(RECORDED)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => JSON.parse(readFileSync(RECORDED + name, 'utf8')) as Recording);
}
