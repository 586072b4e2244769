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
  return recordedIn<Recording>(RECORDED);
}

function recordedIn<T>(folder: string): T[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => JSON.parse(readFileSync(folder + name, 'utf8')) as T);
}

/** What Temporal held of a cohort: it is no run, and has no log. */
export interface CohortRecording {
  readonly name: string;
  readonly cohortId: string;
  /** As of a run. */
  readonly segments: readonly string[];
}

export const RECORDED_COHORTS = fileURLToPath(
  new URL('../../histories/recorded-cohorts/', import.meta.url),
);

export function cohortRecordings(): CohortRecording[] {
  return recordedIn<CohortRecording>(RECORDED_COHORTS);
}
