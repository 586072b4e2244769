// How much of a log is folded to tell what a run was at an event: no more than is named, and nothing is read beyond it.
import { expect, it } from 'vitest';
import type { Head, LogRow } from '../../src/ports/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import { MAX_FOLDED_ROWS, runAt } from '../../src/runs/at.ts';

it('behind its bound it is refused before a row is read', async () => {
  let reads = 0;
  const log = {
    fresh: () =>
      Promise.resolve({ head: { nextSequence: 10 * MAX_FOLDED_ROWS } as Head, stale: false }),
    rows: async function* (): AsyncGenerator<readonly LogRow[]> {
      reads++;
      yield* [];
    },
  };
  const refused = runAt({ log }, {} as RunRow, MAX_FOLDED_ROWS);
  await expect(refused).rejects.toMatchObject({ code: 'capability_not_provided' });
  expect(reads).toBe(0);
});
