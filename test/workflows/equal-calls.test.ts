// The n-th equal call of a node attempt is an effect of its own (architecture §5): what the workflow hands to the
// ledger.
import { plainRun } from '../support/plain-run.ts';
import { expect, test } from 'vitest';
import type { CallToolInput, InferTurnOutput } from '../../activities/contract.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { agent } from '../../workflows/nodes/agent.ts';
import { agentNode, definition, pinned, runInput } from '../support/definitions.ts';

const AGENT = 'local.test.payer';
const PREPARED = {
  ok: true,
  transcript: 't',
  model: { provider: 'scripted', model: 'scripted' },
  prompts: [],
  composed: { refs: [], kind: 'system', hash: 'sha256:0', contentTrust: 'trusted' },
  tools: [{ toolId: 'demo:pay', idempotent: false, timeoutMs: 1_000, transport: 'native' }],
};
const DECIDED: InferTurnOutput = {
  kind: 'decision',
  transcript: 't',
  decision: 'paid',
  schemaValidated: false,
};

/** The calls as activities get them, turn by turn, whatever the model asks for. */
async function callsOf(nodeId: string, turns: readonly (readonly JsonObject[])[]) {
  const asked = turns.map((turn): InferTurnOutput => {
    const calls = turn.map((given) => ({ toolId: 'demo:pay', arguments: given }));
    return { kind: 'calls', transcript: 't', calls };
  });
  const calls: CallToolInput['call'][] = [];
  const answers = {
    prepareInvocation: () => PREPARED,
    inferTurn: () => asked.shift() ?? DECIDED,
    callTool: ({ call }: CallToolInput) => {
      calls.push(call);
      return { kind: 'returned', status: 'ok', resultHash: 'sha256:0' };
    },
    sealBlock: () => ({ deltas: 0 }),
    tellReasoning: () => ({ told: true }),
    checkValue: () => ({ ok: true }),
  };
  const input = runInput(definition('pay', [agentNode(nodeId, AGENT)]), {
    agentList: [pinned(AGENT, { toolAllowlist: ['demo:pay'] })],
  });
  const plain = plainRun(
    input,
    (name, given) => answers[name as keyof typeof answers](given as CallToolInput) as JsonValue,
  );
  expect(await agent(plain.visit(nodeId))).toMatchObject({ kind: 'completed' });
  plain.stated();
  return calls;
}

// [I31]
test('two equal calls of one turn are two effects', async () => {
  const calls = await callsOf('one-turn', [[{ cents: 5 }, { cents: 5 }]]);
  expect(calls.map(({ occurrence }) => occurrence)).toEqual([0, 1]);
  expect(new Set(calls.map(({ callId }) => callId)).size).toBe(2);
  expect(new Set(calls.map(({ argsHash }) => argsHash)).size).toBe(1);
});

test('equal calls of two turns are two effects, calls with other arguments are counted apart', async () => {
  const calls = await callsOf('two-turns', [[{ cents: 5 }, { cents: 6 }], [{ cents: 5 }]]);
  expect(calls.map(({ occurrence }) => occurrence)).toEqual([0, 0, 1]);
});

test('arguments are the same whatever the order of their members', async () => {
  const calls = await callsOf('order', [
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
  ]);
  expect(calls.map(({ occurrence }) => occurrence)).toEqual([0, 1]);
});
