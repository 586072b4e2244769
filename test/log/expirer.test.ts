// Rounds of expiry (architecture §3.7) where one run cannot expire: those behind it do not wait for it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createExpirer } from '../../src/log/expirer.ts';
import { HostError } from '../../src/rules/errors.ts';
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

function expirerWith(
  over: Partial<Stores['retention']>,
  remove: (runId: string) => Promise<void> = async () => undefined,
) {
  return createExpirer({
    stores: { ...stores, retention: { ...stores.retention, ...over } },
    histories: { remove },
    engine: { ping: async () => undefined },
    ...{ logger: quietLogger, keptMs: 0, restMs: 0 },
  });
}

test.each([
  ['by its own fault', new Error('this row cannot be written')],
  ['in time, while the database answers', new HostError('service_unavailable')],
])(
  'a run that cannot expire %s keeps none behind it, and is looked at again later',
  async (_how, fault) => {
    const runs: RunRef[] = [];
    for (let at = 0; at < 3; at++) runs.push(await member(stores));
    const [broken] = runs;
    const tries: string[] = [];
    const expire: Stores['retention']['expire'] = async (run, query) => {
      tries.push(run.runId);
      if (run.runId === broken?.runId) throw fault;
      return stores.retention.expire(run, query);
    };
    const expirer = expirerWith({ expire });
    await expirer.round();
    expect(tries).toEqual(runs.map(({ runId }) => runId));
    const left = await Promise.all(runs.map(({ runId }) => stores.runs.find('default', runId)));
    expect(left.map((row) => row?.runId)).toEqual([broken?.runId, undefined, undefined]);
    expect(await stores.retention.due(0, 10, 0)).toEqual([]);
    // Its own time comes: no test behind this one meets it.
    if (broken) await stores.retention.expire(broken, { keptMs: 0, restMs: 0 });
  },
);

// [I97]
test('what is left of a run that cannot be deleted keeps nothing behind it', async () => {
  const runs: RunRef[] = [];
  for (let at = 0; at < 3; at++) runs.push(await member(stores));
  const ids = runs.map(({ runId }) => runId);
  const asked: string[] = [];
  await expirerWith({}, async (runId) => {
    if (!ids.includes(runId)) return;
    asked.push(runId);
    if (asked.length === 1) throw new HostError('service_unavailable');
  }).round();
  expect(new Set(asked)).toEqual(new Set(ids));
});

// [I97]
test('each part of a round has its turn, whatever becomes of those before it', async () => {
  let forgotten = 0;
  const broken = () => Promise.reject(new Error('this cannot be read'));
  const expirer = expirerWith({
    ...{ due: broken, claimUnclean: broken },
    forget: async () => ++forgotten,
  });
  expect(await expirer.round()).toBe(false);
  expect(forgotten).toBe(1);
});
