// What `npm run rebuild` does on a host: every run, or those named, each by itself (architecture §3.6).
import type { Log } from '../log/log.ts';
import type { Stores } from '../ports/stores.ts';
import { HostError } from '../rules/errors.ts';

interface RebuiltHost {
  readonly log: Pick<Log, 'rebuild' | 'rebuildAll'>;
  readonly stores: Pick<Stores, 'runs' | 'retention'>;
}

/** Returns how many runs could not be rebuilt; each is named with the reason, and stops none of the others. */
export async function rebuildRuns(
  { log, stores }: RebuiltHost,
  runIds: readonly string[],
  say: (line: string) => void,
): Promise<number> {
  if (runIds.length === 0) {
    const { rebuilt, refused } = await log.rebuildAll();
    for (const { runId, reason } of refused) say(`${runId}: ${reason}`);
    say(`${rebuilt} rebuilt, ${refused.length} refused`);
    return refused.length;
  }
  let refused = 0;
  for (const runId of runIds) {
    try {
      const run = await stores.runs.locate(runId);
      if (!run) throw await notThere(stores, runId);
      const { rows } = await log.rebuild(run);
      say(`${runId}: ${rows.length} events`);
    } catch (error) {
      refused++;
      say(`${runId}: ${String(error)}`);
    }
  }
  return refused;
}

async function notThere({ retention }: RebuiltHost['stores'], runId: string): Promise<HostError> {
  const atMs = await retention.expiredAt(runId);
  if (atMs === undefined) return new HostError('run_not_found', { runId });
  return new HostError('run_expired', { runId, expiredAt: new Date(atMs).toISOString() });
}
