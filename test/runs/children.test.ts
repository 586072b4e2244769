// What a parent may ask of children, and is told (src/runs/children.ts): refusals by their codes, what is passed on, and
// whose child is whose.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createModels } from '../../src/adapters/models/index.ts';
import type { ChildRequest } from '../../src/rules/children.ts';
import { HostError } from '../../src/rules/errors.ts';
import { childSeriesOf } from '../../src/rules/ids.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import type { CatalogAgent } from '../../src/ports/catalog.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { createChildren, type Children } from '../../src/runs/children.ts';
import type { ChildrenDeps } from '../../src/runs/deps.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import { definition, node, runInput } from '../support/definitions.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const TENANT = 'default';
const CHILD = definition('child', [node('n', 'core.noop')], [], {
  variables: [
    { name: 'order', type: 'string', required: true },
    { name: 'pin', type: 'string', sensitive: true, defaultValue: '0000' },
  ] as WorkflowDefinition['variables'],
});
const CLERK = {
  manifest: { agentId: 'local.desk.clerk' },
  pinned: { agentId: 'local.desk.clerk', modelClass: 'general', toolAllowlist: [] },
  taskSchema: { type: 'object', required: ['order'] },
} as unknown as CatalogAgent;

let stores: Stores;
const started: RunInput[] = [];

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

function deps(): ChildrenDeps {
  return {
    stores,
    log: {
      head: (run) => stores.log.head(run),
      fresh: async (run) => {
        const head = await stores.log.head(run);
        if (!head) throw new HostError('run_not_found');
        return { head, stale: false };
      },
      endUnstarted: async () => false,
      rows: () => {
        throw new Error('not read');
      },
    },
    engine: {
      async start(input) {
        started.push(input);
        return { temporalRunId: `t-${input.runId}` };
      },
      send: async (_runId, _updateId, { bodyDigest }) => ({ bodyDigest, status: 'cancelling' }),
      childEnded: async () => {},
      terminate: async () => {},
      ping: async () => {},
    },
    catalog: {
      definition: (_tenant, id) => (id === 'child' ? CHILD : undefined),
      agent: (_tenant, id) => (id === 'local.desk.clerk' ? CLERK : undefined),
    },
    models: createModels({
      scripts: { 'local.desk.clerk': { turns: [{ final: { decision: 1 } }] } },
    }),
    redactor: { json: (value) => value, text: (text) => text },
    config: { escalation: true },
    logger: silentLogger,
  };
}

async function parentRun(over: Partial<RunInput> = {}): Promise<RunRef> {
  const input = runInput(definition('parent', [node('n', 'core.noop')]), over);
  const { runId } = input;
  await stores.runs.accept({ runId, tenant: TENANT, workflowId: 'parent', input, createdAtMs: 1 });
  return runRef(runId);
}

let count = 0;
const asked = (over: Partial<ChildRequest> = {}): ChildRequest => ({
  runId: `run-child-${count++}`,
  callId: 'call-1',
  nodeId: 'sub',
  place: 'here',
  target: { workflowId: 'child' },
  inputs: { order: 'A-1' },
  cause: 'core.subWorkflow',
  startedBy: 'node.started|n/1/0/node',
  harvest: [],
  ...over,
});

async function accept(children: Children, parent: RunRef, request: ChildRequest) {
  const [start] = await children.accept(parent, [request]);
  return start;
}

describe('a child that is asked for', () => {
  it('seed 003 §3.4: is of its parent’s session, root and subject, one generation below', async () => {
    const parent = await parentRun({
      configurable: { temperature: 0.5, recursionLimit: 3, runTimeoutMs: 10_000 },
    });
    const request = asked();
    const children = createChildren(deps());
    expect(await accept(children, parent, request)).toEqual({
      kind: 'started',
      workflowId: 'child',
    });
    const child = await stores.runs.find(TENANT, request.runId);
    const row = await stores.runs.find(TENANT, parent.runId);
    expect(child?.input.header).toEqual({
      sessionId: row?.input.header.sessionId,
      correlationId: row?.input.header.correlationId,
      parentRunId: parent.runId,
      parentNodeId: 'sub',
      causationId: 'call-1',
      depth: 1,
      childCause: 'core.subWorkflow',
      startedBy: { runId: parent.runId, key: 'node.started|n/1/0/node' },
      place: 'here',
      series: childSeriesOf(parent.runId, 'here'),
    });
    expect(child?.input.subject).toEqual(row?.input.subject ?? child?.input.subject);
    // What bounds one run bounds no other.
    expect(child?.input.configurable).toEqual({ temperature: 0.5 });
  });

  it('[I99] is of one series with those that later attempts start in its place, and so is what they start', async () => {
    const children = createChildren(deps());
    const parent = await parentRun();
    const seriesAt = async (of: RunRef, place: string) => {
      const request = asked({ callId: `call-${count}`, place });
      await accept(children, of, request);
      const row = await stores.runs.find(TENANT, request.runId);
      return { run: runRef(request.runId), series: row?.input.header.series };
    };
    const [first, second, other] = [
      await seriesAt(parent, 'here'),
      await seriesAt(parent, 'here'),
      await seriesAt(parent, 'there'),
    ];
    expect(second.series).toBe(first.series);
    expect(other.series).not.toBe(first.series);
    const [below, again] = [
      await seriesAt(first.run, 'below'),
      await seriesAt(second.run, 'below'),
    ];
    expect(again.series).toBe(below.series);
    expect((await seriesAt(other.run, 'below')).series).not.toBe(below.series);
    expect((await seriesAt(await parentRun(), 'here')).series).not.toBe(first.series);
  });

  it('[I99] is told of which tools calls were left above it', async () => {
    const request = asked({ leftTools: ['demo:pay'] });
    await accept(createChildren(deps()), await parentRun(), request);
    const row = await stores.runs.find(TENANT, request.runId);
    expect(row?.input.leftTools).toEqual(['demo:pay']);
  });

  it('stands behind its parent in every list, whatever the clocks of their processes say', async () => {
    const input = runInput(definition('parent', [node('n', 'core.noop')]));
    const { runId } = input;
    const createdAtMs = Date.now() + 60_000;
    await stores.runs.accept({ runId, tenant: TENANT, workflowId: 'parent', input, createdAtMs });
    const request = asked();
    await accept(createChildren(deps()), runRef(runId), request);
    const child = await stores.runs.find(TENANT, request.runId);
    expect(child?.createdAtMs).toBeGreaterThan(createdAtMs);
  });

  it('whether and how long humans are asked is fixed where its root was accepted, whatever a worker is told', async () => {
    const policy = { escalation: false, verbosity: 'full' } as const;
    const limits = { ...runInput(CHILD).limits, interruptTimeoutMs: 60_000 };
    const parent = await parentRun({ policy, limits });
    const request = asked();
    await accept(createChildren(deps()), parent, request);
    const child = await stores.runs.find(TENANT, request.runId);
    expect(child?.input).toMatchObject({ policy: { escalation: false }, limits });
  });

  it.each([
    ['an unknown workflow', { target: { workflowId: 'nothing' } }, 'unknown_child_workflow'],
    ['an unknown agent', { target: { agentId: 'local.desk.nobody' } }, 'agent_not_found'],
    ['a missing input', { inputs: {} }, 'validation_error'],
    ['an input of another type', { inputs: { order: 7 } }, 'validation_error'],
    ['a required one that is unset', { unset: ['order'], inputs: {} }, 'validation_error'],
    [
      'a task against its schema',
      { target: { agentId: 'local.desk.clerk' }, inputs: {} },
      'handoff_task_schema_violation',
    ],
    ['too much', { inputs: { order: 'x'.repeat(200_000) } }, 'payload_too_large'],
  ])('%s is refused, and nothing begins', async (_what, over, code) => {
    const parent = await parentRun();
    const before = started.length;
    expect(await accept(createChildren(deps()), parent, asked(over))).toMatchObject({
      kind: 'refused',
      code,
    });
    expect(started).toHaveLength(before);
    expect((await stores.families.children(parent, { limit: 10 })).runs).toEqual([]);
  });

  // [I66]
  it('a mapping takes no sensitive variable', async () => {
    const refused = await accept(
      createChildren(deps()),
      await parentRun(),
      asked({ harvest: ['pin'] }),
    );
    expect(refused).toMatchObject({ kind: 'refused', code: 'validation_error' });
  });

  it('a sensitive value is given to no variable that would show it', async () => {
    const children = createChildren(deps());
    const shown = asked({ sensitive: ['order'] });
    expect(await accept(children, await parentRun(), shown)).toMatchObject({
      kind: 'refused',
      code: 'validation_error',
    });
    // Where it stays sensitive it is given, and what the child does not declare reaches nothing.
    const kept = asked({
      inputs: { order: 'A-1', pin: '1234', more: 'x' },
      sensitive: ['pin', 'more'],
    });
    expect(await accept(children, await parentRun(), kept)).toMatchObject({ kind: 'started' });
  });

  it('two parents that claim one id: the second gets an error, and never the run of the first', async () => {
    const children = createChildren(deps());
    const request = asked();
    await accept(children, await parentRun(), request);
    const other = await parentRun();
    await expect(accept(children, other, request)).rejects.toMatchObject({
      code: 'internal_error',
    });
    expect(await children.end(other, request.runId)).toBe('lost');
    expect(await children.cancel(other, { childRunId: request.runId, reason: 'r' })).toBe('none');
  });

  it('a definition that changes meanwhile: a later try finds the run as it was accepted', async () => {
    const parent = await parentRun();
    const request = asked();
    await accept(createChildren(deps()), parent, request);
    const gone = { ...deps(), catalog: { definition: () => undefined, agent: () => undefined } };
    expect(await accept(createChildren(gone), parent, request)).toMatchObject({ kind: 'started' });
    expect(await createChildren(gone).end(parent, request.runId)).toBeUndefined();
  });

  it('seed 003 §3.4: below one root are so many runs and no more, and the parent is told which bound', async () => {
    const { families } = stores;
    const full = { ...families, acceptChild: async () => 'full' as const };
    const children = createChildren({ ...deps(), stores: { ...stores, families: full } });
    expect(await accept(children, await parentRun(), asked())).toMatchObject({
      code: 'child_limit_exceeded',
      breach: { kind: 'child-runs', limit: 2_000 },
    });
  });

  it('the eighth generation has no children', async () => {
    const header = { sessionId: 's', correlationId: 'run-root', parentRunId: 'run-7', depth: 8 };
    const refused = await accept(createChildren(deps()), await parentRun({ header }), asked());
    expect(refused).toMatchObject({
      code: 'child_limit_exceeded',
      breach: { kind: 'child-depth' },
    });
  });
});
