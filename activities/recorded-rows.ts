// The log that a fork goes by (replay.md §Modes), as far as it was recorded when the fork was made.
import type { RecordedLog } from '../src/rules/overlay.ts';
import type { LogRow } from '../src/ports/log.ts';
import type { ActivityPorts } from './ports.ts';

/** Rows read at once. */
const PAGE_ROWS = 1_000;

export async function* recordedRows(
  { stores }: Pick<ActivityPorts, 'stores'>,
  tenant: string,
  { runId, length }: RecordedLog,
): AsyncGenerator<LogRow> {
  const run = stores.runs.ref(tenant, runId);
  for (let after = -1; after < length - 1;) {
    const limit = Math.min(PAGE_ROWS, length - 1 - after);
    const rows = await stores.log.read(run, { after, limit });
    yield* rows;
    if (rows.length === 0) return;
    after += rows.length;
  }
}
