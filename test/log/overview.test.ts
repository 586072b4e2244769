// What lists cost where summaries are missing (architecture §3.3): behind an upgrade many ask at once.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fold } from '../../src/log/fold.ts';
import { createLog } from '../../src/log/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  batchAfter,
  entry,
  headOf,
  newId,
  newRun,
  runInput,
  startedRun,
} from '../contract/given.ts';
import { openAnyStores, ScriptedHistory, silentLogger } from '../support/log-parts.ts';

const RUNS = 7;
const ASKING = 5;

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

/** Without a summary, as a rebuild leaves a head. */
async function asks(tenant: string): Promise<void> {
  const input = runInput(newId('run'), tenant);
  const definition = { ...input.definition, settings: {} };
  const run = newRun({ runId: input.runId, tenant, input: { ...input, definition } });
  const runId = await startedRun(stores, run);
  const row = (key: string, type: string, payload: object) =>
    entry(runId, key, { type, nodeId: 'gate', payload: JSON.stringify(payload) });
  const rows = [
    row('s', 'node.suspended', { nodeId: 'gate', interruptId: runId, kind: 'approval', key: 'q' }),
    row('q', 'interrupt.requested', { kind: 'approval', key: 'q', data: {} }),
  ];
  const batch = batchAfter(await headOf(stores, runId), rows, { fold, status: 'waiting-approval' });
  await stores.log.append(batch);
}

it('who asks at the same time shares the making of missing summaries', async () => {
  const tenant = newId('tenant');
  for (let run = 0; run < RUNS; run++) await asks(tenant);
  const made: string[] = [];
  const counting: Stores = {
    ...stores,
    log: {
      ...stores.log,
      async summarize(run, at, summary) {
        made.push(run.runId);
        await stores.log.summarize(run, at, summary);
      },
    },
  };
  const history = new ScriptedHistory();
  const log = createLog({ stores: counting, history, logger: silentLogger, processId: 'p' });
  const pages = Array.from({ length: ASKING }, async () => [
    (await log.overview(tenant, { waiting: true, limit: 50 })).runs.length,
    (await log.waitingRuns(tenant, { limit: 1, countTo: 100 })).count,
  ]);
  expect(await Promise.all(pages)).toEqual(pages.map(() => [RUNS, RUNS]));
  expect(made.sort()).toEqual([...new Set(made)]);
  expect(made).toHaveLength(RUNS);
  log.close();
});
