// What a fork reads (architecture §3.7, §6): its source, and the runs whose records it goes by. They are noted before the
// fork is accepted, and stay until it has ended.
import { mergedOverlay, recordsOf } from '../rules/overlay.ts';
import type { ForkOf, RunInput } from '../rules/run-input.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { logsBehind } from './recorded-logs.ts';

/**
 * Notes them for the run `runId`. Returns undefined where that is done; else nothing is noted, and these are the ids of the
 * runs that it would go by: one of them, the source, or the fork itself has expired. Throws HostError history_undecodable and
 * key_unavailable: a run that it would go by cannot be read.
 */
export async function holdSources(
  { stores }: { readonly stores: Pick<Stores, 'runs' | 'retention'> },
  source: RunRow,
  { runId, input: { fork } }: { readonly runId: string; readonly input: RunInput },
): Promise<readonly string[] | undefined> {
  const { retention, runs } = stores;
  const { tenant } = source;
  const others = fork ? await recordsFor(runs, tenant, fork) : [];
  const goesBy = others.map((other) => runs.ref(tenant, other));
  return (await retention.noteFork(source, runId, goesBy)) ? undefined : others;
}

/** Beside its source: the records that it goes by, and those behind them. */
async function recordsFor(runs: Stores['runs'], tenant: string, fork: ForkOf): Promise<string[]> {
  const [source, ...named] = recordsOf(fork);
  const others = new Set(named);
  const { recordedTools } = mergedOverlay(fork.inherited, fork.overlay);
  if (fork.mode === 'branch' && recordedTools)
    for await (const { row } of logsBehind(runs, tenant, recordedTools)) others.add(row.runId);
  if (source !== undefined) others.delete(source);
  return [...others];
}
