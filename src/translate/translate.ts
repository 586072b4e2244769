// Temporal history -> log entries (architecture §3.1). Each run is read with the version of the rules that it was
// started with; old versions stay in this folder as long as runs of theirs may be read.
import { HostError } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import type { HistoryEvent } from './payloads.ts';
import type { TranslatedRun, Translation } from './translation.ts';
import { translateV1 } from './v1.ts';

export { historyEventIdOf, type HistoryEvent } from './payloads.ts';
export type { LogEntry, PlacedDeltas, TranslatedRun, Translation } from './translation.ts';

type Version = (
  events: readonly HistoryEvent[],
  state: JsonValue,
  run: TranslatedRun,
) => Translation;

const VERSIONS: Readonly<Record<number, Version>> = { 1: translateV1 };

/**
 * Pure. `events` are whole batches of one segment, behind those that gave `state` (null for a run's first). Throws
 * HostError history_undecodable (a carrier or result that cannot be read, an unknown version) and internal_error (the
 * journal refers to what history does not hold): the run's projection stops there, nothing is skipped.
 */
export function translate(
  events: readonly HistoryEvent[],
  state: JsonValue,
  run: TranslatedRun,
): Translation {
  const version = VERSIONS[run.translateVersion];
  if (!version) {
    const reason = `translation version ${run.translateVersion} is not known to this release`;
    throw new HostError('history_undecodable', { reason });
  }
  return version(events, state, run);
}
