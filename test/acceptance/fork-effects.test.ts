// Effects of a branch (architecture §5, §6), on a real host: what its log has from its source was performed, and a later
// attempt of the same visit repeats none of it silently, whatever ledger the branch has of its own.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { agentNode, definition } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
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

const paying = payingTool(5_000);
let host: TestHost;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-effects-'));
  await writeDefinition(folder, WORKFLOW);
  host = await startTestHost({
    fixturesDir: folder,
    builtIn: {
      tools: [paying.tool],
      agents: [
        {
          manifest: {
            ...{ agentId: AGENT, persona: 'Payer', modelClass: 'general' },
            ...{ systemPrompt: 'You pay.', toolAllowlist: [PAY] },
          },
          packName: 'local.effects',
          packVersion: '1.0.0',
          systemPrompt: 'You pay.',
        },
      ],
      scripts: {
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

async function answer(runId: string, action: string): Promise<void> {
  const body = { resumeValue: { action } };
  const { status } = await host.api(`/v1/runs/${runId}/interrupts/pay`, { body });
  expect(status).toBe(200);
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
