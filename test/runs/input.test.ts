// What is wrong with a run's inputs, by the variables that its workflow declares (rest-endpoints.md §POST /v1/runs).
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { inputFaults } from '../../src/runs/input.ts';
import type { WorkflowVariable } from '../../schemas/types.generated.ts';

const TYPES: readonly WorkflowVariable['type'][] = [
  'string',
  'number',
  'boolean',
  'object',
  'array',
];
const RIGHT: Readonly<Record<WorkflowVariable['type'], JsonValue>> = {
  string: '',
  number: 0,
  boolean: false,
  object: {},
  array: [],
};

function messages(variable: Omit<WorkflowVariable, 'name'>, inputs: JsonObject): string[] {
  return inputFaults([{ name: 'a', ...variable }], inputs).map(({ message }) => message);
}

describe('rest-endpoints.md: inputs are held to the variables', () => {
  it.each(TYPES.flatMap((type) => TYPES.map((given) => [type, given] as const)))(
    '%s: a value of %s',
    (type, given) => {
      const expected = type === given ? [] : [`must be of type ${type}`];
      expect(messages({ type }, { a: RIGHT[given] })).toEqual(expected);
      expect(messages({ type, required: true }, { a: RIGHT[given] })).toEqual(expected);
      expect(messages({ type, defaultValue: RIGHT[given] }, {})).toEqual(expected);
    },
  );

  it.each(TYPES)('%s: absent and null are refused where it is required alone', (type) => {
    const required = true;
    for (const inputs of [{}, { a: null }] as JsonObject[]) {
      expect(messages({ type }, inputs)).toEqual([]);
      expect(messages({ type, required }, inputs)).toEqual(['is required']);
    }
    expect(messages({ type, required, defaultValue: RIGHT[type] }, {})).toEqual([]);
    // An input that is given goes before the default.
    expect(messages({ type, required, defaultValue: RIGHT[type] }, { a: null })).toEqual([
      'is required',
    ]);
  });

  it('all faults are told at once, in the order of the variables, by JSON pointers', () => {
    const declared: WorkflowVariable[] = [
      { name: 'b/~', type: 'string', required: true },
      { name: 'a', type: 'number' },
      { name: '__proto__', type: 'object', required: true },
      { name: 'constructor', type: 'string', required: true },
    ];
    expect(inputFaults(declared, { a: 'x', constructor: 'y' }).map((each) => each.pointer)).toEqual(
      ['/inputs/b~1~0', '/inputs/a', '/inputs/__proto__'],
    );
  });
});
