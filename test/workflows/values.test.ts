// What a node is given (workflow-definition.schema.json): of a run by agentId every input is one, whatever its name is
// (RFC 0072).
import { expect, test } from 'vitest';
import { agentDefinition } from '../../src/runs/input.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { Visit } from '../../workflows/context.ts';
import { inputsOf } from '../../workflows/values.ts';

test('no input of an agent is lost for its name', () => {
  const text = '{"__proto__":{"a":1},"constructor":"x","amount":5}';
  const variables = JSON.parse(text) as JsonObject;
  const [node] = agentDefinition('core.a', variables).nodes;
  const visit = { node, run: { state: { variables } } } as unknown as Visit;
  expect(JSON.stringify(inputsOf(visit))).toBe(text);
});
