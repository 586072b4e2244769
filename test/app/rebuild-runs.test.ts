// Runs that `npm run rebuild` is given by name (architecture §3.6): each has its turn.
import { expect, it } from 'vitest';
import { rebuildRuns } from '../../src/app/rebuild-runs.ts';
import { HostError } from '../../src/rules/errors.ts';
import { runRef } from '../support/run-ref.ts';

type RebuiltHost = Parameters<typeof rebuildRuns>[0];

// [I97]
it('a run that cannot be rebuilt is named, and keeps no other from its turn: whatever it throws', async () => {
  const faults = new Map<string, Error>([
    ['damaged', new SyntaxError('Unexpected end of JSON input')],
    ['lost', new HostError('history_missing')],
  ]);
  const host = {
    log: {
      rebuild: async ({ runId }: { readonly runId: string }) => {
        const fault = faults.get(runId);
        if (fault) throw fault;
        return { rows: [{}, {}] };
      },
    },
    stores: { runs: { locate: async (runId: string) => runRef(runId) } },
  } as unknown as RebuiltHost;
  const said: string[] = [];
  const refused = await rebuildRuns(host, ['damaged', 'lost', 'good'], (line) => said.push(line));
  expect(refused).toBe(2);
  expect(said).toEqual([
    'damaged: SyntaxError: Unexpected end of JSON input',
    expect.stringMatching(/^lost: /),
    'good: 2 events',
  ]);
});
