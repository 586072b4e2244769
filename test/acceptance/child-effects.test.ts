// Effects of child runs (architecture §5), on a real host: a node that is tried again starts its child again, and what the child
// before performed, or may have performed, is not performed again silently.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { agentNode, chain, definition, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { paced } from '../support/machine.ts';
import { writeDefinition } from '../support/opensentience/agent-folders.ts';
import { PAY, payingTool } from '../support/paying-tool.ts';
import { runRef } from '../support/run-ref.ts';

const CLERK = 'local.effects.clerk';
const BOSS = 'local.effects.boss';
const retry = { maxAttempts: 2, initialDelayMs: 1 };
/** Its agent has another one pay, then says nothing of use, and is asked once more. */
const ASKED_TWICE = definition('asked-twice', [agentNode('boss', BOSS, { settings: { retry } })]);
const PAYS = definition('pays', [agentNode('pay', CLERK)]);
/** Its child is cut off while it pays, and started once more. */
const CUT = definition('cut', [
  node('sub', 'core.subWorkflow', {
    config: { workflowId: PAYS.id },
    settings: { timeoutMs: paced(4_000), retry },
  }),
]);
/** Its child has one of its own pay, and fails. */
const BELOW = definition('below', [
  node('deep', 'core.subWorkflow', {
    config: { workflowId: 'pays-and-fails' },
    settings: { retry },
  }),
]);
const PAYS_AND_FAILS = chain('pays-and-fails', [
  node('sub', 'core.subWorkflow', { config: { workflowId: PAYS.id } }),
  node('fail', 'core.fail', { config: { code: 'made_to_fail' } }),
]);

const paying = payingTool(paced(30_000));
let host: TestHost;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-effects-'));
  for (const workflow of [ASKED_TWICE, PAYS, CUT, BELOW, PAYS_AND_FAILS])
    await writeDefinition(folder, workflow);
  const agent = (agentId: string, toolId: string) => ({
    manifest: {
      ...{ agentId, persona: agentId, modelClass: 'general' as const },
      ...{ systemPrompt: 'See to it.', toolAllowlist: [toolId] },
    },
    packName: 'local.effects',
    packVersion: '1.0.0',
    systemPrompt: 'See to it.',
  });
  host = await startTestHost({
    fixturesDir: folder,
    builtIn: {
      tools: [paying.tool],
      agents: [agent(CLERK, PAY), agent(BOSS, `agent:${CLERK}`)],
      scripts: {
        [CLERK]: {
          turns: [
            { calls: [{ toolId: PAY, arguments: { amount: 10 } }] },
            { final: { decision: 'paid', confidence: 1 } },
          ],
        },
        [BOSS]: {
          turns: [{ calls: [{ toolId: `agent:${CLERK}`, arguments: {} }] }, { raw: 'no decision' }],
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
});

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });

/** The child runs of a run that has ended, in their order. */
async function childrenOf(runId: string): Promise<string[]> {
  const rows = await rowsOf(runId);
  return rows
    .filter(({ type }) => type === 'node.dispatched')
    .map(({ payload }) => (JSON.parse(payload) as { childRunId: string }).childRunId);
}

async function toEnd(workflowId: string) {
  const runId = await host.startRun({ workflowId });
  const { status } = await host.waitFor(runId, ended);
  const children = await childrenOf(runId);
  expect(children).toHaveLength(2);
  for (const child of children) await host.waitFor(child, ended);
  await checkInvariants(host, [runId, ...children]);
  return { runId, status, children };
}

/** A branch that leaves when the node of its source has failed once, and its child has ended. */
async function branchAtRetry(sourceRunId: string) {
  const rows = await rowsOf(sourceRunId);
  const fromSeq = rows.findIndex(({ type }) => type === 'node.retried') + 1;
  const made = await host.api<{ runId: string }>(`/v1/runs/${sourceRunId}:fork`, {
    body: { mode: 'branch', fromSeq, runOptionsOverlay: {} },
  });
  expect([made.status, made.body]).toMatchObject([201, {}]);
  const { runId } = made.body;
  const { status } = await host.waitFor(runId, ended);
  const [, again = ''] = await childrenOf(runId);
  await host.waitFor(again, ended);
  await checkInvariants(host, [runId, again]);
  return { status, children: await childrenOf(runId) };
}

/** A payment that is made, and whose call ends with its node's time. */
const isCut = (_amount: JsonValue, signal: AbortSignal) =>
  new Promise<JsonValue>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('aborted'))),
  );

async function askedBy(runId: string): Promise<JsonObject[]> {
  const rows = await rowsOf(runId);
  return rows
    .filter(({ type }) => type === 'interrupt.requested')
    .map(({ payload }) => JSON.parse(payload) as JsonObject);
}

describe('a child run that a later attempt starts in the place of another', () => {
  it('[I99] is told what that one’s call came to, and pays nothing', async () => {
    paying.behave = async () => ({ receipt: paying.paid.length });
    const { status, children } = await toEnd(ASKED_TWICE.id);
    expect([status, paying.paid]).toEqual(['failed', [10]]);
    const outcomes = await Promise.all(
      children.map(async (child) => {
        const row = (await rowsOf(child)).find(({ type }) => type === 'agent.toolReturned');
        return (JSON.parse(row?.payload ?? '{}') as JsonObject).outcome;
      }),
    );
    expect(outcomes).toEqual([{ receipt: 1 }, { receipt: 1 }]);
  });

  it('[I99] asks where that one was cut off while it paid', async () => {
    paying.behave = isCut;
    const { status, children } = await toEnd(CUT.id);
    expect([status, paying.paid]).toEqual(['failed', [10]]);
    const [, again = ''] = children;
    expect(await askedBy(again)).toMatchObject([{ data: { artifactType: 'effect-in-doubt' } }]);
  });

  it('[I91] is told the same in a branch that has only the log of that one', async () => {
    paying.behave = async () => ({ receipt: paying.paid.length });
    const { runId } = await toEnd(ASKED_TWICE.id);
    const { status, children } = await branchAtRetry(runId);
    expect([status, paying.paid]).toEqual(['failed', [10]]);
    const [, again = ''] = children;
    expect((await rowsOf(again)).map(({ type }) => type)).toContain('agent.toolReturned');
  });

  it('[I91] asks in a branch that has only the log of one that was cut off', async () => {
    paying.behave = isCut;
    const { runId } = await toEnd(CUT.id);
    const { children } = await branchAtRetry(runId);
    expect(paying.paid).toEqual([10]);
    const [, again = ''] = children;
    expect(await askedBy(again)).toMatchObject([{ data: { artifactType: 'effect-in-doubt' } }]);
  });

  it('[I91] is told the same of its own child, though the fork of the one before has none yet', async () => {
    paying.behave = async () => ({ receipt: paying.paid.length });
    const { runId } = await toEnd(BELOW.id);
    expect(paying.paid).toEqual([10]);
    const { families } = host.stores;
    const accept = families.acceptChild.bind(families);
    let isOver = () => {};
    const over = new Promise<void>((resolve) => (isOver = resolve));
    const acceptChild: typeof accept = async (child, limit) => {
      const { fork, header } = child.input;
      if (fork && header.depth === 2) await over;
      return accept(child, limit);
    };
    Object.assign(families, { acceptChild });
    const { status, children } = await branchAtRetry(runId).finally(() => {
      Object.assign(families, { acceptChild: accept });
      isOver();
    });
    expect([status, paying.paid]).toEqual(['failed', [10]]);
    const [, again = ''] = children;
    const [below = ''] = await childrenOf(again);
    expect((await rowsOf(below)).map(({ type }) => type)).toContain('agent.toolReturned');
  });
});
