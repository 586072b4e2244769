// The digest of a log (architecture §10.1): a chain over its rows as they are stored, sealed or not, so that whoever kept its
// root can tell that no entry was changed, left out or added since, also when nobody can read what the entries say.
import { canonicalJson } from './json.ts';
import { sha256Hex } from './ids.ts';

/** A row as it is stored. */
export interface DigestedRow {
  readonly sequence: number;
  readonly eventId: string;
  readonly key: string;
  readonly type: string;
  readonly nodeId: string | null;
  readonly causationId: string | null;
  readonly causedBy: string | null;
  readonly payload: string;
  readonly timestampMs: number;
}

/** Before the first row. */
export const EMPTY_LOG_DIGEST = sha256Hex('openwop-temporal log');

/** Of the log up to the row, from that of the log before it. */
export function extendedDigest(before: string, row: DigestedRow): string {
  const { sequence, eventId, key, type, nodeId, causationId, causedBy, timestampMs } = row;
  const facts = [sequence, eventId, key, type, nodeId, causationId, causedBy, timestampMs];
  return sha256Hex(canonicalJson([before, ...facts, sha256Hex(row.payload)]));
}

/** Of several logs, in the order of their runs' ids. */
export function extendedRoots(
  before: string,
  {
    runId,
    events,
    root,
  }: { readonly runId: string; readonly events: number; readonly root: string },
): string {
  return sha256Hex(canonicalJson([before, runId, events, root]));
}
