// The log that a fork goes by (replay.md §Modes), as far as it was recorded when the fork was made.
import { HostError } from '../src/rules/errors.ts';
import type { RecordedLog } from '../src/rules/overlay.ts';
import type { LogRow } from '../src/ports/log.ts';
import type { ActivityPorts } from './ports.ts';

/** Rows read at once. */
const PAGE_ROWS = 1_000;

/**
 * All of them, or HostError replay_source_missing: of rows that are gone nobody concludes that nothing happened there.
 * service_unavailable while they are only being built anew.
 */
export async function* recordedRows(
  { stores }: Pick<ActivityPorts, 'stores'>,
  tenant: string,
  recorded: RecordedLog,
): AsyncGenerator<LogRow> {
  const run = stores.runs.ref(tenant, recorded.runId);
  const last = recorded.length - 1;
  for (let after = -1; after < last;) {
    const limit = Math.min(PAGE_ROWS, last - after);
    const rows = await stores.log.read(run, { after, limit });
    yield* rows;
    if (rows.length === 0) throw await missing(stores, tenant, recorded);
    after += rows.length;
  }
}

async function missing(
  { runs, log }: ActivityPorts['stores'],
  tenant: string,
  { runId }: RecordedLog,
): Promise<HostError> {
  const isThere = (await runs.find(tenant, runId)) !== undefined;
  if (isThere && !(await log.head(runs.ref(tenant, runId))))
    return new HostError('service_unavailable');
  const reason = isThere
    ? 'The log that the fork goes by is shorter than it was.'
    : 'The run whose record the fork goes by is not there any more.';
  return new HostError('replay_source_missing', { runId, reason });
}
