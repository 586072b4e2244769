// Forks and replays of runs with child runs, on a real host (architecture §6): whatever a run began is forked with it, as
// a tree; what is recorded is performed by nobody, and an open child lives on from where it was.
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RunSnapshot, WorkflowDefinition } from '../../schemas/types.generated.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { HostError } from '../../src/rules/errors.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { ended, waiting } from '../facade/suite-parts.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { runRef } from '../support/run-ref.ts';
import { patient } from '../support/machine.ts';

const [BOSS, CLERK, TOOL] = ['local.trees.boss', 'local.trees.clerk', 'tested:effect'];
const agent = (agentId: string, toolAllowlist: string[]): ResolvedAgent => ({
  ...{ packName: 'local.trees', packVersion: '1.0.0', systemPrompt: 'You decide.' },
  manifest: {
    ...{ agentId, persona: agentId, modelClass: 'general', systemPrompt: 'You decide.' },
    toolAllowlist,
  },
});
const call = (toolId: string, n: number) => ({ toolId, arguments: { n } });
const done = { final: { decision: 'done', confidence: 1 } };
const AGENTS = [agent(BOSS, [`agent:${CLERK}`, TOOL]), agent(CLERK, [TOOL])];
const SCRIPTS = {
  [BOSS]: { turns: [{ calls: [call(`agent:${CLERK}`, 1), call(TOOL, 2)] }, done] },
  [CLERK]: { turns: [{ calls: [call(TOOL, 1)] }, done] },
};

/** The outside: each call of it is an effect. */
let effects = 0;
const EFFECT: Tool = {
  ...{ toolId: TOOL, description: 'Counts.', inputSchema: { type: 'object' } },
  ...{ idempotent: false, timeoutMs: 5_000, transport: 'native', safetyTier: 'write' },
  call: async () => ({ effect: ++effects }),
};

const sub = (id: string, workflowId: string, config: object = {}) =>
  node(id, 'core.subWorkflow', { config: { workflowId, ...config } });
const gate = (id: string) => node(id, 'core.approvalGate', { config: { title: 'Shall it?' } });
const variables = [{ name: 'got', type: 'string' }] as WorkflowDefinition['variables'];
const next = (...nextWorkerIds: string[]) => ({ kind: 'next-worker', nextWorkerIds });

const DEFINITIONS = [
  chain(
    'sets',
    [node('set', 'core.setVariable', { config: { variableName: 'got', value: 'of the child' } })],
    { variables },
  ),
  chain('fails', [node('fail', 'core.fail', { config: { code: 'made_to_fail' } })]),
  chain('delays', [node('delay', 'core.delay', { config: { ms: 60_000 } })]),
  chain('asks', [agentNode('boss', BOSS), gate('gate'), agentNode('again', BOSS)]),
  chain('below', [sub('grandchild', 'asks')]),
  // A grandchild, calls of an agent, a failed child, one that took too long, and workers side by side.
  definition(
    'conformance-tree',
    [
      sub('first', 'sets', { outputMapping: { got: 'got' } }),
      agentNode('boss', BOSS),
      sub('late', 'delays', { timeoutMs: 200, onChildFailure: 'absorb' }),
      node('lead', 'core.orchestrator.supervisor', {
        config: { mockDispatchPlan: [next('sets', 'fails', 'sets'), { kind: 'terminate' }] },
      }),
      node('work', 'core.dispatch', {
        config: { fanOutPolicy: 'parallel', outputMapping: { got: 'got' } },
      }),
    ],
    [edge('first', 'boss'), edge('boss', 'late'), edge('late', 'lead'), edge('lead', 'work')],
    { variables },
  ),
  chain('gated', [gate('gate')]),
  chain('asks-first', [gate('gate'), sub('sub', 'sets')]),
  chain('calls', [agentNode('boss', BOSS)]),
  chain('free-asks', [sub('free', 'gated', { propagateCancellation: false })]),
  chain('timed', [
    node('sub', 'core.subWorkflow', {
      config: { workflowId: 'gated', onChildFailure: 'absorb' },
      settings: { timeoutMs: 4_000 },
    }),
  ]),
  chain('asks-late', [node('wait', 'core.delay', { config: { ms: 2_000 } }), sub('sub', 'gated')]),
  chain('waits', [sub('sub', 'below'), sub('free', 'sets', { propagateCancellation: false })]),
  chain('delays-a-little', [node('delay', 'core.delay', { config: { ms: 4_000 } })]),
  chain('gives', [sub('sub', 'sets', { inputMapping: { got: 'got' } })], { variables }),
  chain('detached', [sub('free', 'delays-a-little', { propagateCancellation: false })]),
];

/** In the campaign a tree is forked at every event; else where what a fork does with its children differs. */
const isWhole = process.env.OPENWOP_FORKED_TREES === 'whole';

/** Behind the start of a child that an agent calls, of one with a time limit, and behind the end of the first of three workers. */
function placesOf(rows: readonly LogRow[]): readonly number[] {
  if (isWhole) return [...rows.keys(), rows.length];
  const started = rows.flatMap(({ type }, at) => (type === 'node.dispatched' ? [at] : []));
  const ended = rows.findIndex(({ payload }) => payload.includes('child.completed'));
  expect([started.length, ended > 0]).toEqual([6, true]);
  return [...started.slice(1, 3), ended].map((at) => at + 1);
}

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({
    builtIn: { definitions: DEFINITIONS, agents: AGENTS, scripts: SCRIPTS, tools: [EFFECT] },
  });
});
afterAll(() => host?.stop());

/** The whole log as it is now: a run that nobody watches is written a little later. */
async function rowsOf(runId: string): Promise<readonly LogRow[]> {
  await host.log.fresh(runRef(runId));
  return host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
}

/** Everything below a run, oldest first, once all of it has ended. */
async function familyOf(runId: string): Promise<readonly { runId: string; parentRunId: string }[]> {
  const below = () => host.stores.families.descendants(runRef(runId).tenant, runId, 1_000);
  await until(async () => (await below()).every(({ closed }) => closed), 'all below has ended');
  return below();
}

async function fork(of: object, source: string): Promise<string> {
  const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${source}:fork`, {
    body: of,
  });
  expect([status, body]).toMatchObject([201, { sourceRunId: source }]);
  return body.runId;
}

async function answer(runId: string): Promise<void> {
  await host.waitFor(runId, waiting);
  const body = { resumeValue: { action: 'accept' } };
  expect((await host.api(`/v1/runs/${runId}/interrupts/gate`, { body })).status).toBe(200);
}

/** The run below that asks, in the second generation. */
async function asking(runId: string): Promise<string> {
  let last = runId;
  for (let generation = 0; generation < 2; generation++) {
    let below: string | undefined;
    await until(async () => {
      const { runs } = await host.stores.families.children(runRef(last), { limit: 1 });
      return (below = runs[0]?.runId) !== undefined;
    }, 'it has a child');
    last = below ?? '';
  }
  await host.waitFor(last, waiting);
  return last;
}

/** Calls that were under way where a branch leaves, and may have been made, are made again, in it and below it, until it ends. */
async function letMadeAgain(rootId: string): Promise<void> {
  await until(async () => {
    const below = await host.stores.families.descendants(runRef(rootId).tenant, rootId, 1_000);
    for (const runId of [rootId, ...below.map((run) => run.runId)]) {
      const { body } = await host.api<RunSnapshot>(`/v1/runs/${runId}`);
      const { interruptId, nodeId, artifactType } = (body.interrupt ?? {}) as Record<
        string,
        string
      >;
      if (runId === rootId && ended(body)) return true;
      if (artifactType !== 'effect-in-doubt') continue;
      const answered = { interruptId, resumeValue: { action: 'accept' } };
      await host.api(`/v1/runs/${runId}/interrupts/${nodeId}`, { body: answered });
    }
    return false;
  }, 'the branch has ended');
}

async function onlyChild(runId: string): Promise<string> {
  let child = '';
  await until(async () => {
    const { runs } = await host.stores.families.children(runRef(runId), { limit: 1 });
    return (child = runs[0]?.runId ?? '') !== '';
  }, 'it has a child');
  return child;
}

const told = (rows: readonly LogRow[], runId: string): string[] =>
  rows
    .filter(({ type }) => type !== 'agent.reasoning.delta')
    .map(({ type, nodeId, payload }) =>
      JSON.stringify({ type, nodeId, payload: payload.replaceAll(runId, 'it') }),
    );
const prefixOf = (rows: readonly LogRow[], runId: string, length: number): string[] =>
  rows
    .slice(0, length)
    .map(({ type, nodeId, payload, timestampMs, sequence }) =>
      JSON.stringify([type, nodeId, payload.replaceAll(runId, 'it'), timestampMs, sequence]),
    );

/** Each run below the source has one below the fork that says the same, and nothing was performed for it. */
async function expectSameFamily(source: string, replay: string): Promise<void> {
  const [of, again] = [await familyOf(source), await familyOf(replay)];
  expect(again.length).toBe(of.length);
  const shapes = async (family: typeof of) => {
    const logs = await Promise.all(
      family.map(async ({ runId, parentRunId }) =>
        // A cancel names the parent that told it: the source's.
        told(await rowsOf(runId), runId).map((row) =>
          row.replaceAll(parentRunId, 'ID').replaceAll(source, 'ID'),
        ),
      ),
    );
    return logs.map((rows) => rows.join('\n')).sort();
  };
  expect(await shapes(again)).toEqual(await shapes(of));
}

describe('a replay', () => {
  let source: string;
  let rows: readonly LogRow[];
  beforeAll(async () => {
    source = await host.startRun({ workflowId: 'conformance-tree' });
    await host.waitFor(source, ended);
    await familyOf(source);
    rows = await rowsOf(source);
  });
  beforeEach(() => (effects = 0));

  it('the source has children of all kinds', async () => {
    expect((await host.api<RunSnapshot>(`/v1/runs/${source}`)).body.status).toBe('completed');
    const family = await familyOf(source);
    expect(family).toHaveLength(6);
  });

  it.each(isWhole ? [0, 0.3, 0.6, 1] : [0.5, 1])(
    'replay.md: from %s of it, states what its source stated, as does each run below it',
    async (part) => {
      const fromSeq = Math.floor(rows.length * part);
      const runId = await fork({ mode: 'replay', fromSeq }, source);
      await host.waitFor(runId, ended);
      const again = await rowsOf(runId);
      expect(told(again, runId)).toEqual(told(rows, source));
      expect(prefixOf(again, runId, fromSeq)).toEqual(prefixOf(rows, source, fromSeq));
      await expectSameFamily(source, runId);
      expect(effects).toBe(0);
      for (const each of [{ runId }, ...(await familyOf(runId))])
        await checkInvariants(host, each.runId);
      const diff = await host.api<{ identical?: boolean }>(
        `/v1/runs/${source}:diff?against=${runId}`,
      );
      expect(diff.status).toBe(200);
      expect(diff.text).not.toContain('"divergence":{');
    },
  );

  it('whose making dies behind runs below it makes the same ones again, each once', async () => {
    const { families } = host.stores;
    const accept = families.acceptChild.bind(families);
    let tries = 0;
    const acceptChild: typeof accept = async (...child) => {
      const row = await accept(...child);
      if (tries++ < 3) throw new HostError('service_unavailable');
      return row;
    };
    Object.assign(families, { acceptChild });
    const runId = await fork({ mode: 'replay' }, source);
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'completed' });
    Object.assign(families, { acceptChild: accept });
    expect(tries).toBeGreaterThan(3);
    await expectSameFamily(source, runId);
  });
});

describe('a branch', () => {
  it('with an open grandchild: each goes on from where it was, and nothing before is done again', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    const open = await asking(source);
    const { length } = await rowsOf(source);
    expect(effects).toBeGreaterThan(0);
    effects = 0;
    const runId = await fork({ mode: 'branch', fromSeq: length }, source);
    const own = await asking(runId);
    expect(effects).toBe(0);
    expect(prefixOf(await rowsOf(own), own, 20)).toEqual(prefixOf(await rowsOf(open), open, 20));
    for (const each of [own, open]) await answer(each);
    for (const each of [runId, source])
      expect(await host.waitFor(each, ended)).toMatchObject({ status: 'completed' });
    // Behind the question the boss calls its clerk and its tool, in each of them.
    expect(effects).toBe(4);
    const dispatched = (await rowsOf(runId)).filter(({ type }) => type === 'node.dispatched');
    expect(dispatched).toHaveLength(3);
    for (const each of [{ runId }, ...(await familyOf(runId))])
      await checkInvariants(host, each.runId);
  });

  it(
    'at events of a run with children: its prefix is the source’s, and it ends',
    { timeout: patient(300_000) },
    async () => {
      const source = await host.startRun({ workflowId: 'conformance-tree' });
      await host.waitFor(source, ended);
      const rows = await rowsOf(source);
      for (const fromSeq of new Set([...placesOf(rows), rows.length])) {
        const runId = await fork({ mode: 'branch', fromSeq }, source);
        await letMadeAgain(runId);
        const { status } = await host.waitFor(runId, ended);
        expect([fromSeq, status]).toEqual([fromSeq, 'completed']);
        expect(prefixOf(await rowsOf(runId), runId, fromSeq)).toEqual(
          prefixOf(rows, source, fromSeq),
        );
        for (const each of [{ runId }, ...(await familyOf(runId))])
          await checkInvariants(host, each.runId);
      }
    },
  );

  it('that is cancelled ends the children that it has of its source', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    await asking(source);
    const { length } = await rowsOf(source);
    const runId = await fork({ mode: 'branch', fromSeq: length }, source);
    const own = await asking(runId);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'cancelled' });
    expect(await host.waitFor(own, ended)).toMatchObject({ status: 'cancelled' });
    await host.api(`/v1/runs/${source}/cancel`, { body: {} });
    await host.waitFor(source, ended);
  });

  it('cancelled at once: nothing of it stays open', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    await asking(source);
    const { length } = await rowsOf(source);
    const runId = await fork({ mode: 'branch', fromSeq: length }, source);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'cancelled' });
    await familyOf(runId);
    await host.api(`/v1/runs/${source}/cancel`, { body: {} });
    await host.waitFor(source, ended);
  });
});

/**
 * Without what names runs, and the time that a tool took, which a recorded one does not. One that had ended and was not taken
 * yet is told of again: the branch has it as a replay of its own.
 */
const plain = (rows: readonly LogRow[], runId: string): string[] =>
  told(
    rows.filter(({ type }) => type !== 'node.dispatched'),
    runId,
  ).map((line) =>
    line.replaceAll(/run-[0-9A-Za-z]{27}/g, 'a run').replaceAll(/,\\"durationMs\\":\d+/g, ''),
  );

describe('another answer in the place of an agent’s that was called as a tool', () => {
  it.each(['live', 'recorded'])(
    'is what the caller gets, and the run of that agent is not asked (tools: %s)',
    async (tools) => {
      const source = await host.startRun({ workflowId: 'calls' });
      await host.waitFor(source, ended);
      const rows = await rowsOf(source);
      const isAnswer = ({ type, payload }: LogRow) =>
        type === 'agent.toolReturned' && payload.includes(`agent:${CLERK}`);
      const isOther = ({ type, payload }: LogRow) =>
        type === 'agent.toolReturned' && payload.includes(TOOL);
      const fromSeq = rows.findIndex(isAnswer);
      const value = { decision: 'another' };
      const runOptionsOverlay = { tools, answer: { seq: fromSeq, value } };
      effects = 0;
      const runId = await fork({ mode: 'branch', fromSeq, runOptionsOverlay }, source);
      expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'completed' });
      const own = await rowsOf(runId);
      const answers = own.filter(isAnswer).map(({ payload }) => payload);
      expect(answers.map((payload) => JSON.parse(payload) as object)).toMatchObject([
        { outcome: value, status: 'ok' },
      ]);
      // What the caller itself calls beside the agent is performed again where that was not told yet.
      const isAgain = tools === 'live' && !rows.slice(0, fromSeq).some(isOther);
      expect(effects).toBe(isAgain ? 1 : 0);
      const below = await familyOf(runId);
      for (const child of below) {
        const { input } =
          (await host.stores.runs.find(runRef(child.runId).tenant, child.runId)) ?? {};
        expect(input?.fork?.mode).toBe('replay');
      }
      // A fork of it has the other answer, too.
      const again = await fork({ mode: 'replay' }, runId);
      expect(await host.waitFor(again, ended)).toMatchObject({ status: 'completed' });
      expect(plain(await rowsOf(again), again)).toEqual(plain(own, runId));
      const path = `/v1/host/openwop-temporal/runs/${source}/diff?against=${runId}`;
      const { body } = await host.api<{ divergence?: object }>(path);
      expect(body.divergence).toMatchObject({
        seq: fromSeq,
        cause: 'tool-result',
        overlay: 'answer',
      });
    },
  );
});

describe('with recorded tools', () => {
  const recorded = { mode: 'branch', runOptionsOverlay: { tools: 'recorded' } };

  it('from events on the children come to what they came to, nothing begins, and nothing is performed', async () => {
    const source = await host.startRun({ workflowId: 'conformance-tree' });
    const whole = await host.waitFor(source, ended);
    const rows = await rowsOf(source);
    // Which of two workers that had ended and were not taken yet is the last is decided anew: the outputs name that one.
    const apart = (all: readonly LogRow[], of: string) =>
      plain(
        all.filter(({ payload }) => !payload.includes('"childStatus"') || payload.includes('late')),
        of,
      ).sort();
    const ofSource = apart(rows, source);
    effects = 0;
    for (const fromSeq of new Set([0, ...placesOf(rows)])) {
      const runId = await fork({ ...recorded, fromSeq }, source);
      const snapshot = await host.waitFor(runId, ended);
      expect([fromSeq, snapshot.status, snapshot.error]).toEqual([fromSeq, 'completed', undefined]);
      expect(snapshot.variables).toEqual(whole.variables);
      const own = await rowsOf(runId);
      expect([fromSeq, apart(own, runId)]).toEqual([fromSeq, ofSource]);
      for (const { runId: below } of await familyOf(runId)) {
        const { input } = (await host.stores.runs.find(runRef(below).tenant, below)) ?? {};
        expect(input?.fork?.mode).toBe('replay');
      }
    }
    expect(effects).toBe(0);
  });

  it('one that was open where its source is left comes to what it came to later', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    const asked = await asking(source);
    const { length } = await rowsOf(source);
    await answer(asked);
    await host.waitFor(source, ended);
    effects = 0;
    const rows = await rowsOf(source);
    for (const fromSeq of isWhole ? [0, length - 1, length, length + 1] : [0, length]) {
      const runId = await fork({ ...recorded, fromSeq }, source);
      expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'completed' });
      expect(plain(await rowsOf(runId), runId)).toEqual(plain(rows, source));
      // And so does a branch of that branch, which has no child of its own there.
      for (const at of isWhole ? [0, length - 1, length] : [0, length]) {
        const again = await fork({ ...recorded, fromSeq: at }, runId);
        expect([fromSeq, at, (await host.waitFor(again, ended)).error]).toEqual([
          ...[fromSeq, at, undefined],
        ]);
        expect(plain(await rowsOf(again), again)).toEqual(plain(rows, source));
      }
      const replay = await fork({ mode: 'replay' }, runId);
      expect(await host.waitFor(replay, ended)).toMatchObject({ status: 'completed' });
      expect(plain(await rowsOf(replay), replay)).toEqual(plain(rows, source));
    }
    expect(effects).toBe(0);
  });

  it('a branch of the branch that performs again lacks the child that nobody has', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    const asked = await asking(source);
    await answer(asked);
    await host.waitFor(source, ended);
    const begun = (await rowsOf(source)).findIndex(({ type }) => type === 'node.dispatched');
    const length = begun + 1;
    const runId = await fork({ ...recorded, fromSeq: length }, source);
    await host.waitFor(runId, ended);
    const runOptionsOverlay = { tools: 'live' };
    const live = await fork({ mode: 'branch', fromSeq: length, runOptionsOverlay }, runId);
    expect(await host.waitFor(live, ended)).toMatchObject({
      ...{ status: 'failed', error: { code: 'replay_source_missing' } },
    });
  });

  it('records stand behind each other, also where one performed again in between', async () => {
    const source = await host.startRun({ workflowId: 'gives', inputs: { got: 'one' } });
    await host.waitFor(source, ended);
    const runId = await fork({ ...recorded, fromSeq: 0 }, source);
    await host.waitFor(runId, ended);
    const { length } = await rowsOf(runId);
    const runOptionsOverlay = { tools: 'live' };
    const live = await fork({ mode: 'branch', fromSeq: length - 1, runOptionsOverlay }, runId);
    await host.waitFor(live, ended);
    const last = await fork({ ...recorded, fromSeq: 0 }, live);
    expect(await host.waitFor(last, ended)).toMatchObject({ status: 'completed' });
    expect(await familyOf(last)).toEqual([]);
  });

  it('what stands behind the record of its source is kept for as long as the branch lives', async () => {
    const source = await host.startRun({ workflowId: 'asks-first' });
    await answer(source);
    await host.waitFor(source, ended);
    await familyOf(source);
    const runId = await fork({ ...recorded, fromSeq: 0 }, source);
    await answer(runId);
    await host.waitFor(runId, ended);
    const last = await fork({ ...recorded, fromSeq: 0 }, runId);
    await host.waitFor(last, waiting);
    const expiring = { keptMs: 0, restMs: 0 };
    expect(await host.stores.retention.expire(runRef(source), expiring)).not.toBe('expired');
    await answer(last);
    expect(await host.waitFor(last, ended)).toMatchObject({ status: 'completed' });
  });

  it('a child that somebody cancelled in the words of a time limit is cancelled', async () => {
    const source = await host.startRun({ workflowId: 'free-asks' });
    const child = await onlyChild(source);
    await host.waitFor(child, waiting);
    await host.api(`/v1/runs/${child}/cancel`, { body: { reason: 'child_timeout' } });
    const { error } = await host.waitFor(source, ended);
    const runId = await fork({ ...recorded, fromSeq: 0 }, source);
    const told = (await host.waitFor(runId, ended)).error;
    expect([error?.code, told?.code]).toEqual(['child_failed', 'child_failed']);
  });
});

describe('what the record lacks', () => {
  // [I92]
  it('with recorded tools: what a child came to behind the end of the record is none of it, whenever that is asked for', async () => {
    const source = await host.startRun({ workflowId: 'asks-late' });
    const child = await onlyChild(source);
    await host.waitFor(child, waiting);
    const overlay = { runOptionsOverlay: { tools: 'recorded' } };
    const runId = await fork({ mode: 'branch', fromSeq: 0, ...overlay }, source);
    await answer(child);
    await host.waitFor(source, ended);
    // Its delay is over only now.
    const { status, error } = await host.waitFor(runId, ended);
    expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
  });

  it('with recorded tools: a child that the source never gave such inputs, or whose end it does not have, is replay_source_missing, and nothing is performed', async () => {
    const ofEnded = await host.startRun({ workflowId: 'gives', inputs: { got: 'one' } });
    await host.waitFor(ofEnded, ended);
    const ofOpen = await host.startRun({ workflowId: 'waits' });
    await asking(ofOpen);
    effects = 0;
    const { length } = await rowsOf(ofOpen);
    for (const [source, fromSeq, inputs] of [
      [ofEnded, 0, { got: 'another' }] as const,
      [ofOpen, length, undefined] as const,
    ]) {
      const runOptionsOverlay = { tools: 'recorded', ...(inputs ? { inputs } : {}) };
      const runId = await fork({ mode: 'branch', fromSeq, runOptionsOverlay }, source);
      const { status, error } = await host.waitFor(runId, ended);
      expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
      expect(await familyOf(runId)).toEqual([]);
    }
    expect(effects).toBe(0);
    await host.api(`/v1/runs/${ofOpen}/cancel`, { body: {} });
    await host.waitFor(ofOpen, ended);
  });

  it('with recorded tools: so is a detached child that goes on, and one that its parent ended and took nothing of', async () => {
    const open = await host.startRun({ workflowId: 'free-asks' });
    const child = await onlyChild(open);
    await host.waitFor(child, waiting);
    const timed = await host.startRun({ workflowId: 'timed' });
    expect((await host.waitFor(timed, ended)).error?.code).toBe('node_timeout');
    for (const source of [open, timed]) {
      const overlay = { runOptionsOverlay: { tools: 'recorded' } };
      const runId = await fork({ mode: 'branch', fromSeq: 0, ...overlay }, source);
      const { status, error } = await host.waitFor(runId, ended);
      expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
    }
    await answer(child);
    await host.waitFor(open, ended);
  });

  it('a replay of a run whose child goes on is replay_source_missing', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    await asking(source);
    const runId = await fork({ mode: 'replay' }, source);
    expect(await host.waitFor(runId, ended)).toMatchObject({
      ...{ status: 'failed', error: { code: 'replay_source_missing' } },
    });
    await familyOf(runId);
    await host.api(`/v1/runs/${source}/cancel`, { body: {} });
    await host.waitFor(source, ended);
  });

  it('a replay of a run that was terminated, and of its detached child, end', async () => {
    const source = await host.startRun({ workflowId: 'detached' });
    await until(
      async () => (await rowsOf(source)).some(({ type }) => type === 'node.dispatched'),
      'it has a child',
    );
    const connection = connectTemporal(host.temporal);
    const client = new Client({ connection, namespace: host.temporal.namespace });
    await client.workflow.getHandle(source).terminate('tested');
    await connection.close();
    await host.waitFor(source, ended);
    const runId = await fork({ mode: 'replay' }, source);
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'failed' });
    await familyOf(runId);
  });
});
