// Which gates are loaded: those whose answers can be checked, whatever their schemas come to together (architecture §11, I117).
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { compileUserSchema } from '../../src/wire/user-schema.ts';
import { checkDefinition } from '../../src/wire/load-definition.ts';
import { NODE_TYPE_IDS } from '../../src/wire/validators.ts';

const context = { nodeTypes: new Set(NODE_TYPE_IDS), agents: () => false };

const chain = JSON.parse(
  readFileSync(new URL('../fixtures/definitions/chain.json', import.meta.url), 'utf8'),
) as Record<string, unknown>;

/** `pointer code` of each fault of a definition with this node alone. */
function faults([kind, config]: Gate): string[] {
  const node = {
    ...{ id: 'g', typeId: `core.${kind}Gate`, name: 'g', position: { x: 0, y: 0 } },
    ...{ config, inputs: {} },
  };
  const checked = checkDefinition({ ...chain, nodes: [node], edges: [] }, context);
  return checked.ok ? [] : checked.faults.map((fault) => `${fault.pointer} ${fault.code}`);
}

type Gate = [kind: 'clarification' | 'conversation', config: object];

/** Of so many parts, and two more. */
const wide = (count: number) => ({
  type: 'object',
  properties: Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`p${at}`, { type: 'string' }]),
  ),
});
const asks = (...schemas: (object | undefined)[]): Gate => {
  const questions = schemas.map((schema, at) => ({
    ...{ id: `q${at}`, question: '?' },
    ...(schema ? { schema } : {}),
  }));
  return ['clarification', { questions }];
};
const talks = (config: object): Gate => ['conversation', config];

/** As many as one schema may have. */
const MOST = 1_335;
const older = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  items: [{ type: 'string' }],
};

test.each<[string, Gate]>([
  ['a question with a schema of as many parts as it may have', asks(wide(MOST))],
  [
    'such a one beside as many questions as there may be',
    asks(wide(MOST), ...Array.from({ length: 49 }, () => undefined)),
  ],
  ['two questions with large schemas', asks(wide(700), wide(700))],
  ['a conversation with a large schema', talks({ turnSchema: wide(850) })],
])('is loaded: %s', (_, gate) => {
  expect(faults(gate)).toEqual([]);
});

// [I117]
test.each<[string, Gate, string]>([
  ['questions with two of them', asks(wide(950), wide(950)), '/questions'],
  ['a question of an older dialect', asks(older), '/questions'],
  ['a conversation that needs one twice', talks({ outcomeSchema: wide(950) }), ''],
])('schemas that can be used alone, and not in a question, are refused: %s', (_, gate, at) => {
  for (const schema of [wide(950), older]) expect(compileUserSchema(schema).ok).toBe(true);
  expect(faults(gate)).toEqual([`/nodes/0/config${at} validation_error`]);
});

test('a question that is named by half a character is refused where its schema would have no name', () => {
  const named = { id: '\ud800', question: '?' };
  expect(faults(['clarification', { questions: [{ ...named, schema: {} }] }])).toEqual([
    '/nodes/0/config/questions/0/id validation_error',
  ]);
  expect(faults(['clarification', { questions: [named] }])).toEqual([]);
});
