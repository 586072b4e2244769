// Forks on a real host (architecture §6): made of what Temporal and the log hold of their source, also where payloads are
// encrypted; their logs come back from their own histories alone. Nothing starts one by HTTP yet.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LogRow } from '../../src/ports/log.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.forks.clerk';
const WORKFLOW = definition(
  'forked',
  [
    agentNode('think', AGENT),
    node('fail', 'core.fail', { settings: { retry: { maxAttempts: 2, initialDelayMs: 10 } } }),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
    node('set', 'core.setVariable', { config: { variableName: 'n', value: 3 } }),
  ],
  [edge('think', 'fail'), edge('fail', 'gate', { triggerRule: 'any_failed' }), edge('gate', 'set')],
  { variables: [{ name: 'n', type: 'number' }] },
);

const sets = (id: string, letter: string) =>
  node(id, 'core.setVariable', {
    config: { variableName: 'text', value: letter.repeat(12_000) },
  });
/** Together more than a workflow task may carry, and a page of a recording. */
const LARGE = definition(
  'large',
  [sets('a', 'a'), sets('b', 'b'), node('end', 'core.noop')],
  [
    edge('a', 'b'),
    edge('b', 'a', { condition: { type: 'truthy', left: 'again' } }),
    edge('b', 'end'),
  ],
  {
    variables: [
      { name: 'text', type: 'string' },
      { name: 'again', type: 'boolean', defaultValue: true },
    ],
    settings: { maxLoopbackIterations: 40 },
  },
);

let host: TestHost;
let folder: string;
let source: readonly LogRow[];
let sourceRunId: string;

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });

async function answerGate(runId: string): Promise<void> {
  await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
  const body = { resumeValue: { action: 'accept' } };
  expect((await host.api(`/v1/runs/${runId}/interrupts/gate`, { body })).status).toBe(200);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-forks-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [
      { chunks: ['Let ', 'me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      { final: { decision: { told: true }, confidence: 1 } },
    ],
  });
  for (const each of [WORKFLOW, LARGE]) await writeDefinition(join(folder, 'definitions'), each);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    encryption: true,
  });
  sourceRunId = await host.startRun({ workflowId: WORKFLOW.id });
  await answerGate(sourceRunId);
  await host.waitFor(sourceRunId, ended);
  source = await rowsOf(sourceRunId);
}, 120_000);

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** As an acceptance will do it: the source's input under an id of its own. */
async function startFork(
  of: Pick<ForkOf, 'mode' | 'fromSeq'>,
  { sourceRunId: from, length } = { sourceRunId, length: source.length },
): Promise<string> {
  const row = await host.stores.runs.find('default', from);
  if (!row) throw new Error('no source');
  const runId = `run-${randomUUID()}`;
  const input = { ...row.input, runId, fork: { ...of, sourceRunId: from, length } };
  const { tenant, workflowId } = row;
  await host.stores.runs.accept({ runId, tenant, workflowId, input, createdAtMs: Date.now() });
  const { temporalRunId } = await host.engine.start(input);
  await host.stores.runs.markStarted(runRef(runId), temporalRunId);
  return runId;
}

/** What a row says, under its source's name; live text is told once more only by those who say it. */
const told = (rows: readonly LogRow[], runId: string): string[] =>
  rows.map(({ type, nodeId, payload, timestampMs, sequence }) =>
    JSON.stringify({
      ...{ type, nodeId, payload: payload.replaceAll(runId, sourceRunId) },
      ...{ timestampMs, sequence },
    }),
  );
const facts = (rows: readonly LogRow[], runId: string): string[] =>
  rows
    .filter(({ type }) => type !== 'agent.reasoning.delta')
    .map(({ type, nodeId, payload }) =>
      JSON.stringify({ type, nodeId, payload: payload.replaceAll(runId, sourceRunId) }),
    );

describe('replay.md §Modes', () => {
  it.each([
    ['its beginning', () => 0],
    ['the middle of a stream', () => source.findIndex(({ key }) => key.endsWith('#d1'))],
    ['a question', () => source.findIndex(({ type }) => type === 'node.suspended')],
    ['its end', () => source.length],
  ])('a replay from %s states what its source stated, and performs nothing', async (_from, at) => {
    const fromSeq = at();
    const runId = await startFork({ mode: 'replay', fromSeq });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const rows = await rowsOf(runId);
    expect(told(rows, runId).slice(0, fromSeq)).toEqual(
      told(source, sourceRunId).slice(0, fromSeq),
    );
    expect(facts(rows, runId)).toEqual(facts(source, sourceRunId));
    await checkInvariants(host, runId);
  });

  it('a replay of more than one workflow task may carry takes several', async () => {
    const large = await host.startRun({ workflowId: LARGE.id });
    const { status } = await host.waitFor(large, ended);
    const rows = await rowsOf(large);
    expect(rows.length).toBeGreaterThan(60);
    for (const fromSeq of [0, rows.length]) {
      const from = { sourceRunId: large, length: rows.length };
      const runId = await startFork({ mode: 'replay', fromSeq }, from);
      expect((await host.waitFor(runId, ended)).status).toBe(status);
      const again = await rowsOf(runId);
      expect(again.map(({ key, payload }) => [key, payload])).toEqual(
        rows.map(({ key, payload }) => [key, payload]),
      );
      await checkInvariants(host, runId);
    }
  });

  it('a branch from a human’s answer asks again, and takes what is answered now', async () => {
    const fromSeq = source.findIndex(({ type }) => type === 'interrupt.resolved');
    const runId = await startFork({ mode: 'branch', fromSeq });
    await answerGate(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const rows = await rowsOf(runId);
    expect(told(rows, runId).slice(0, fromSeq)).toEqual(
      told(source, sourceRunId).slice(0, fromSeq),
    );
    expect(rows.at(-1)?.type).toBe('run.completed');
    await checkInvariants(host, runId);
  });

  it('a branch from a decision asks the model again', async () => {
    const calls = source.map(({ type }) => type).lastIndexOf('agent.reasoned');
    const runId = await startFork({ mode: 'branch', fromSeq: calls < 0 ? 0 : calls });
    await answerGate(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    await checkInvariants(host, runId);
  });
});
