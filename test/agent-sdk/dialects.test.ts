// Dialects of JSON Schema: a tool of an agent takes those that the host takes, and names them where it takes none.
import { describe, expect, it } from 'vitest';
import { tool } from '../../src/agent-sdk/index.ts';
import { compileUserSchema } from '../../src/wire/user-schema.ts';

const DRAFT_07 = [
  'http://json-schema.org/draft-07/schema#',
  'http://json-schema.org/draft-07/schema',
  'https://json-schema.org/draft-07/schema#',
  'https://json-schema.org/draft-07/schema',
];
const DRAFT_2020 = [
  'https://json-schema.org/draft/2020-12/schema',
  'https://json-schema.org/draft/2020-12/schema#',
];
const OTHERS = [
  ...['http://json-schema.org/draft-04/schema#', 'http://json-schema.org/draft-06/schema#'],
  ...['https://json-schema.org/draft/2019-09/schema', 'http://json-schema.org/schema#'],
  ...['http://json-schema.org/draft/2020-12/schema', 'http://json-schema.org/draft-07/schema##'],
  ...['', 'draft-07', 'toString', 7, null],
];

const taking = (input: object, output?: object) =>
  tool({
    ...{ name: 'taking', description: 'Takes.' },
    input: { type: 'object', ...input },
    ...(output && { output: { type: 'object', ...output } }),
    run: () => ({}),
  });

describe('the dialect of a schema of a tool', () => {
  it.each(DRAFT_07)('draft-07 is read as such: %s', ($schema) => {
    const properties = { pair: { items: [{ type: 'string' }], additionalItems: false } };
    const schema = { $schema, properties, dependencies: { pair: ['why'] } };
    const made = taking(schema, schema);
    const faults = (value: object) => [
      made.inputFault({ ...value }),
      made.outputFault({ ...value }),
    ];
    expect(faults({ pair: ['a'], why: 1 })).toEqual([undefined, undefined]);
    for (const [value, fault] of [
      [
        { pair: ['a', 'b'], why: 1 },
        { path: '/pair', keyword: 'additionalItems' },
      ],
      [{ pair: ['a'] }, { path: '', keyword: 'dependencies' }],
    ] as const)
      expect(faults(value)).toMatchObject([fault, fault]);
    // Core is given it as it was written.
    expect(made.declare('a.b').input_schema).toEqual({ type: 'object', ...schema });
  });
  it.each([...DRAFT_2020, undefined])('2020-12 is read as such: %s', ($schema) => {
    const properties = { pair: { prefixItems: [{ type: 'string' }], items: false } };
    const made = taking({ ...($schema !== undefined && { $schema }), properties });
    expect(made.inputFault({ pair: ['a'] })).toBeUndefined();
    expect(made.inputFault({ pair: ['a', 'b'] })).toMatchObject({ path: '/pair' });
  });
  it('each schema has a dialect, and an id, of its own', () => {
    const $id = 'https://example.com/pair';
    const input = {
      $id,
      $schema: DRAFT_07[0],
      properties: { pair: { items: [{ type: 'null' }] } },
    };
    const output = { $id, properties: { pair: { prefixItems: [{ type: 'string' }] } } };
    const made = taking(input, output);
    expect(made.inputFault({ pair: ['a'] })).toMatchObject({ path: '/pair/0' });
    expect(made.outputFault({ pair: ['a'] })).toBeUndefined();
  });
  it.each(OTHERS)('another is refused, and what is taken is named: %j', ($schema) => {
    for (const [which, make] of [
      ['input', () => taking({ $schema })],
      ['output', () => taking({}, { $schema })],
    ] as const) {
      expect(make).toThrow(TypeError);
      for (const named of [
        ...['"taking"', which, JSON.stringify($schema), 'http://json-schema.org/draft-07/schema'],
        'https://json-schema.org/draft/2020-12/schema',
      ])
        expect(make).toThrow(named);
    }
  });
  it('the host takes the same ones', () => {
    const all = [...DRAFT_07, ...DRAFT_2020, ...OTHERS];
    const taken = all.filter(($schema) => compileUserSchema({ type: 'object', $schema }).ok);
    expect(taken).toEqual([...DRAFT_07, ...DRAFT_2020]);
  });
});
