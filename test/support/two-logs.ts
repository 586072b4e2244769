// Two runs whose logs are rows in memory, for what holds them against each other.
import type { Head, LogRow } from '../../src/ports/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import { readRows } from '../../src/log/rows.ts';
import type { DiffDeps } from '../../src/runs/diff.ts';
import { runRow } from './log-parts.ts';

export const A = runRow('run-a');
export const B = runRow('run-b');

export function rowsOf({ runId }: RunRow, payloads: readonly string[], type = 'x.note'): LogRow[] {
  return payloads.map((payload, sequence) => ({
    ...{ runId, sequence, eventId: `${runId}-${sequence}`, key: `k${sequence}`, type, payload },
    ...{ nodeId: 'n', timestampMs: sequence },
  }));
}

/** Two logs that have ended; `head`: what else stands in that of a run. */
export function depsOf(
  a: readonly LogRow[],
  b: readonly LogRow[],
  head: (run: { readonly runId: string }) => Partial<Head> = () => ({}),
): DiffDeps {
  const of = (runId: string) => (runId === A.runId ? a : b);
  return {
    log: {
      fresh: async (run) => {
        const { runId } = run;
        const standing = { runId, nextSequence: of(runId).length, status: 'completed' };
        const whole = { ...standing, closed: true, snapshot: null, ...head(run) };
        return { head: whole as unknown as Head, stale: false };
      },
      rows: (run, query) => {
        const rows = of(run.runId);
        const read = async (_run: unknown, { after, limit }: { after: number; limit: number }) =>
          rows.slice(after + 1, after + 1 + limit);
        return readRows({ read }, run, query);
      },
    },
  };
}
