// A value against a schema of the definition (channels-and-reducers.md §Channel declaration).
import { expect, it } from 'vitest';
import { checkValue } from '../../activities/check-value.ts';
import type { StepContext } from '../../activities/contract.ts';
import { jsonBytes, type JsonObject, type JsonValue } from '../../src/rules/json.ts';

const check = async (value: JsonValue, schema: JsonObject) =>
  (await checkValue({ context: {} as StepContext, value, schema })).output;

it('a value that fits', async () => {
  expect(await check(1, { type: 'number' })).toEqual({ ok: true });
});

it('one that does not is told where', async () => {
  expect(await check({ a: 'x' }, { properties: { a: { type: 'number' } } })).toEqual({
    ok: false,
    message: '/a must be number',
    errors: [{ pointer: '/a', message: 'must be number' }],
  });
});

it('what is told is bounded, however much a schema lists and a value lacks', async () => {
  const listed = { enum: Array.from({ length: 2_000 }, (_, at) => `word-${at}`) };
  const names = Array.from({ length: 40 }, (_, at) => `p${at}`);
  const schema = { properties: Object.fromEntries(names.map((name) => [name, listed])) };
  const value = Object.fromEntries(names.map((name) => [name, 'x']));
  expect(jsonBytes(await check(value, schema))).toBeLessThan(8 * 1024);
});

it('a schema that cannot be used refuses: silence never grants', async () => {
  expect(await check(1, { type: 'nope' })).toMatchObject({ ok: false });
});
