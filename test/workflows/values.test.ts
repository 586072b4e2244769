// What a node is given (workflow-definition.schema.json): of a run by agentId every input is one, whatever its name is
// (RFC 0072).
import { expect, test } from 'vitest';
import { agentDefinition } from '../../src/runs/input.ts';
import { jsonBytes, type JsonObject } from '../../src/rules/json.ts';
import type { Visit } from '../../workflows/context.ts';
import { newRunState } from '../../workflows/frames.ts';
import { heldBytesOf, inputsOf } from '../../workflows/values.ts';

test('no input of an agent is lost for its name', () => {
  const text = '{"__proto__":{"a":1},"constructor":"x","amount":5}';
  const variables = JSON.parse(text) as JsonObject;
  const definition = agentDefinition('core.a', variables);
  const [node] = definition.nodes;
  const visit = { node, run: { input: { definition }, state: { variables } } } as unknown as Visit;
  expect(JSON.stringify(inputsOf(visit))).toBe(text);
});

test('what a segment carries on counts variables, channels and outputs of nodes', () => {
  const [variables, channel, outputs] = [{ a: 1 }, ['x'.repeat(100)], { b: 'y' }];
  const state = newRunState(0, { variables });
  state.channels = { c: channel };
  state.nodes.n = { visits: 1, outputs, resolvedInterrupts: 0 };
  const sum = [variables, channel, outputs].reduce((bytes, one) => bytes + jsonBytes(one), 0);
  expect(heldBytesOf(state)).toBe(sum);
});
