// Effects of a branch (architecture §5, §6), on a real host: what its log has from its source was performed, and a later
// attempt of the same visit repeats none of it silently, whatever ledger the branch has of its own.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { paced } from '../support/machine.ts';
import { newestHistory } from '../support/newest-history.ts';
import { writeDefinition } from '../support/opensentience/agent-folders.ts';
import { PAY, payingTool } from '../support/paying-tool.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.effects.payer';
/** Its agent pays, then says nothing of use, and is asked once more. */
const WORKFLOW = definition(
  'paid-twice',
  [
    agentNode('pay', AGENT, {
      inputs: { amount: { type: 'variable', variableName: 'amount' } },
      settings: { retry: { maxAttempts: 2, initialDelayMs: 1 } },
    }),
  ],
  [],
  { variables: [{ name: 'amount', type: 'number', defaultValue: 10 }] },
);

const CLERK = 'local.effects.clerk';
const JUDGE = 'local.effects.judge';
/** Its agent pays; beside it, once somebody says so, another one judges. */
const BESIDE = definition(
  'paid-beside',
  [
    agentNode('pay', CLERK),
    node('gate', 'core.approvalGate', { config: { title: 'Judge?' } }),
    agentNode('judge', JUDGE),
    node('end', 'core.noop'),
  ],
  [edge('gate', 'judge'), edge('pay', 'end'), edge('judge', 'end')],
);
const COHORTS = '/v1/host/openwop-temporal/cohorts';

const agent = (
  agentId: string,
  asked: { readonly systemPrompt: string; readonly toolAllowlist: string[] },
) => ({
  manifest: { ...{ agentId, persona: 'Clerk', modelClass: 'general' as const }, ...asked },
  ...{ packName: 'local.effects', packVersion: '1.0.0', systemPrompt: asked.systemPrompt },
});

const paying = payingTool(paced(30_000));
let host: TestHost;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-effects-'));
  for (const workflow of [WORKFLOW, BESIDE]) await writeDefinition(folder, workflow);
  host = await startTestHost({
    fixturesDir: folder,
    builtIn: {
      tools: [paying.tool],
      agents: [
        agent(AGENT, { systemPrompt: 'You pay.', toolAllowlist: [PAY] }),
        agent(CLERK, { systemPrompt: 'You pay.', toolAllowlist: [PAY] }),
        agent(JUDGE, { systemPrompt: 'You judge.', toolAllowlist: [] }),
      ],
      scripts: {
        [CLERK]: {
          turns: [
            { calls: [{ toolId: PAY, arguments: { amount: 10 } }] },
            { final: { decision: { paid: true }, confidence: 1 } },
          ],
        },
        [JUDGE]: { turns: [{ final: { decision: { fine: true }, confidence: 1 } }] },
        [AGENT]: {
          turns: [
            {
              cases: [
                {
                  ...{ path: 'prompt.rule', equals: 'more' },
                  turn: { calls: [{ toolId: PAY, arguments: { amount: 11 } }] },
                },
              ],
              calls: [{ toolId: PAY, arguments: { amount: '{{task.amount}}' } }],
            },
            {
              cases: [
                {
                  ...{ path: 'prompt.rule', equals: 'again' },
                  turn: { calls: [{ toolId: PAY, arguments: { amount: '{{task.amount}}' } }] },
                },
              ],
              raw: 'no decision',
            },
          ],
        },
      },
    },
  });
});
afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  paying.paid.length = 0;
  paying.behave = async (amount) => ({ paid: amount });
});

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const asks = (run: { status: string }) => run.status === 'waiting-approval' || ended(run);
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });

async function source(): Promise<{ runId: string; retriedAt: number }> {
  const runId = await host.startRun({ workflowId: WORKFLOW.id });
  await host.waitFor(runId, ended);
  const rows = await rowsOf(runId);
  return { runId, retriedAt: rows.findIndex(({ type }) => type === 'node.retried') };
}

async function branch(sourceRunId: string, fromSeq: number, overlay: object): Promise<string> {
  const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${sourceRunId}:fork`, {
    body: { mode: 'branch', fromSeq, runOptionsOverlay: overlay },
  });
  expect([status, body]).toMatchObject([201, {}]);
  return body.runId;
}

async function answer(runId: string, action: string, nodeId = 'pay'): Promise<void> {
  const body = { resumeValue: { action } };
  const { status } = await host.api(`/v1/runs/${runId}/interrupts/${nodeId}`, { body });
  expect(status).toBe(200);
}

/** Whether a question of the run has looked for recorded answers, and goes by none of them. */
async function hasLeftRecord(runId: string): Promise<boolean> {
  const events = await newestHistory(host.temporal, runId);
  return events.some(({ activityTaskScheduledEventAttributes: it }) =>
    it?.activityId?.endsWith('.left'),
  );
}

async function returnsOf(runId: string): Promise<JsonObject[]> {
  const rows = await rowsOf(runId);
  return rows
    .filter(({ type }) => type === 'agent.toolReturned')
    .map(({ payload }) => JSON.parse(payload) as JsonObject);
}

describe('architecture §5: nothing is repeated silently, in a branch neither', () => {
  // [I91]
  it('the same call of a later attempt gets what the source was told, and nothing is performed', async () => {
    const { runId, retriedAt } = await source();
    expect(paying.paid).toEqual([10]);
    const forked = await branch(runId, retriedAt, {});
    expect((await host.waitFor(forked, asks)).status).toBe('failed');
    expect(paying.paid).toEqual([10]);
    expect(await returnsOf(forked)).toMatchObject([
      { status: 'ok', outcome: { paid: 10 } },
      { status: 'ok', outcome: { paid: 10 } },
    ]);
    await checkInvariants(host, forked);
  });

  it('another call of the tool goes to a human, who is told that an earlier one may stand', async () => {
    const { runId, retriedAt } = await source();
    const agents = { [AGENT]: { systemPrompt: 'You pay.\nrule: more' } };
    const forked = await branch(runId, retriedAt, { agents });
    expect(await host.waitFor(forked, asks)).toMatchObject({
      status: 'waiting-approval',
      interrupt: {
        ...{ artifactType: 'effect-in-doubt', actions: ['accept', 'reject'] },
        title: expect.stringMatching(/^Perform [^ ]+\?$/) as unknown,
        description: expect.stringMatching(/may have happened: node pay of this run\./) as unknown,
      },
    });
    expect(paying.paid).toEqual([10]);
    await answer(forked, 'accept');
    expect((await host.waitFor(forked, ended)).status).toBe('failed');
    expect(paying.paid).toEqual([10, 11]);
    await checkInvariants(host, forked);
  });

  // [I91]
  it('a new call that was asked about where a branch leaves is asked about once, and performed once', async () => {
    const { runId, retriedAt } = await source();
    const agents = { [AGENT]: { systemPrompt: 'You pay.\nrule: more' } };
    const asking = await branch(runId, retriedAt, { agents });
    await host.waitFor(asking, asks);
    const { length } = await rowsOf(asking);
    const forked = await branch(asking, length, {});
    await host.waitFor(forked, asks);
    await answer(forked, 'accept');
    expect((await host.waitFor(forked, asks)).status).toBe('failed');
    expect(paying.paid).toEqual([10, 11]);
    const asked = (await rowsOf(forked)).filter(({ type }) => type === 'interrupt.requested');
    expect(asked).toHaveLength(1);
    await checkInvariants(host, forked);
    await answer(asking, 'reject');
    await host.waitFor(asking, ended);
  });

  it('a call whose end nobody knew goes to a human, though its tool could be asked by its key', async () => {
    paying.behave = () => Promise.reject(new Error('the connection broke'));
    const runId = await host.startRun({ workflowId: WORKFLOW.id });
    await host.waitFor(runId, asks);
    await answer(runId, 'reject');
    // The second attempt of the source asks as well.
    await host.waitFor(runId, asks);
    const rows = await rowsOf(runId);
    const retriedAt = rows.findIndex(({ type }) => type === 'node.retried');
    expect(paying.paid).toEqual([10]);
    const forked = await branch(runId, retriedAt, {});
    expect(await host.waitFor(forked, asks)).toMatchObject({
      status: 'waiting-approval',
      interrupt: { artifactType: 'effect-in-doubt' },
    });
    expect(paying.paid).toEqual([10]);
    paying.behave = async (amount) => ({ paid: amount });
    await answer(forked, 'accept');
    expect((await host.waitFor(forked, ended)).status).toBe('failed');
    expect(paying.paid).toEqual([10, 10]);
    await answer(runId, 'reject');
    await host.waitFor(runId, ended);
  });

  it('the same call once more, behind one that a human left in doubt, goes to a human', async () => {
    paying.behave = () => Promise.reject(new Error('the connection broke'));
    const runId = await host.startRun({ workflowId: WORKFLOW.id });
    await host.waitFor(runId, asks);
    await answer(runId, 'reject');
    await host.waitFor(runId, asks);
    const rows = await rowsOf(runId);
    const returnedAt = rows.findIndex(({ type }) => type === 'agent.toolReturned');
    const agents = { [AGENT]: { systemPrompt: 'You pay.\nrule: again' } };
    const forked = await branch(runId, returnedAt + 1, { agents });
    expect(await host.waitFor(forked, asks)).toMatchObject({
      status: 'waiting-approval',
      interrupt: { artifactType: 'effect-in-doubt' },
    });
    expect(paying.paid).toEqual([10]);
    for (const open of [forked, runId])
      await host.api(`/v1/runs/${open}/cancel`, { body: {}, headers: {} });
  });
});

/** The connection of a payment broke, and a human had it made again. */
async function answered(): Promise<{ runId: string; at: (type: string) => number }> {
  paying.behave = () => Promise.reject(new Error('the connection broke'));
  const runId = await host.startRun({ workflowId: WORKFLOW.id });
  await host.waitFor(runId, asks);
  paying.behave = async (amount) => ({ paid: amount });
  await answer(runId, 'accept');
  await host.waitFor(runId, ended);
  const rows = await rowsOf(runId);
  expect(paying.paid).toEqual([10, 10]);
  paying.paid.length = 0;
  return { runId, at: (type) => rows.findIndex((row) => row.type === type) };
}

describe('architecture §5: a word that a source was given permits nothing in its branch', () => {
  // [I91]
  it('a call that was under way by it is in doubt, and is asked about again', async () => {
    const { runId, at } = await answered();
    const forked = await branch(runId, at('agent.toolReturned'), {});
    expect(await host.waitFor(forked, asks)).toMatchObject({
      ...{ status: 'waiting-approval', interrupt: { artifactType: 'effect-in-doubt' } },
    });
    expect(paying.paid).toEqual([]);
    await answer(forked, 'accept');
    expect((await host.waitFor(forked, ended)).status).toBe('failed');
    expect(paying.paid).toEqual([10]);
    await checkInvariants(host, forked);
  });

  // [I91]
  it('what people answered there does not have a call performed either, and their question stands', async () => {
    const { runId, at } = await answered();
    const forked = await branch(runId, at('interrupt.resolved'), { answers: 'recorded' });
    expect((await host.waitFor(forked, asks)).status).toBe('waiting-approval');
    expect(paying.paid).toEqual([]);
    const resolved = async () =>
      (await rowsOf(forked)).filter(({ type }) => type === 'interrupt.resolved');
    const isOver = async () => (await hasLeftRecord(forked)) || (await resolved()).length > 0;
    await until(isOver, 'the branch has looked for what people answered');
    expect(await resolved()).toEqual([]);
    await answer(forked, 'accept');
    expect((await host.waitFor(forked, ended)).status).toBe('failed');
    expect(paying.paid).toEqual([10]);
    await checkInvariants(host, forked);
  });

  // [I91]
  it.each([
    ['under way', 'agent.toolReturned', { tools: 'recorded' }],
    ['under way', 'agent.toolReturned', { tools: 'recorded', answers: 'recorded' }],
    ['asked about', 'interrupt.resolved', { tools: 'recorded', answers: 'recorded' }],
  ] as const)(
    'by recorded tools a call that was %s at %s comes to what it did there (%o)',
    async (_how, type, overlay) => {
      const { runId, at } = await answered();
      const forked = await branch(runId, at(type), overlay);
      expect((await host.waitFor(forked, ended)).status).toBe('failed');
      expect(paying.paid).toEqual([]);
      expect(await returnsOf(forked)).toMatchObject(
        [10, 10].map((paid) => ({ status: 'ok', outcome: { paid } })),
      );
      await checkInvariants(host, forked);
    },
  );

  /** Asks at both nodes: its payment is in doubt. */
  async function begun(tag: string): Promise<string> {
    paying.behave = () => Promise.reject(new Error('the connection broke'));
    const runId = await host.startRun({ workflowId: BESIDE.id, tags: [tag] });
    await has(runId, 'interrupt.requested', ['pay', 'gate']);
    paying.paid.length = 0;
    return runId;
  }

  async function has(runId: string, type: string, nodeIds: readonly string[]): Promise<void> {
    await until(async () => {
      await host.api(`/v1/runs/${runId}`);
      const rows = await rowsOf(runId);
      const isThere = (id: string) => rows.some((row) => row.type === type && row.nodeId === id);
      return nodeIds.every(isThere);
    }, `${type} of ${nodeIds.join()}`);
  }

  async function cohort(tag: string): Promise<JsonObject> {
    const change = { agents: { [JUDGE]: { systemPrompt: 'You judge otherwise.' } } };
    const made = await host.api<{ cohortId: string }>(COHORTS, {
      body: { select: { tag }, change },
    });
    expect([made.status, made.body]).toMatchObject([201, {}]);
    const path = `${COHORTS}/${made.body.cohortId}`;
    let state: JsonObject = {};
    await until(async () => {
      state = (await host.api<JsonObject>(path)).body;
      return state.state !== 'running';
    }, 'the cohort ends');
    return state;
  }

  // [I91]
  it.each(['under way', 'asked about'])(
    'a cohort performs nothing and asks nobody where a call beside was %s',
    async (how) => {
      const tag = how.replace(' ', '-');
      const runId = await begun(tag);
      if (how === 'under way') {
        let pay = () => {};
        const isAllowed = new Promise<void>((resolve) => (pay = resolve));
        paying.behave = async (amount) => isAllowed.then(() => ({ paid: amount }));
        await answer(runId, 'accept');
        await until(() => paying.paid.length === 1, 'it is performed by the word');
        await answer(runId, 'accept', 'gate');
        await has(runId, 'node.completed', ['judge']);
        pay();
      } else {
        paying.behave = async (amount) => ({ paid: amount });
        await answer(runId, 'accept', 'gate');
        await has(runId, 'node.completed', ['judge']);
        await answer(runId, 'accept');
      }
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
      expect(paying.paid).toEqual([10]);
      paying.behave = async (amount) => ({ paid: amount });
      const { state, results } = await cohort(tag);
      expect({ state, results }).toMatchObject({
        ...{ state: 'completed', results: [{ sourceRunId: runId, outcome: 'same' }] },
      });
      expect(paying.paid).toEqual([10]);
    },
  );
});
