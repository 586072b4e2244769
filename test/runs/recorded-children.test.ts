// Which child of the record a branch by recorded tools takes (architecture §6, src/runs/recorded-children.ts), and where it
// takes none: what the record does not tell for certain is replay_source_missing.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createModels } from '../../src/adapters/models/index.ts';
import { childRunIdOf } from '../../src/rules/ids.ts';
import type { ChildRequest, ChildStart } from '../../src/rules/children.ts';
import type { Fresh } from '../../src/log/log.ts';
import type { Head, LogRow } from '../../src/ports/log.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { createChildren } from '../../src/runs/children.ts';
import type { ChildrenDeps } from '../../src/runs/deps.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import { definition, node, runInput } from '../support/definitions.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const variables = [{ name: 'order', type: 'string' }] as WorkflowDefinition['variables'];
const workflow = (id: string) => definition(id, [node('n', 'core.noop')], [], { variables });
const WORKFLOWS = new Map(['child', 'other'].map((id) => [id, workflow(id)]));
/** The last event of each record. */
const ENDS_MS = 5_000;
/** Events of each record. */
const LENGTH = 2;

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

/** Of runs whose logs say something else. */
const heads = new Map<string, Partial<Fresh['head']> & Partial<Pick<Fresh, 'stale'>>>();
let rowsOfRecord = LENGTH;

function deps(): ChildrenDeps {
  const ended = { closed: true, nextSequence: 3, lastTimestampMs: ENDS_MS } as Head;
  const row = { type: 'node.started', payload: '{}', timestampMs: ENDS_MS } as LogRow;
  return {
    stores,
    log: {
      head: async () => undefined,
      async fresh({ runId }) {
        const { stale = false, ...other } = heads.get(runId) ?? {};
        return { head: { ...ended, ...other }, stale };
      },
      endUnstarted: async () => false,
      async *rows() {
        yield Array.from({ length: rowsOfRecord }, () => row);
      },
    },
    engine: {
      start: async ({ runId }) => ({ temporalRunId: `t-${runId}` }),
      send: async (_runId, _updateId, { bodyDigest }) => ({ bodyDigest, status: 'cancelling' }),
      childEnded: async () => {},
      terminate: async () => {},
      ping: async () => {},
    },
    catalog: { definition: (_tenant, id) => WORKFLOWS.get(id), agent: () => undefined },
    models: createModels({}),
    redactor: { json: (value) => value, text: (text) => text },
    config: { escalation: true },
    logger: silentLogger,
  };
}

async function newParent(): Promise<RunRef> {
  const input = runInput(definition('parent', [node('n', 'core.noop')]));
  const { runId, tenant } = input;
  await stores.runs.accept({ runId, tenant, workflowId: 'parent', input, createdAtMs: 1 });
  return runRef(runId);
}

interface Asked {
  readonly callId: string;
  readonly nodeId?: string;
  readonly workflowId?: string;
  readonly order?: string;
}

const requestOf = (
  { runId }: RunRef,
  { callId, nodeId = 'sub', workflowId = 'child', order = 'A-1' }: Asked,
): ChildRequest => ({
  ...{
    runId: childRunIdOf(runId, callId, 0),
    callId,
    nodeId,
    place: nodeId,
    target: { workflowId },
  },
  ...{ inputs: { order }, cause: 'core.subWorkflow', startedBy: 'it', harvest: [] },
});

/** A source with such children. */
async function sourceWith(...children: readonly Asked[]): Promise<RunRef> {
  const source = await newParent();
  const requests = children.map((child) => requestOf(source, child));
  await createChildren(deps()).accept(source, requests);
  return source;
}

/** What a branch of the source is given that asks for such children at one time. */
async function recordedOf(
  { runId }: RunRef,
  asked: readonly Asked[],
  signal?: AbortSignal,
): Promise<readonly ChildStart[]> {
  const branch = await newParent();
  const starts = await createChildren(deps()).recorded(
    branch,
    {
      ...{ requests: asked.map((one) => requestOf(branch, one)), underWay: [] },
      recordedBy: { runId, length: LENGTH },
    },
    signal,
  );
  expect((await stores.families.children(branch, { limit: 1 })).runs).toEqual([]);
  return starts;
}

async function recorded(source: RunRef, asked: Asked): Promise<ChildStart | undefined> {
  return (await recordedOf(source, [asked]))[0];
}

const childOf = ({ runId }: RunRef, callId: string) => childRunIdOf(runId, callId, 0);
const MISSING = { code: 'replay_source_missing' };

describe('architecture §6: of the children that the record has', () => {
  it('the one at the same place, before another that was given the same', async () => {
    const source = await sourceWith({ callId: 'first' }, { callId: 'second' });
    expect(await recorded(source, { callId: 'second' })).toMatchObject({
      ...{ kind: 'recorded', childRunId: childOf(source, 'second'), recordedOf: source.runId },
    });
  });

  it('else the only one elsewhere that was given the same', async () => {
    const source = await sourceWith({ callId: 'one' }, { callId: 'two', order: 'B-2' });
    expect(await recorded(source, { callId: 'elsewhere', order: 'B-2' })).toMatchObject({
      ...{ kind: 'recorded', childRunId: childOf(source, 'two') },
    });
  });

  it('none where several elsewhere were', async () => {
    const source = await sourceWith({ callId: 'one' }, { callId: 'two' });
    await expect(recorded(source, { callId: 'elsewhere' })).rejects.toMatchObject(MISSING);
  });

  it.each<[string, Asked]>([
    ['other inputs', { callId: 'one', order: 'B-2' }],
    ['another workflow', { callId: 'one', workflowId: 'other' }],
    ['another node', { callId: 'one', nodeId: 'elsewhere' }],
  ])('none of %s, at the same place neither', async (_what, asked) => {
    const source = await sourceWith({ callId: 'one' });
    await expect(recorded(source, asked)).rejects.toMatchObject(MISSING);
  });
});

describe('architecture §6: of those that ask at one time', () => {
  it('no two get the same child', async () => {
    const source = await sourceWith({ callId: 'one' });
    const asked = [{ callId: 'here' }, { callId: 'there' }];
    await expect(recordedOf(source, asked)).rejects.toMatchObject({
      ...MISSING,
      details: { callId: 'there' },
    });
  });

  it('one that stood elsewhere takes no child from the one whose place it has', async () => {
    const source = await sourceWith({ callId: 'one' });
    await expect(recordedOf(source, [{ callId: 'here' }, { callId: 'one' }])).rejects.toMatchObject(
      { ...MISSING, details: { callId: 'here' } },
    );
    const both = await sourceWith({ callId: 'one' }, { callId: 'two' });
    expect(await recordedOf(both, [{ callId: 'here' }, { callId: 'one' }])).toMatchObject([
      { childRunId: childOf(both, 'two') },
      { childRunId: childOf(both, 'one') },
    ]);
  });

  it('nobody looks on when it is called off', async () => {
    const source = await sourceWith({ callId: 'one' });
    const looking = recordedOf(source, [{ callId: 'here' }], AbortSignal.abort());
    await expect(looking).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('architecture §6: nothing is concluded', () => {
  it('of a child that was erased', async () => {
    const source = await sourceWith({ callId: 'one' });
    heads.set(childOf(source, 'one'), { erasedAtMs: 1 });
    await expect(recorded(source, { callId: 'one' })).rejects.toMatchObject(MISSING);
  });

  it('of one that had not ended when the record did; while nobody can tell, it is asked again', async () => {
    const source = await sourceWith({ callId: 'one' }, { callId: 'two', order: 'B-2' });
    heads.set(childOf(source, 'one'), { lastTimestampMs: ENDS_MS + 1 });
    await expect(recorded(source, { callId: 'one' })).rejects.toMatchObject(MISSING);
    heads.set(childOf(source, 'two'), { closed: false, stale: true });
    await expect(recorded(source, { callId: 'two', order: 'B-2' })).rejects.toMatchObject({
      code: 'service_unavailable',
    });
  });

  it('of a record that is being built anew: it is read again', async () => {
    const source = await sourceWith({ callId: 'one' });
    rowsOfRecord = LENGTH - 1;
    await expect(recorded(source, { callId: 'one' }))
      .rejects.toMatchObject({ code: 'service_unavailable' })
      .finally(() => (rowsOfRecord = LENGTH));
  });
});
