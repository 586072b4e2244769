// The guarded compiler for schemas of others (run-options.md, workflow-definition.schema.json; RFC 0003;
// architecture §10).
import { describe, expect, test } from 'vitest';
import { MAX_WORK } from '../../src/wire/schema-work.ts';
import {
  COMPOSED,
  compileUserSchema,
  USER_SCHEMA_BYTES,
  USER_SCHEMA_DEPTH,
} from '../../src/wire/user-schema.ts';

/** '' when valid, else the pointer of the first fault. */
function check(schema: unknown, value: unknown): string {
  const compiled = compileUserSchema(schema);
  if (!compiled.ok) throw new Error(`refused: ${JSON.stringify(compiled.errors)}`);
  const result = compiled.value.validate(value);
  return result.ok ? 'ok' : `no ${result.errors[0].pointer}`;
}

const person = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'https://example.test/person',
  type: 'object',
  properties: {
    name: { type: 'string', pattern: '^[a-z]+$' },
    born: { type: 'string', format: 'date' },
    friends: { type: 'array', items: { $ref: '#' }, uniqueItems: true },
  },
  required: ['name'],
  additionalProperties: false,
  'x-note': 'unknown keywords are annotations',
};

describe('JSON Schema draft-07, where a schema says so', () => {
  const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';
  const pair = {
    $schema: DRAFT_07,
    definitions: { name: { type: 'string', pattern: '^[a-z]+$' } },
    type: 'array',
    items: [{ $ref: '#/definitions/name' }, { type: 'integer', exclusiveMinimum: 0 }],
    additionalItems: false,
  };
  test.each<[string, unknown, unknown, string]>([
    ['a tuple', pair, ['ada', 1], 'ok'],
    ['its first item', pair, ['Ada', 1], 'no /0'],
    ['its second item', pair, ['ada', 0], 'no /1'],
    ['one more', pair, ['ada', 1, 2], 'no '],
    ['dependencies', { $schema: DRAFT_07, dependencies: { card: ['name'] } }, { card: '1' }, 'no '],
    [
      'without a fragment, by https',
      { $schema: DRAFT_07.slice(0, -1).replace('http:', 'https:') },
      1,
      'ok',
    ],
  ])('%s', (_, schema, value, expected) => expect(check(schema, value)).toBe(expected));
  test('work is counted as well', () => {
    const schema = { $schema: DRAFT_07, items: { anyOf: Array(200).fill({ type: 'string' }) } };
    expect(check(schema, Array(200_000).fill(1)).startsWith('no')).toBe(true);
  });
});

describe('JSON Schema 2020-12', () => {
  test.each<[string, unknown, unknown, string]>([
    [
      'a valid value',
      person,
      { name: 'ada', born: '1815-12-10', friends: [{ name: 'mary' }] },
      'ok',
    ],
    ['a missing field', person, {}, 'no '],
    ['an unknown field', person, { name: 'ada', 'a/b': 1 }, 'no /a~1b'],
    ['a pattern', person, { name: 'Ada' }, 'no /name'],
    ['a format', person, { name: 'ada', born: 'soon' }, 'no /born'],
    [
      'a recursive reference',
      person,
      { name: 'ada', friends: [{ name: 'mary' }, { name: 5 }] },
      'no /friends/1/name',
    ],
    [
      'equal items whatever their key order',
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      'no ',
    ],
    ['different items', { uniqueItems: true }, [1, '1', [1], { a: 1 }], 'ok'],
    ['equal items that are allowed', { uniqueItems: false }, [1, 1], 'ok'],
    ['prefixItems', { prefixItems: [{ type: 'string' }], items: false }, ['a', 1], 'no '],
    [
      'if, then, else',
      { if: { type: 'string' }, then: { minLength: 2 }, else: { type: 'number' } },
      'a',
      'no ',
    ],
    ['a required name that every object has', { required: ['constructor'] }, {}, 'no '],
    [
      'the same where it need not be there',
      { properties: { constructor: { type: 'string' }, toString: { type: 'string' } } },
      {},
      'ok',
    ],
    [
      'and where it is',
      { properties: { constructor: { type: 'string' } }, additionalProperties: false },
      { constructor: 1 },
      'no /constructor',
    ],
    ['and where something depends on it', { dependentRequired: { toString: ['a'] } }, {}, 'ok'],
    ['true', true, { anything: 1 }, 'ok'],
    ['false', false, 1, 'no '],
    [
      'names that look like keywords',
      { properties: { $ref: { type: 'string' }, pattern: {} } },
      { $ref: 1 },
      'no /$ref',
    ],
    ['data that looks like keywords', { const: { pattern: '(?=' } }, { pattern: '(?=' }, 'ok'],
    ['an enum', { properties: { a: { enum: ['x', 1] } } }, { a: 2 }, 'no /a'],
    ['a number format', { format: 'int32' }, 2 ** 40, 'no '],
    [
      'a text longer than formats are tried on',
      { format: 'uri' },
      `https://x.test/${'a'.repeat(5000)}`,
      'no ',
    ],
  ])('%s', (_, schema, value, expected) => {
    expect(check(schema, value)).toBe(expected);
  });

  test('a schema within a schema keeps its own root', () => {
    const inner = {
      $id: 'inner',
      $defs: { text: { type: 'string' } },
      properties: { t: { $ref: '#/$defs/text' } },
    };
    const outer = {
      properties: { a: inner, b: { ...inner, $defs: { text: { type: 'number' } } } },
    };
    expect(check(outer, { a: { t: 'x' }, b: { t: 1 } })).toBe('ok');
    expect(check(outer, { a: { t: 1 } })).toBe('no /a/t');
    expect(check(outer, { b: { t: 'x' } })).toBe('no /b/t');
  });

  test('the checked value is left as it is', () => {
    const value = { a: '1' };
    check({ properties: { a: { type: 'string' }, b: { default: 2 } } }, value);
    expect(value).toEqual({ a: '1' });
  });

  test('messages do not repeat the values that they judge', () => {
    const compiled = compileUserSchema({ properties: { key: { type: 'number', pattern: 'x' } } });
    const result = compiled.ok ? compiled.value.validate({ key: 'sk-secret' }) : compiled;
    expect(result.ok).toBe(false);
    expect(JSON.stringify(result)).not.toContain('sk-secret');
  });
});

const nested = (levels: number): unknown => (levels === 0 ? {} : { not: nested(levels - 1) });

describe('architecture §10 refused schemas', () => {
  test.each<[string, unknown, string]>([
    ['no schema', 'text', ''],
    ['null', null, ''],
    ['a list', [], ''],
    ['a remote reference', { $ref: 'https://example.test/x' }, '/$ref'],
    ['a file reference', { properties: { a: { $ref: 'other.json' } } }, '/properties/a/$ref'],
    ['a reference to nowhere', { $ref: '#/$defs/none' }, ''],
    ['look-ahead', { pattern: '(?=a)' }, '/pattern'],
    ['a back reference', { items: { pattern: '(a)\\1' } }, '/items/pattern'],
    ['a pattern that is no pattern', { pattern: '(' }, '/pattern'],
    ['a pattern that is too long', { pattern: 'a'.repeat(1025) }, '/pattern'],
    ['a pattern property', { patternProperties: { '(?!a)': true } }, '/patternProperties/(?!a)'],
    ['an unknown type', { type: 'text' }, ''],
    ['another dialect', { $schema: 'http://json-schema.org/draft-04/schema#' }, '/$schema'],
    ['dynamic references', { $dynamicRef: '#a' }, '/$dynamicRef'],
    ['too deep', nested(USER_SCHEMA_DEPTH + 1), `${'/not'.repeat(USER_SCHEMA_DEPTH + 1)}`],
    [
      'data that is too deep',
      { const: nested(3_000) },
      `/const${'/not'.repeat(USER_SCHEMA_DEPTH)}`,
    ],
    ['too large', { description: 'a'.repeat(USER_SCHEMA_BYTES) }, ''],
    [
      'a name that is a trap',
      JSON.parse('{"properties":{"__proto__":{}}}'),
      '/properties/__proto__',
    ],
  ])('%s', (_, schema, pointer) => {
    expect(compileUserSchema(schema)).toMatchObject({ ok: false, errors: [{ pointer }] });
  });

  test('patterns whose compilation takes long, and those of a schema that is too large anyway', () => {
    const heavy = (count: number) => ({
      allOf: Array.from({ length: count }, (_, index) => ({ pattern: `a{1000}b${index}` })),
    });
    expect(compileUserSchema(heavy(10))).toMatchObject({ ok: true });
    expect(compileUserSchema(heavy(98))).toMatchObject({
      ok: false,
      errors: {
        0: { message: expect.stringContaining('takes too much work to make ready') as string },
      },
    });
    expect(compileUserSchema(heavy(100_000))).toMatchObject({
      ok: false,
      errors: [{ pointer: '' }],
    });
  });

  test('as many rules as take long to make ready, whatever they are', () => {
    const some = Array.from({ length: 1_400 }, (_, index) => index);
    const refused = [
      { anyOf: some.map((index) => ({ const: index })) },
      { dependentRequired: Object.fromEntries(some.map((index) => [`p${index}`, ['a']])) },
      { allOf: some.map(() => ({})) },
      { $defs: Object.fromEntries(some.map((index) => [`d${index}`, {}])) },
    ].map((schema) => compileUserSchema(schema));
    for (const { work, ...result } of refused) {
      const message = 'takes too much work to make ready';
      expect(result).toEqual({ ok: false, errors: [{ pointer: '', message }] });
      expect([work > MAX_WORK, work < 1.1 * MAX_WORK]).toEqual([true, true]);
    }
  });

  test.each([
    ['one long list of required names', { dependentRequired: { a: namesOf(1_000) } }],
    [
      'many shorter ones',
      { dependentRequired: Object.fromEntries(namesOf(20).map((name) => [name, namesOf(400)])) },
    ],
    ['a list in the words of an older draft', { dependencies: { a: namesOf(8_000) } }],
    ['many schemas that are no', { anyOf: Array.from({ length: 10_000 }, () => false) }],
    [
      'many members that are no',
      { properties: Object.fromEntries(namesOf(2_000).map((name) => [name, false])) },
    ],
  ])('%s', (_, schema) => {
    const { work, ...result } = compileUserSchema(schema);
    expect(result).toEqual({
      ok: false,
      errors: [{ pointer: '', message: 'takes too much work to make ready' }],
    });
    expect(work).toBeGreaterThan(MAX_WORK);
  });

  test('names that one name requires are counted at each visit', () => {
    const some = namesOf(60);
    const items = { dependentRequired: Object.fromEntries(some.map((name) => [name, some])) };
    const compiled = compileUserSchema({ items });
    if (!compiled.ok) throw new Error('it is made ready');
    const one = Object.fromEntries(some.map((name) => [name, 1]));
    // 60 times 60 names an item, four units each.
    const many = Array.from({ length: 1_000 }, () => one);
    expect(compiled.value.validate(many)).toMatchObject({ ok: false });
  });

  test('the work of one schema is the same each time, and more for a larger one', () => {
    const [small, large] = [10, 20].map((count) => ({
      properties: Object.fromEntries([...Array(count).keys()].map((at) => [`work${at}`, {}])),
    }));
    const first = compileUserSchema(small).work;
    expect(compileUserSchema(small).work).toBe(first);
    expect(first).toBeGreaterThan(0);
    expect(compileUserSchema(large).work).toBeGreaterThan(1.5 * first);
  });

  // [I117]
  test('what is made of schemas may take more work, and is refused as one of others still', () => {
    const some = (count: number) => ({
      properties: Object.fromEntries(namesOf(count).map((name) => [name, { type: 'string' }])),
    });
    const heavy = { errors: [{ pointer: '', message: 'takes too much work to make ready' }] };
    const made = some(1_500);
    for (const bounds of [undefined, COMPOSED, undefined]) {
      const expected = bounds ? { ok: true } : { ok: false, ...heavy };
      expect(compileUserSchema(made, bounds)).toMatchObject(expected);
    }
    expect(compileUserSchema(some(1_900), COMPOSED)).toMatchObject({ ok: false, ...heavy });
    // A check by it has the bound of every other.
    const list = { items: { uniqueItems: true } };
    const value = [['a'.repeat(MAX_WORK)]];
    expect(checkedBy(compileUserSchema(list, COMPOSED), value)).toMatchObject({ ok: false });
    expect(checkedBy(compileUserSchema(list, COMPOSED), [['a']])).toMatchObject({ ok: true });
  });

  test('nesting up to the limit is accepted', () => {
    expect(compileUserSchema(nested(USER_SCHEMA_DEPTH))).toMatchObject({ ok: true });
  });
});

const namesOf = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

const checkedBy = (compiled: ReturnType<typeof compileUserSchema>, value: unknown) =>
  compiled.ok ? compiled.value.validate(value) : compiled;

const patternsFor = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`^k.*x${index}$`, {}]));

describe('architecture §10 bounded work', () => {
  test('a schema that multiplies by references is given up', () => {
    const levels = Array.from({ length: 40 }, (_, index) => {
      const next = { $ref: `#/$defs/l${index + 1}` };
      return [`l${index}`, { anyOf: [next, next] }] as const;
    });
    const schema = {
      $ref: '#/$defs/l0',
      $defs: { ...Object.fromEntries(levels), l40: { type: 'string' } },
    };
    expect(check(schema, 1)).toBe('no ');
    expect(check({ ...schema, $ref: '#/$defs/l38' }, 'text')).toBe('ok');
  });

  test('a schema that refers to itself in place is given up, and the next check works', () => {
    expect(check({ $ref: '#' }, 1)).toBe('no ');
    expect(check(person, { name: 'ada' })).toBe('ok');
  });

  test('a pattern that makes other engines hang is linear', () => {
    expect(check({ pattern: '^(a+)+$' }, `${'a'.repeat(50_000)}b`)).toBe('no ');
  });

  const million = Array.from({ length: 1_000_000 }, () => 1);
  const times = (count: number, rule: unknown): readonly unknown[] =>
    Array.from({ length: count }, () => rule);
  const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, 1]));
  test.each<[string, unknown, unknown]>([
    ['choices', { items: { anyOf: [...times(100, { type: 'object' }), {}] } }, million],
    ['long enumerations', { items: { enum: [...Array(5_000).keys()].reverse() } }, million],
    ['uniqueness', { allOf: times(50, { uniqueItems: true }) }, [...Array(100_000).keys()]],
    ['lengths', { anyOf: times(200, { maxLength: 1 }) }, 'a'.repeat(2_000_000)],
    ['one pattern on a long text', { pattern: '(a?){500}b$' }, 'a'.repeat(64 * 1024)],
    ['many patterns on many names', { patternProperties: patternsFor(300) }, keys],
    ['names', { allOf: times(200, { minProperties: 1 }) }, keys],
  ])('a value and a schema that multiply each other are given up: %s', (_, schema, value) => {
    const compiled = compileUserSchema(schema);
    expect(compiled.ok && compiled.value.validate(value)).toMatchObject({
      ok: false,
      errors: [{ message: 'takes too much work to check against this schema' }],
    });
  });

  test('large values and large schemas of the usual kind are not', () => {
    const uuid = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$';
    const item = { type: 'object', required: ['id'], properties: { id: { pattern: uuid } } };
    const id = '0e37df36-f698-11e6-8dd4-cb9ced3df976';
    expect(check({ items: item }, times(10_000, { id }))).toBe('ok');
    const names = Array.from(
      { length: 1_000 },
      (_, index) => [`p${index}`, { type: 'string' }] as const,
    );
    expect(check({ properties: Object.fromEntries<object>(names) }, { p1: 'x', p2: 1 })).toBe(
      'no /p2',
    );
  });

  test('more schemas than are kept still compile, and the first again', () => {
    for (let index = 0; index < 300; index++) expect(check({ const: index }, index)).toBe('ok');
    expect(check({ const: 0 }, 1)).toBe('no ');
  });
});
