// What a node is given (workflow-definition.schema.json): of a run by agentId every input is one, whatever its name is
// (RFC 0072).
import { expect, test } from 'vitest';
import { agentDefinition } from '../../src/runs/input.ts';
import { jsonBytes, type JsonObject } from '../../src/rules/json.ts';
import type { Visit } from '../../workflows/context.ts';
import { newRunState } from '../../workflows/frames.ts';
import { heldBytesOf, inputsOf, shownOutputs } from '../../workflows/values.ts';
import { definition, node } from '../support/definitions.ts';

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

test('a node that only repeats what is masked is shown masked, too', () => {
  const reads = { x: { type: 'variable', variableName: 'pin' } } as const;
  const nodes = [
    node('echo', 'core.identity', { inputs: reads }),
    node('last', 'core.end', {
      inputs: { x: { type: 'connection', nodeId: 'echo', outputKey: 'x' } },
    }),
    node('own', 'core.agent', { inputs: reads, outputSensitivity: { y: true } }),
  ];
  const workflow = {
    ...definition('shown', nodes),
    variables: [{ name: 'pin', type: 'string' as const, sensitive: true }],
  };
  const shown = nodes.map((one) => {
    const visit = { node: one, run: { input: { definition: workflow } } } as unknown as Visit;
    return shownOutputs(visit, { x: 1, y: 2 });
  });
  expect(shown).toEqual([
    { x: '[REDACTED]', y: 2 },
    { x: '[REDACTED]', y: 2 },
    { x: 1, y: '[REDACTED]' },
  ]);
});
