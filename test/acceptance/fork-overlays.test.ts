// What a branch goes by that its source did not (replay.md §Modes, runOptionsOverlay), on a real host: each at its event.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import type { LogRow } from '../../src/ports/log.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.overlays.judge';
const WORKFLOW = definition(
  'judged',
  [
    agentNode('judge', AGENT),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
    node('end', 'core.noop'),
  ],
  [edge('judge', 'gate'), edge('gate', 'end')],
  {
    variables: [
      { name: 'amount', type: 'number', defaultValue: 10 },
      { name: 'card', type: 'string', defaultValue: '', sensitive: true },
    ],
  },
);

let host: TestHost;
let folder: string;
let sourceRunId: string;
let source: readonly LogRow[];

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const waits = ({ status }: { status: string }) => status === 'waiting-approval';
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const payloads = (rows: readonly LogRow[], type: string) =>
  rows.filter((row) => row.type === type).map(({ payload }) => JSON.parse(payload) as JsonObject);
const at = (type: string) => source.findIndex((row) => row.type === type);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-overlays-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [
      {
        cases: [
          {
            ...{ path: 'prompt.rule', equals: 'curious' },
            turn: { calls: [{ toolId: 'core:clock', arguments: { again: true } }] },
          },
        ],
        ...{ chunks: ['Let ', 'me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      },
      {
        cases: [
          {
            ...{ path: 'prompt.rule', equals: 'strict' },
            turn: { chunks: ['Strictly.'], final: { decision: { refund: false }, confidence: 1 } },
          },
        ],
        ...{ chunks: ['Kindly.'], final: { decision: { refund: true }, confidence: 1 } },
      },
    ],
  });
  await writeDefinition(join(folder, 'definitions'), WORKFLOW);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    env: { OPENWOP_TEST_MODE: 'true' },
  });
  sourceRunId = await host.startRun({ workflowId: WORKFLOW.id });
  await host.waitFor(sourceRunId, waits);
  const body = { resumeValue: { action: 'accept' } };
  await host.api(`/v1/runs/${sourceRunId}/interrupts/gate`, { body });
  await host.waitFor(sourceRunId, ended);
  source = await rowsOf(sourceRunId);
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

const ask = (fromSeq: number, runOptionsOverlay: object, mode = 'branch') =>
  host.api<{ runId: string; error: string; details: JsonObject }>(`/v1/runs/${sourceRunId}:fork`, {
    body: { mode, fromSeq, runOptionsOverlay },
  });

async function branch(fromSeq: number, overlay: object): Promise<string> {
  const { status, body } = await ask(fromSeq, overlay);
  expect([status, body]).toMatchObject([201, { sourceRunId }]);
  return body.runId;
}

/** To its end, its human having said yes. */
async function endOf(runId: string): Promise<readonly LogRow[]> {
  const { status } = await host.waitFor(runId, (run) => waits(run) || ended(run));
  const body = { resumeValue: { action: 'accept' } };
  if (status === 'waiting-approval') await host.api(`/v1/runs/${runId}/interrupts/gate`, { body });
  expect((await host.waitFor(runId, ended)).status).toBe('completed');
  await checkInvariants(host, runId);
  return rowsOf(runId);
}

describe('replay.md §Modes: a branch goes by its overlay from fromSeq on', () => {
  it('another prompt, from the beginning and in a conversation that another one began', async () => {
    const agents = { [AGENT]: { systemPrompt: 'Be careful.\nrule: strict' } };
    const decisions = source.flatMap(({ type }, index) =>
      type === 'agent.reasoned' ? [index] : [],
    );
    for (const fromSeq of [0, decisions[1] ?? -1]) {
      const runId = await branch(fromSeq, { agents });
      const rows = await endOf(runId);
      expect(payloads(rows, 'agent.decided')).toMatchObject([{ decision: { refund: false } }]);
      const { body } = await host.api<JsonObject>(`/v1/runs/${runId}`);
      expect(body.fork).toEqual({
        ...{ sourceRunId, fromSeq, mode: 'branch', runOptionsOverlay: { agents } },
      });
    }
    expect(payloads(source, 'agent.decided')).toMatchObject([{ decision: { refund: true } }]);
    expect(await rowsOf(sourceRunId)).toEqual(source);
  });

  it.each([
    ['the last part of its id', 'judge'],
    ['its id', AGENT],
  ])('an agent goes by %s', async (_what, name) => {
    const systemPrompt = 'rule: strict';
    const runId = await branch(0, { agents: { [name]: { systemPrompt } } });
    expect(payloads(await endOf(runId), 'agent.decided')).toMatchObject([
      { decision: { refund: false } },
    ]);
    const { body } = await host.api<{ fork: JsonObject }>(`/v1/runs/${runId}`);
    expect(body.fork.runOptionsOverlay).toEqual({ agents: { [AGENT]: { systemPrompt } } });
  });

  it('one that nobody has is named, with those that there are', async () => {
    const { status, body } = await ask(0, { agents: { jugde: { systemPrompt: 'x' } } });
    expect([status, body.error]).toEqual([404, 'agent_not_found']);
    expect(body.details.reason).toBe(`The run has no agent "jugde". It has: ${AGENT}.`);
    const twice = { [AGENT]: { systemPrompt: 'x' }, judge: { systemPrompt: 'y' } };
    expect((await ask(0, { agents: twice })).body.error).toBe('validation_error');
  });

  it('the comparison tells the words of another prompt, and no model that nobody asked for', async () => {
    const runId = await branch(0, { agents: { judge: { systemPrompt: 'rule: strict' } } });
    await endOf(runId);
    const path = `/v1/host/openwop-temporal/runs/${sourceRunId}/diff?against=${runId}`;
    const { body } = await host.api<{ pinned: { fact: string; differences: JsonObject[] }[] }>(
      path,
    );
    expect(body.pinned.map(({ fact }) => fact)).toEqual(['agents']);
    const pointers = body.pinned.flatMap(({ differences }) =>
      differences.map((one) => one.pointer),
    );
    expect(pointers).toEqual([`/${AGENT}/resolved/packVersion`, `/${AGENT}/resolved/systemPrompt`]);
  });

  it('another model', async () => {
    const configurable = { 'ai.provider': 'scripted', 'ai.model': 'another' };
    for (const fromSeq of [0, at('agent.toolReturned')]) {
      const rows = await endOf(await branch(fromSeq, { configurable }));
      const own = rows.filter(({ sequence }) => sequence >= fromSeq);
      const models = new Set(payloads(own, 'provider.usage').map(({ model }) => model));
      expect([...models]).toEqual(['another']);
    }
  });

  it('what a tool gave: nothing is performed', async () => {
    const fromSeq = at('agent.toolReturned');
    const value = { now: 'a long time ago' };
    const rows = await endOf(await branch(fromSeq, { answer: { seq: fromSeq, value } }));
    const [returned, ...more] = payloads(rows, 'agent.toolReturned');
    expect([returned, more]).toMatchObject([{ outcome: value, status: 'ok' }, []]);
  });

  it('what a model said: none is asked', async () => {
    const fromSeq = source.findLastIndex(({ type }) => type === 'agent.reasoned');
    const value = { decision: { refund: 'half' }, confidence: 0.9 };
    const rows = await endOf(await branch(fromSeq, { answer: { seq: fromSeq, value } }));
    expect(payloads(rows, 'agent.decided')).toMatchObject([{ decision: { refund: 'half' } }]);
    expect(payloads(rows, 'provider.usage').length).toBe(
      payloads(source.slice(0, fromSeq), 'provider.usage').length,
    );
  });

  it('what a human decided: nobody is asked', async () => {
    const fromSeq = at('interrupt.resolved');
    const runId = await branch(fromSeq, { answer: { seq: fromSeq, value: { action: 'reject' } } });
    await host.waitFor(runId, ended);
    const rows = await rowsOf(runId);
    const [resolved, ...more] = payloads(rows, 'interrupt.resolved');
    expect([resolved, more]).toMatchObject([{ resumeValue: { action: 'reject' } }, []]);
    await checkInvariants(host, runId);
  });

  it('other inputs', async () => {
    const runId = await branch(0, { inputs: { amount: 99, card: 'a-number-of-a-card' } });
    const rows = await endOf(runId);
    expect(payloads(rows, 'run.started')).toMatchObject([{ inputs: { amount: 99 } }]);
    const { body } = await host.api<{ fork: JsonObject }>(`/v1/runs/${runId}`);
    expect(body.fork).toMatchObject({ runOptionsOverlay: { inputs: { amount: 99 } } });
    // What is declared sensitive is shown nowhere.
    expect(JSON.stringify([body, rows])).not.toContain('a-number-of-a-card');
  });

  it.each([
    [
      'an agent that is not of the run',
      () => [0, { agents: { 'local.other': { systemPrompt: 'x' } } }],
      404,
      'agent_not_found',
    ],
    [
      'a version that is not here',
      () => [0, { agents: { [AGENT]: { packVersion: '99.0.0' } } }],
      404,
      'agent_not_found',
    ],
    [
      'an agent of which nothing is said',
      () => [0, { agents: { [AGENT]: {} } }],
      400,
      'validation_error',
    ],
    ['a member that is none', () => [0, { prompt: 'x' }], 400, 'validation_error'],
    [
      'inputs behind the first event',
      () => [1, { inputs: { amount: 1 } }],
      400,
      'validation_error',
    ],
    [
      'an input of a wrong type',
      () => [0, { inputs: { amount: 'much' } }],
      400,
      'validation_error',
    ],
    [
      'a configuration out of range',
      () => [0, { configurable: { temperature: 9 } }],
      400,
      'validation_error',
    ],
    [
      'an answer behind fromSeq',
      () => [3, { answer: { seq: at('agent.toolReturned'), value: 1 } }],
      400,
      'validation_error',
    ],
    [
      'an answer to what is none',
      () => [0, { answer: { seq: 0, value: 1 } }],
      400,
      'validation_error',
    ],
    [
      'an answer at the end',
      () => [source.length, { answer: { seq: source.length, value: 1 } }],
      400,
      'validation_error',
    ],
    [
      'an answer of the wrong shape',
      () => [at('interrupt.resolved'), { answer: { seq: at('interrupt.resolved'), value: 7 } }],
      400,
      'validation_error',
    ],
    [
      'an answer that is too large',
      () => [
        at('agent.toolReturned'),
        { answer: { seq: at('agent.toolReturned'), value: 'x'.repeat(100_000) } },
      ],
      413,
      'payload_too_large',
    ],
  ] as const)('is refused: %s', async (_what, of, status, error) => {
    const [fromSeq, overlay] = of() as [number, object];
    const answer = await ask(fromSeq, overlay);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });
});

describe('replay.md §Modes: a branch whose calls get what its source got', () => {
  const strict = { agents: { [AGENT]: { systemPrompt: 'rule: strict' } }, tools: 'recorded' };

  it('performs none: the same call has the same result', async () => {
    const [before] = payloads(source, 'agent.toolReturned');
    for (const fromSeq of [0, at('agent.toolReturned')]) {
      const rows = await endOf(await branch(fromSeq, strict));
      // A clock that was read again would say another time.
      expect(payloads(rows, 'agent.toolReturned').map(({ outcome }) => outcome)).toEqual([
        before?.outcome,
      ]);
      expect(payloads(rows, 'agent.decided')).toMatchObject([{ decision: { refund: false } }]);
    }
  });

  it('what the source did not call is replay_source_missing: nothing is performed for it', async () => {
    const agents = { [AGENT]: { systemPrompt: 'rule: curious' } };
    const runId = await branch(0, { agents, tools: 'recorded' });
    const { status, error } = await host.waitFor(runId, ended);
    expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
    expect(payloads(await rowsOf(runId), 'agent.toolReturned')).not.toMatchObject([
      { status: 'ok' },
    ]);
    await checkInvariants(host, runId);
  });

  it('a fork of it goes by the same results, until it is told otherwise', async () => {
    const first = await branch(0, strict);
    await endOf(first);
    const forkOf = async (overlay: object) => {
      const body = { mode: 'branch', fromSeq: 1, runOptionsOverlay: overlay };
      const made = await host.api<{ runId: string }>(`/v1/runs/${first}:fork`, { body });
      expect(made.status).toBe(201);
      return payloads(await endOf(made.body.runId), 'agent.toolReturned').map(
        ({ outcome }) => outcome,
      );
    };
    const [before] = payloads(source, 'agent.toolReturned');
    expect(await forkOf({})).toEqual([before?.outcome]);
    expect(await forkOf({ tools: 'live' })).not.toEqual([before?.outcome]);
  });
});
