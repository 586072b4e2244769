// replay.md §Divergence, shown of code that changed (architecture §6): runs of today's workflow code are forked by workflow
// code that is another one. Whatever changed, the fork ends, says where it went apart, and performs nothing. The bundle of
// one worker has every change, and a fork goes by the one that the first tag of its source names: workers of two bundles are
// in builds.test.ts and cohort-builds.test.ts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { Tool } from '../../src/ports/tools.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { changedCode, type CodeChange, type OtherCode } from '../support/builds.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.changed.judge';
const TOOL = 'test:effect';
const JUDGE: ResolvedAgent = {
  ...{ packName: 'local.changed', packVersion: '1.0.0', systemPrompt: 'You decide.' },
  manifest: {
    ...{ agentId: AGENT, persona: AGENT, modelClass: 'general', systemPrompt: 'You decide.' },
    toolAllowlist: [TOOL],
  },
};
const SCRIPTS = {
  [AGENT]: {
    turns: [
      { chunks: ['Let me ', 'see.'], calls: [{ toolId: TOOL, arguments: {} }] },
      { final: { decision: { refund: true }, confidence: 1 } },
    ],
  },
};
const WORKFLOW = definition(
  'changed',
  [
    node('note', 'core.setVariable', { config: { variableName: 'n', value: 3 } }),
    agentNode('judge', AGENT),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
    node('end', 'core.noop'),
  ],
  [edge('judge', 'gate'), edge('gate', 'end')],
  { variables: [{ name: 'n', type: 'number' }] },
);

/** The outside: each call of it is an effect. */
let effects = 0;
const EFFECT: Tool = {
  ...{ toolId: TOOL, description: 'Counts.', inputSchema: { type: 'object' } },
  ...{ idempotent: false, timeoutMs: 5_000, transport: 'native', safetyTier: 'write' },
  call: async () => ({ effect: ++effects }),
};

let other: OtherCode | undefined;
let host: TestHost;
/** By the name of the change that their forks go by. */
const sources = new Map<string, Source>();

interface Source {
  readonly runId: string;
  readonly rows: readonly LogRow[];
}

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const waits = ({ status }: { status: string }) => status === 'waiting-approval';
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const payloads = (rows: readonly LogRow[], type: string) =>
  rows.filter((row) => row.type === type).map(({ payload }) => JSON.parse(payload) as JsonObject);

function sourceOf(name: string): Source {
  const source = sources.get(name);
  if (!source) throw new Error(`no source has the change ${name}`);
  return source;
}
const at = ({ rows }: Source, type: string, nodeId?: string) =>
  rows.findIndex((row) => row.type === type && (nodeId === undefined || row.nodeId === nodeId));

async function accept(runId: string): Promise<void> {
  const body = { resumeValue: { action: 'accept' } };
  await host.api(`/v1/runs/${runId}/interrupts/gate`, { body });
}

/** A run by today's code, whose forks go by the change. */
async function makeSource(name: string): Promise<void> {
  const runId = await host.startRun({ workflowId: WORKFLOW.id, tags: [name] });
  await host.waitFor(runId, waits);
  await accept(runId);
  expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'completed' });
  sources.set(name, { runId, rows: await rowsOf(runId) });
}

async function forked({ runId: sourceRunId }: Source, of: object): Promise<string> {
  const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${sourceRunId}:fork`, {
    body: of,
  });
  expect([status, body]).toMatchObject([201, { sourceRunId }]);
  return body.runId;
}

interface Changed {
  /** Is in force where `when` holds. */
  readonly change: (when: string) => CodeChange;
  /** What is found, and where in the source. */
  readonly kind: 'output' | 'missing' | 'extra' | 'type-mismatch';
  readonly type: string;
  readonly nodeId?: string;
}

const CHANGED: Readonly<Record<string, Changed>> = {
  'a timer more in each visit': {
    change: (when) => [
      /async function visitNode\(run, frame\) \{/,
      `$& if (${when}) await new Promise((done) => setTimeout(done, 1));`,
    ],
    ...{ kind: 'missing', type: 'node.started', nodeId: 'note' },
  },
  'all nodes at once, in another order': {
    change: (when) => [
      /for \(const nodeId of run\.graph\.starts\)/,
      `for (const nodeId of ${when} ? [...run.nodes.keys()].reverse() : run.graph.starts)`,
    ],
    // Each stands where its source had started it: the first that did not come of the run's start shows it.
    ...{ kind: 'output', type: 'node.started', nodeId: 'gate' },
  },
  'two facts of a visit in another order': {
    change: (when) => [
      /(if \(outcome === 'completed' && decision\) stateAnswer\(work, decision\);)([^]*?closeBracket\([^;]*;)/,
      `if (!(${when})) { $1 } $2 if (${when}) { $1 }`,
    ],
    ...{ kind: 'missing', type: 'output.chunk' },
  },
  'a step by another key': {
    change: (when) => [
      /(stepName\)?)\(work, 'prepare'\)/,
      `$1(work, ${when} ? 'ready' : 'prepare')`,
    ],
    ...{ kind: 'missing', type: 'agent.invocation.started' },
  },
  'another payload': {
    change: (when) => [
      /resolvedProvider: model\.provider/,
      `resolvedProvider: ${when} ? 'other' : model.provider`,
    ],
    ...{ kind: 'output', type: 'agent.invocation.started' },
  },
  'an emission more': {
    change: (when) => [
      /(function stateAnswer\([^]*?)((?:\(0,\w+\.)?emitFact\)?)(\(visit, 'output\.chunk', \{)/,
      `$1if (${when}) $2(visit, 'output.chunk', { step: 'more', payload: { nodeId: 'judge', runId: 'x', chunk: '', isLast: true } }); $2$3`,
    ],
    ...{ kind: 'extra', type: 'output.chunk' },
  },
  'an emission less': {
    change: (when) => [
      /function stateAnswer\(work, \{ decision \}\) \{/,
      `$& if (${when}) return;`,
    ],
    ...{ kind: 'missing', type: 'output.chunk', nodeId: 'judge' },
  },
  'a run that is over before its time': {
    change: (when) => [/function decideEdges\(run, frame, end\) \{/, `$& if (${when}) return;`],
    ...{ kind: 'missing', type: 'node.started', nodeId: 'gate' },
  },
  'an activity more': {
    change: (when) => [
      /async function inferTurn\(work, invocation\) \{/,
      `$& if (${when}) await work.visit.run.steps.run(work.visit, 'callTool', { step: 'more', input: {} });`,
    ],
    ...{ kind: 'missing', type: 'agent.reasoned' },
  },
  'an activity less': {
    change: (when) => [
      /invocation\.results = await [^;]*performCalls\)?\(work, invocation\)/,
      `if (!(${when})) $&`,
    ],
    ...{ kind: 'missing', type: 'agent.toolReturned' },
  },
  'a step that throws': {
    change: (when) => [
      /async function inferTurn\(work, invocation\) \{/,
      `$& if (${when}) undefined.gone;`,
    ],
    ...{ kind: 'output', type: 'agent.invocation.completed' },
  },
  'code between the steps that throws': {
    change: (when) => [
      /function decideEdges\(run, frame, end\) \{/,
      `$& if (${when}) undefined.gone;`,
    ],
    ...{ kind: 'missing', type: 'agent.invocation.started' },
  },
  'a beginning that throws': {
    change: (when) => [/function stateStart\(run\) \{/, `$& if (${when}) undefined.gone;`],
    ...{ kind: 'missing', type: 'run.started' },
  },
  'a message whose handler throws': {
    change: (when) => [
      /function takeAnswer\(run, message, atMs\) \{/,
      `$& if (${when}) undefined.gone;`,
    ],
    ...{ kind: 'missing', type: 'interrupt.resolved' },
  },
};
const SILENT = 'a timer that the record does not show';
const RUN_BEGINS = /async function runWorkflow\(input\) \{/;

/** What `globalThis` has is each run's own. */
function allChanges(): readonly CodeChange[] {
  const isOf = (name: string) => `globalThis.changedBy === ${JSON.stringify(name)}`;
  return [
    ...Object.entries(CHANGED).map(([name, { change }]) => change(isOf(name))),
    [RUN_BEGINS, `$& if (${isOf(SILENT)}) await new Promise((done) => setTimeout(done, 1));`],
    // Last, and so in front of the timer.
    [RUN_BEGINS, '$& globalThis.changedBy = input.fork && input.tags[0];'],
  ];
}

beforeAll(async () => {
  other = await changedCode(...allChanges());
  host = await startTestHost({
    builtIn: { definitions: [WORKFLOW], agents: [JUDGE], scripts: SCRIPTS, tools: [EFFECT] },
    env: { OPENWOP_CACHE_DIR: other.cacheDir },
  });
  await Promise.all([...Object.keys(CHANGED), SILENT].map(makeSource));
});

afterAll(async () => {
  await host?.stop();
  await other?.remove();
});

// [I90]
describe('replay.md §Divergence: code that changed', () => {
  it.each(Object.entries(CHANGED))('%s', async (name, { kind, type, nodeId }) => {
    const before = effects;
    const source = sourceOf(name);
    const runId = await forked(source, { mode: 'replay', fromSeq: 0 });
    const { status, error } = await host.waitFor(runId, ended);
    const rows = await rowsOf(runId);
    const told = payloads(rows, 'replay.diverged');
    expect([status, error?.code, told]).toMatchObject([
      'failed',
      'replay_diverged',
      [{ sourceRunId: source.runId, divergenceKind: kind, divergencePoint: type }],
    ]);
    const atSequence = at(source, type, nodeId);
    if (kind !== 'extra')
      expect(told).toMatchObject([
        { atSequence, originalEventId: source.rows[atSequence]?.eventId },
      ]);
    const { replayEventId } = told[0] ?? {};
    if (kind !== 'missing') expect(rows.map(({ eventId }) => eventId)).toContain(replayEventId);
    await checkInvariants(host, runId);
    expect(effects).toBe(before);
  });

  it.each([
    ['stop', 'failed', 'replay_diverged'],
    ['live', 'completed', undefined],
  ])('a branch (onDivergence: %s) comes to its end: %s', async (onDivergence, end, code) => {
    const before = effects;
    const source = sourceOf('another payload');
    const runId = await forked(source, {
      mode: 'branch',
      fromSeq: at(source, 'node.suspended'),
      runOptionsOverlay: { onDivergence },
    });
    const { status } = await host.waitFor(runId, (run) => waits(run) || ended(run));
    if (status === 'waiting-approval') await accept(runId);
    const { status: last, error } = await host.waitFor(runId, ended);
    const told = payloads(await rowsOf(runId), 'replay.diverged');
    expect([last, error?.code, told]).toMatchObject([end, code, [{ divergenceKind: 'output' }]]);
    await checkInvariants(host, runId);
    // One that lives calls again, as its own, and is told what its log has of that: nothing is performed twice.
    expect(effects).toBe(before);
  });

  it('a branch that is told to live closes what its source was saying then', async () => {
    const source = sourceOf('another payload');
    const runId = await forked(source, {
      mode: 'branch',
      fromSeq: at(source, 'agent.reasoning.delta') + 1,
      runOptionsOverlay: { onDivergence: 'live' },
    });
    const { status } = await host.waitFor(runId, (run) => waits(run) || ended(run));
    if (status === 'waiting-approval') await accept(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const rows = await rowsOf(runId);
    const went = rows.findIndex(({ type }) => type === 'replay.diverged');
    const [said] = payloads(source.rows, 'agent.reasoning.delta');
    expect(payloads(rows.slice(went), 'agent.reasoned')[0]).toMatchObject({
      reasoning: said?.delta,
    });
    await checkInvariants(host, runId);
  });

  it('a branch that lived on behind a difference is neither forked nor exported, by name', async () => {
    const source = sourceOf('another payload');
    const runOptionsOverlay = { onDivergence: 'live' };
    const of = { mode: 'branch', fromSeq: at(source, 'node.suspended'), runOptionsOverlay };
    const runId = await forked(source, of);
    await host.waitFor(runId, waits);
    const body = { mode: 'branch', fromSeq: 0 };
    for (const refused of [
      await host.api(`/v1/runs/${runId}:fork`, { body }),
      await host.api(`/v1/host/openwop-temporal/runs/${runId}/bundle`),
    ])
      expect([refused.status, refused.body.error]).toEqual([501, 'capability_not_provided']);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    await host.waitFor(runId, ended);
  });

  it('a branch that is told to live ends where its code throws, and fails no workflow task', async () => {
    const source = sourceOf('code between the steps that throws');
    const runId = await forked(source, {
      mode: 'branch',
      fromSeq: at(source, 'node.suspended'),
      runOptionsOverlay: { onDivergence: 'live' },
    });
    const { status, error } = await host.waitFor(runId, ended);
    expect([status, error]).toMatchObject(['failed', { code: 'internal_error' }]);
    await checkInvariants(host, runId);
  });

  it('what the record does not show differs in nothing', async () => {
    const source = sourceOf(SILENT);
    const runId = await forked(source, { mode: 'replay', fromSeq: 0 });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
  });
});
