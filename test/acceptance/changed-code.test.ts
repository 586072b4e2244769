// replay.md §Divergence, shown of code that changed (architecture §6): runs of today's workflow code are forked by workers
// whose bundle of it is another one. Whatever changed, the fork ends, says where it went apart, and performs nothing.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { Tool } from '../../src/ports/tools.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { changedCode, TIMER_MORE, type CodeChange } from '../support/builds.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { runRef } from '../support/run-ref.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';

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

let temporal: TestTemporal;
let namespace: string;
let dataDir: string;
let sourceRunId: string;
let source: readonly LogRow[];

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const waits = ({ status }: { status: string }) => status === 'waiting-approval';
const rowsOf = (host: TestHost, runId: string) =>
  host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const payloads = (rows: readonly LogRow[], type: string) =>
  rows.filter((row) => row.type === type).map(({ payload }) => JSON.parse(payload) as JsonObject);
const at = (type: string, nodeId?: string) =>
  source.findIndex((row) => row.type === type && (nodeId === undefined || row.nodeId === nodeId));

/** One after the other: the data folder has one owner. */
async function withHost<T>(cacheDir: string | undefined, act: (host: TestHost) => Promise<T>) {
  const host = await startTestHost({
    ...{ dataDir, temporal: { address: temporal.address, namespace } },
    builtIn: { definitions: [WORKFLOW], agents: [JUDGE], scripts: SCRIPTS, tools: [EFFECT] },
    ...(cacheDir === undefined ? {} : { env: { OPENWOP_CACHE_DIR: cacheDir } }),
  });
  try {
    return await act(host);
  } finally {
    await host.stop();
  }
}

async function withCode<T>(change: CodeChange, act: (host: TestHost) => Promise<T>): Promise<T> {
  const other = await changedCode(change);
  return withHost(other.cacheDir, act).finally(() => other.remove());
}

async function forked(host: TestHost, of: object): Promise<string> {
  const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${sourceRunId}:fork`, {
    body: of,
  });
  expect([status, body]).toMatchObject([201, { sourceRunId }]);
  return body.runId;
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'openwop-changed-'));
  temporal = await startTestTemporal();
  namespace = await temporal.namespace();
  await withHost(undefined, async (host) => {
    sourceRunId = await host.startRun({ workflowId: WORKFLOW.id });
    await host.waitFor(sourceRunId, waits);
    const body = { resumeValue: { action: 'accept' } };
    await host.api(`/v1/runs/${sourceRunId}/interrupts/gate`, { body });
    await host.waitFor(sourceRunId, ended);
    source = await rowsOf(host, sourceRunId);
  });
});

afterAll(async () => {
  await temporal?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

interface Changed {
  readonly change: CodeChange;
  /** What is found, and where in the source. */
  readonly kind: 'output' | 'missing' | 'extra' | 'type-mismatch';
  readonly type: string;
  readonly nodeId?: string;
}

const CHANGED: Readonly<Record<string, Changed>> = {
  'a timer more in each visit': {
    change: [
      /async function visitNode\(run, frame\) \{/,
      '$& await new Promise((done) => setTimeout(done, 1));',
    ],
    ...{ kind: 'missing', type: 'node.started', nodeId: 'note' },
  },
  'all nodes at once, in another order': {
    change: [
      /for \(const nodeId of run\.graph\.starts\)/,
      'for (const nodeId of [...run.nodes.keys()].reverse())',
    ],
    ...{ kind: 'output', type: 'node.started', nodeId: 'end' },
  },
  'two facts of a visit in another order': {
    change: [
      /(if \(outcome === 'completed' && decision\) stateAnswer\(work, decision\);)([^]*?closeBracket\([^;]*;)/,
      '$2 $1',
    ],
    ...{ kind: 'missing', type: 'output.chunk' },
  },
  'a step by another key': {
    change: [/stepName\)\(work, 'prepare'\)/, "stepName)(work, 'ready')"],
    ...{ kind: 'missing', type: 'agent.invocation.started' },
  },
  'another payload': {
    change: [/resolvedProvider: model\.provider/, "resolvedProvider: 'other'"],
    ...{ kind: 'output', type: 'agent.invocation.started' },
  },
  'an emission more': {
    change: [
      /(function stateAnswer\([^]*?)(\(0,\w+\.emitFact\))(\(visit, 'output\.chunk', \{)/,
      "$1$2(visit, 'output.chunk', { step: 'more', payload: { nodeId: 'judge', runId: 'x', chunk: '', isLast: true } }); $2$3",
    ],
    ...{ kind: 'extra', type: 'output.chunk' },
  },
  'an emission less': {
    change: [/function stateAnswer\(work, \{ decision \}\) \{/, '$& return;'],
    ...{ kind: 'missing', type: 'output.chunk', nodeId: 'judge' },
  },
  'a run that is over before its time': {
    change: [/function decideEdges\(run, frame, end\) \{/, '$& return;'],
    ...{ kind: 'missing', type: 'node.started', nodeId: 'gate' },
  },
  'an activity more': {
    change: [
      /async function inferTurn\(work, invocation\) \{/,
      "$& await work.visit.run.steps.run(work.visit, 'callTool', { step: 'more', input: {} });",
    ],
    ...{ kind: 'missing', type: 'agent.reasoned' },
  },
  'an activity less': {
    change: [/invocation\.results = await [^;]*performCalls\)\(work, invocation\)/, 'void 0'],
    ...{ kind: 'missing', type: 'agent.toolReturned' },
  },
  'a step that throws': {
    change: [/async function inferTurn\(work, invocation\) \{/, '$& undefined.gone;'],
    ...{ kind: 'output', type: 'agent.invocation.completed' },
  },
  'code between the steps that throws': {
    change: [/function decideEdges\(run, frame, end\) \{/, '$& undefined.gone;'],
    ...{ kind: 'missing', type: 'agent.invocation.started' },
  },
  'a beginning that throws': {
    change: [/function stateStart\(run\) \{/, '$& undefined.gone;'],
    ...{ kind: 'missing', type: 'run.started' },
  },
  'a message whose handler throws': {
    change: [/function takeAnswer\(run, message, atMs\) \{/, '$& undefined.gone;'],
    ...{ kind: 'missing', type: 'interrupt.resolved' },
  },
};

// [I90]
describe('replay.md §Divergence: code that changed', () => {
  it.each(Object.entries(CHANGED))('%s', async (_name, { change, kind, type, nodeId }) => {
    const before = effects;
    await withCode(change, async (host) => {
      const runId = await forked(host, { mode: 'replay', fromSeq: 0 });
      const { status, error } = await host.waitFor(runId, ended);
      const rows = await rowsOf(host, runId);
      const told = payloads(rows, 'replay.diverged');
      expect([status, error?.code, told]).toMatchObject([
        'failed',
        'replay_diverged',
        [{ sourceRunId, divergenceKind: kind, divergencePoint: type }],
      ]);
      if (kind !== 'extra')
        expect(told).toMatchObject([
          {
            atSequence: at(type, nodeId),
            originalEventId: source[at(type, nodeId)]?.eventId,
          },
        ]);
      const { replayEventId } = told[0] ?? {};
      if (kind !== 'missing') expect(rows.map(({ eventId }) => eventId)).toContain(replayEventId);
      await checkInvariants(host, runId);
    });
    expect(effects).toBe(before);
  });

  it.each([
    ['stop', 'failed', 'replay_diverged'],
    ['live', 'completed', undefined],
  ])('a branch (onDivergence: %s) comes to its end: %s', async (onDivergence, end, code) => {
    const before = effects;
    const { change } = CHANGED['another payload'] ?? { change: TIMER_MORE };
    await withCode(change, async (host) => {
      const of = {
        mode: 'branch',
        fromSeq: at('node.suspended'),
        runOptionsOverlay: { onDivergence },
      };
      const runId = await forked(host, of);
      const { status } = await host.waitFor(runId, (run) => waits(run) || ended(run));
      const body = { resumeValue: { action: 'accept' } };
      if (status === 'waiting-approval')
        await host.api(`/v1/runs/${runId}/interrupts/gate`, { body });
      const { status: last, error } = await host.waitFor(runId, ended);
      const told = payloads(await rowsOf(host, runId), 'replay.diverged');
      expect([last, error?.code, told]).toMatchObject([end, code, [{ divergenceKind: 'output' }]]);
      await checkInvariants(host, runId);
    });
    // One that lives calls again, as its own, and is told what its log has of that: nothing is performed twice.
    expect(effects).toBe(before);
  });

  it('a branch that is told to live closes what its source was saying then', async () => {
    const { change } = CHANGED['another payload'] ?? { change: TIMER_MORE };
    await withCode(change, async (host) => {
      const of = {
        mode: 'branch',
        fromSeq: at('agent.reasoning.delta') + 1,
        runOptionsOverlay: { onDivergence: 'live' },
      };
      const runId = await forked(host, of);
      const { status } = await host.waitFor(runId, (run) => waits(run) || ended(run));
      const body = { resumeValue: { action: 'accept' } };
      if (status === 'waiting-approval')
        await host.api(`/v1/runs/${runId}/interrupts/gate`, { body });
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
      const rows = await rowsOf(host, runId);
      const went = rows.findIndex(({ type }) => type === 'replay.diverged');
      const [said] = payloads(source, 'agent.reasoning.delta');
      expect(payloads(rows.slice(went), 'agent.reasoned')[0]).toMatchObject({
        reasoning: said?.delta,
      });
      await checkInvariants(host, runId);
    });
  });

  it('a branch that lived on behind a difference is neither forked nor exported, by name', async () => {
    const { change } = CHANGED['another payload'] ?? { change: TIMER_MORE };
    await withCode(change, async (host) => {
      const runOptionsOverlay = { onDivergence: 'live' };
      const of = { mode: 'branch', fromSeq: at('node.suspended'), runOptionsOverlay };
      const runId = await forked(host, of);
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
  });

  it('a branch that is told to live ends where its code throws, and fails no workflow task', async () => {
    const { change } = CHANGED['code between the steps that throws'] ?? { change: TIMER_MORE };
    await withCode(change, async (host) => {
      const of = {
        mode: 'branch',
        fromSeq: at('node.suspended'),
        runOptionsOverlay: { onDivergence: 'live' },
      };
      const runId = await forked(host, of);
      const { status, error } = await host.waitFor(runId, ended);
      expect([status, error]).toMatchObject(['failed', { code: 'internal_error' }]);
      await checkInvariants(host, runId);
    });
  });

  it('what the record does not show differs in nothing', async () => {
    await withCode(TIMER_MORE, async (host) => {
      const runId = await forked(host, { mode: 'replay', fromSeq: 0 });
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
    });
  });
});
