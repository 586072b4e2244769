// The keeper of families (architecture §4): what cannot be told, or cancelled, keeps nothing else waiting.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createModels } from '../../src/adapters/models/index.ts';
import { HostError, type ErrorCode } from '../../src/rules/errors.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { createChildren } from '../../src/runs/children.ts';
import { createFamilyKeeper, type FamilyKeeperDeps } from '../../src/runs/family-keeper.ts';
import { batchAfter, entry } from '../contract/given.ts';
import { definition, node, runInput } from '../support/definitions.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const TENANT = 'default';
const MANY = 2_000;

let stores: Stores;
let isTemporalAway = false;
/** Runs that nobody can be told of. */
const deaf = new Set<string>();
/** Runs whose logs are dropped, and not rebuilt yet. */
const gone = new Set<string>();
const told: string[] = [];
const cancelled: string[] = [];

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());
beforeEach(() => {
  isTemporalAway = false;
  deaf.clear();
  gone.clear();
  told.length = 0;
  cancelled.length = 0;
});

function deps(): FamilyKeeperDeps {
  const unavailable = (runId: string): void => {
    if (isTemporalAway || deaf.has(runId)) throw new HostError('service_unavailable');
  };
  return {
    stores,
    log: {
      head: async (run) => (gone.has(run.runId) ? undefined : stores.log.head(run)),
      fresh: async (run) => {
        const head = gone.has(run.runId) ? undefined : await stores.log.head(run);
        if (!head) throw new HostError('run_not_found');
        return { head, stale: false };
      },
      endUnstarted: async () => false,
      rows: () => {
        throw new Error('not read');
      },
    },
    engine: {
      start: async ({ runId }) => ({ temporalRunId: `t-${runId}` }),
      async send(runId, _updateId, { bodyDigest }) {
        unavailable(runId);
        cancelled.push(runId);
        return { bodyDigest, status: 'cancelling' };
      },
      async childEnded(_parentRunId, { childRunId }) {
        unavailable(childRunId);
        told.push(childRunId);
      },
      terminate: async () => {},
      async ping() {
        unavailable('');
      },
    },
    catalog: { definition: () => undefined, agent: () => undefined },
    models: createModels({ scripts: {} }),
    redactor: { json: (value) => value, text: (text) => text },
    config: { escalation: true },
    logger: silentLogger,
    // Every end is old enough.
    ownTimeMs: 0,
  };
}

async function accepted(parent?: RunRef, isDetached?: true): Promise<RunRef> {
  const runId = `run-${randomUUID()}`;
  const input = {
    ...runInput(definition('w', [node('n', 'core.noop')])),
    runId,
    header: {
      sessionId: 's',
      correlationId: parent?.runId ?? runId,
      ...(parent ? { parentRunId: parent.runId, causationId: 'call-1' } : {}),
      ...(isDetached ? { isDetached } : {}),
    },
  };
  const row = { runId, tenant: TENANT, workflowId: 'w', input, createdAtMs: 1 };
  if (parent) await stores.families.acceptChild(row, MANY);
  else await stores.runs.accept(row);
  await stores.runs.markStarted(runRef(runId), 'T1');
  return runRef(runId);
}

async function end(run: RunRef, status: 'completed' | 'failed' = 'completed'): Promise<void> {
  const head = await stores.log.head(run);
  if (!head) throw new Error('no head');
  const rows = [entry(run.runId, 'terminal', { type: `run.${status}` })];
  await stores.log.append(batchAfter(head, rows, { run, status, closed: true }));
}

/** Stores whose rows of these runs do not open. */
function withDamaged(code: ErrorCode, ...runs: readonly RunRef[]): Stores {
  const lost = new Set(runs.map(({ runId }) => runId));
  const { runs: whole } = stores;
  const unless =
    (read: Stores['runs']['find']): Stores['runs']['find'] =>
    async (tenant, runId) => {
      if (lost.has(runId)) throw new HostError(code);
      return read(tenant, runId);
    };
  return {
    ...stores,
    runs: {
      ...whole,
      find: unless((...run) => whole.find(...run)),
      findKept: unless((...run) => whole.findKept(...run)),
    },
  };
}

const untold = async () => (await stores.families.untoldEnds(0, MANY)).map(({ run }) => run.runId);

describe('the keeper of families', () => {
  it('ends that cannot be told keep nothing behind them waiting, a whole round of them neither', async () => {
    const parent = await accepted();
    const children: RunRef[] = [];
    for (let count = 0; count < 52; count++) children.push(await accepted(parent));
    for (const child of children) await end(child);
    const [last] = (await untold()).slice(-1);
    for (const { runId } of children) if (runId !== last) deaf.add(runId);
    const keeper = createFamilyKeeper(deps());
    await keeper.round();
    await keeper.round();
    expect(told).toEqual([last]);
    deaf.clear();
    await keeper.round();
    await keeper.round();
    expect(await untold()).toEqual([]);
  });

  it('where Temporal is away the round is over with the first one, and the next begins anew', async () => {
    const parent = await accepted();
    const children = [await accepted(parent), await accepted(parent)];
    for (const child of children) await end(child);
    const keeper = createFamilyKeeper(deps());
    isTemporalAway = true;
    await keeper.round();
    expect(await untold()).toHaveLength(2);
    isTemporalAway = false;
    await keeper.round();
    expect(told.toSorted()).toEqual(children.map(({ runId }) => runId).toSorted());
  });

  it('a child that cannot be cancelled keeps no other running, and its parent’s end stays to be told', async () => {
    const parent = await accepted();
    const children = [await accepted(parent), await accepted(parent), await accepted(parent)];
    await end(parent);
    deaf.add(children[0]?.runId ?? '');
    const keeper = createFamilyKeeper(deps());
    await keeper.round();
    expect(cancelled.toSorted()).toEqual(
      children
        .slice(1)
        .map(({ runId }) => runId)
        .toSorted(),
    );
    expect(await untold()).toEqual([parent.runId]);
  });

  // [I97]
  it('an end whose parent cannot be told still ends the children', async () => {
    const root = await accepted();
    const child = await accepted(root);
    const below = await accepted(child);
    await end(child);
    deaf.add(child.runId);
    await createFamilyKeeper(deps()).round();
    expect(cancelled).toContain(below.runId);
    expect(await untold()).toContain(child.runId);
    deaf.clear();
  });

  // [I97]
  it.each(['history_undecodable', 'key_unavailable'] as const)(
    'an end is told, and children end, whichever row of them does not open: %s',
    async (code) => {
      const root = await accepted();
      const child = await accepted(root);
      const below = await accepted(child);
      const left = await accepted(child, true);
      await end(child);
      for (const damaged of [child, below]) {
        told.length = cancelled.length = 0;
        const keeper = createFamilyKeeper({ ...deps(), stores: withDamaged(code, damaged, left) });
        deaf.add(child.runId);
        await keeper.round();
        expect(cancelled).toContain(below.runId);
        expect(cancelled).not.toContain(left.runId);
        deaf.clear();
      }
      const damaged = withDamaged(code, child, below, left);
      await createFamilyKeeper({ ...deps(), stores: damaged }).round();
      expect(told).toContain(child.runId);
      expect(await untold()).not.toContain(child.runId);
    },
  );

  // [I97]
  it('of a child whose row does not open its parent learns how it ended, or that this is not known', async () => {
    const parent = await accepted();
    const child = await accepted(parent);
    const failed = await accepted(parent);
    const other = await accepted(await accepted());
    await end(child);
    await end(failed, 'failed');
    const damaged = withDamaged('history_undecodable', child, failed, other);
    const children = createChildren({ ...deps(), stores: damaged });
    const error = { code: 'history_undecodable', message: "The run's history cannot be decoded." };
    expect(await children.end(parent, child.runId)).toEqual({
      ...{ status: 'failed', outputs: {}, variables: {}, error },
    });
    expect(await children.end(parent, failed.runId)).toMatchObject({ status: 'failed' });
    expect(await children.end(parent, other.runId)).toBe('lost');
    // Another process may have the key.
    const away = createChildren({ ...deps(), stores: withDamaged('key_unavailable', child) });
    await expect(away.end(parent, child.runId)).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(await away.cancel(parent, { childRunId: other.runId, reason: 'r' })).toBe('none');
  });

  it('a parent whose log is just dropped is told, and finds out when the child’s is there again', async () => {
    const parent = await accepted();
    const child = await accepted(parent);
    await end(child);
    gone.add(parent.runId).add(child.runId);
    await expect(createChildren(deps()).end(parent, child.runId)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    await createFamilyKeeper(deps()).round();
    expect(told).toContain(child.runId);
    gone.clear();
    expect(await createChildren(deps()).end(parent, child.runId)).toMatchObject({
      status: 'completed',
    });
  });

  it('the children of a child are ended also where its parent has taken its end before', async () => {
    const root = await accepted();
    const child = await accepted(root);
    const below = await accepted(child);
    await end(child);
    await createChildren(deps()).end(root, child.runId);
    await createFamilyKeeper(deps()).round();
    expect(cancelled).toContain(below.runId);
  });
});
