// Rounds of expiry (architecture §3.7) where one run cannot expire: those behind it do not wait for it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createExpirer } from '../../src/log/expirer.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { member } from '../contract/retention.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { quietLogger } from '../support/quiet-logger.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

function expirerWith(expire: Stores['retention']['expire']) {
  return createExpirer({
    stores: { ...stores, retention: { ...stores.retention, expire } },
    histories: { remove: async () => undefined },
    engine: { ping: async () => undefined },
    ...{ logger: quietLogger, keptMs: 0, restMs: 0 },
  });
}

test('a run that cannot expire keeps none behind it from it, and is looked at again later', async () => {
  const runs: RunRef[] = [];
  for (let at = 0; at < 3; at++) runs.push(await member(stores));
  const [broken] = runs;
  const tries: string[] = [];
  const expirer = expirerWith(async (run, query) => {
    tries.push(run.runId);
    if (run.runId === broken?.runId) throw new Error('this row cannot be written');
    return stores.retention.expire(run, query);
  });
  await expirer.round();
  expect(tries).toEqual(runs.map(({ runId }) => runId));
  const left = await Promise.all(runs.map(({ runId }) => stores.runs.find('default', runId)));
  expect(left.map((row) => row?.runId)).toEqual([broken?.runId, undefined, undefined]);
  expect(await stores.retention.due(0, 10, 0)).toEqual([]);
});
