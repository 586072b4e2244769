// Inputs and outputs of tools are typed by their schemas: proven by the compiler, which `npm run types` runs over this
// file too.
import { describe, expect, expectTypeOf, it } from 'vitest';
import { tool, type ToolCall } from '../../src/agent-sdk/index.ts';

describe('types from schemas', () => {
  it('input: required, optional, enumerations, lists, defaults', () => {
    const made = tool({
      name: 'typed',
      description: 'Typed.',
      input: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          mood: { enum: ['good', 'bad'] },
          tags: { type: 'array', items: { type: 'string' } },
          limit: { type: 'integer', default: 10 },
        },
        required: ['name'],
        additionalProperties: false,
      },
      run: (input, call) => {
        expectTypeOf(input.name).toEqualTypeOf<string>();
        expectTypeOf(input.mood).toEqualTypeOf<'good' | 'bad' | undefined>();
        expectTypeOf(input.tags).toEqualTypeOf<string[] | undefined>();
        expectTypeOf(input.limit).toEqualTypeOf<number | undefined>();
        expectTypeOf(call).toEqualTypeOf<ToolCall>();
        // @ts-expect-error the schema has no such property
        void input.nothing;
        return {};
      },
    });
    expect(made.name).toBe('typed');
  });
  it('output: what the schema says, and nothing else', () => {
    const output = {
      type: 'object',
      properties: { sum: { type: 'integer' } },
      required: ['sum'],
      additionalProperties: false,
    } as const;
    const given = { name: 'sum', description: 'Sums.', input: { type: 'object' }, output } as const;
    tool({ ...given, run: () => ({ sum: 1 }) });
    tool({ ...given, run: async () => ({ sum: 1 }) });
    // @ts-expect-error a sum is a number
    tool({ ...given, run: () => ({ sum: '1' }) });
    // @ts-expect-error the sum is missing
    tool({ ...given, run: async () => ({}) });
    expect(output.required).toEqual(['sum']);
  });
  it('a schema that is not an object’s is refused', () => {
    const run = () => ({});
    // @ts-expect-error tools take objects
    expect(tool({ name: 'odd', description: '', input: { type: 'string' }, run })).toBeDefined();
  });
});
