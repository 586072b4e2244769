// What stands below a run (seed 003 §3.4): over all generations, with what each run asks, as its parent and its root see it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fold } from '../../src/log/fold.ts';
import { HostError } from '../../src/rules/errors.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { runsBelow } from '../../src/runs/below.ts';
import { batchAfter, entry, headOf, newRun, startedRun } from '../contract/given.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const MANY = 2_000;
/** Runs of a family whose questions are read. */
const MAX_ASKING = 50;

let stores: Stores;
let atMs = 1_000;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

async function child(parent: RunRef, root: RunRef, createdAtMs = atMs++): Promise<RunRef> {
  const run = newRun({ createdAtMs });
  const header = {
    ...{ sessionId: 's', correlationId: root.runId },
    ...{ parentRunId: parent.runId, causationId: 'call-1' },
  };
  await stores.families.acceptChild({ ...run, input: { ...run.input, header } }, MANY);
  await stores.runs.markStarted(runRef(run.runId), 'T1');
  return runRef(run.runId);
}

async function ask({ runId }: RunRef): Promise<void> {
  const [kind, key] = ['approval', 'asked'];
  const row = (name: string, type: string, payload: object) =>
    entry(runId, name, { type, nodeId: 'gate', payload: JSON.stringify(payload) });
  const rows = [
    row('s', 'node.suspended', { nodeId: 'gate', interruptId: `int-${runId}`, kind, key }),
    row('q', 'interrupt.requested', { kind, key, data: { title: 'May I?' } }),
  ];
  const batch = batchAfter(await headOf(stores, runId), rows, { fold, status: 'waiting-approval' });
  await stores.log.append(batch);
}

async function runsOf(run: RunRef) {
  const row = await stores.runs.find(run.tenant, run.runId);
  if (!row) throw new Error('no run');
  const { runs, more } = await runsBelow({ stores, log: stores.log }, row);
  expect(more).toBe(false);
  return runs.map(({ runId, asks }) => [runId, asks?.map(({ interruptId }) => interruptId)]);
}

describe('the runs below a run', () => {
  it('a question of a grandchild is seen from its parent and from its root, and nowhere else', async () => {
    const root = runRef(await startedRun(stores, { createdAtMs: 1 }));
    const [one, two] = [await child(root, root), await child(root, root)];
    const asking = await child(one, root);
    await ask(asking);
    const asked = [asking.runId, [`int-${asking.runId}`]];
    expect(await runsOf(root)).toEqual([[one.runId, []], [two.runId, []], asked]);
    expect(await runsOf(one)).toEqual([asked]);
    expect(await runsOf(two)).toEqual([]);
    expect(await runsOf(asking)).toEqual([]);
  });

  it('whatever the clocks of those who accepted them: a grandchild may seem older than its parent', async () => {
    const root = runRef(await startedRun(stores, { createdAtMs: 1 }));
    const one = await child(root, root, 900);
    const asking = await child(one, root, 800);
    const last = await child(asking, root, 700);
    await ask(asking);
    const asked = [asking.runId, [`int-${asking.runId}`]];
    expect(await runsOf(root)).toEqual([[last.runId, []], asked, [one.runId, []]]);
    expect(await runsOf(one)).toEqual([[last.runId, []], asked]);
  });

  it('of many that ask the first are looked at; of the others nothing is said', async () => {
    const root = runRef(await startedRun(stores, { createdAtMs: 1 }));
    for (let count = 0; count < MAX_ASKING + 2; count++) await ask(await child(root, root));
    const seen = await runsOf(root);
    expect(seen.filter(([, asks]) => asks?.length === 1)).toHaveLength(MAX_ASKING);
    expect(seen.slice(MAX_ASKING).map(([, asks]) => asks)).toEqual([undefined, undefined]);
  });

  // [I97]
  it('one that cannot be read is told as such, beside the others', async () => {
    const root = runRef(await startedRun(stores, { createdAtMs: 1 }));
    const [lost, asking] = [await child(root, root), await child(root, root)];
    await ask(lost);
    await ask(asking);
    const row = await stores.runs.find(root.tenant, root.runId);
    if (!row) throw new Error('no run');
    const fault = new HostError('history_undecodable', { reason: 'No such key.' });
    const head: Stores['log']['head'] = (run) =>
      run.runId === lost.runId ? Promise.reject(fault) : stores.log.head(run);
    const { runs } = await runsBelow({ stores, log: { head } }, row);
    expect(runs.map(({ runId, asks, unreadable }) => [runId, asks?.length, unreadable])).toEqual([
      [lost.runId, undefined, { code: 'history_undecodable', message: 'No such key.' }],
      [asking.runId, 1, undefined],
    ]);
  });
});
