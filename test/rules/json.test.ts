// Canonical JSON (RFC 8785) and sizes in UTF-8 bytes.
import { describe, expect, test } from 'vitest';
import { canonicalJson, isJsonObject, jsonBytes, utf8Length } from '../../src/rules/json.ts';

describe('canonicalJson', () => {
  test.each<[string, unknown, string]>([
    ['sorts keys at every level', { b: 1, a: { d: 1, c: 2 } }, '{"a":{"c":2,"d":1},"b":1}'],
    [
      'sorts by UTF-16 code units',
      { '\ufb33': 1, '😀': 2, é: 3, a: 4 },
      '{"a":4,"é":3,"😀":2,"\ufb33":1}',
    ],
    ['sorts digits as text', { 10: 1, 9: 2 }, '{"10":1,"9":2}'],
    ['keeps the order of arrays', [3, 1, 2], '[3,1,2]'],
    ['leaves out undefined members', { a: undefined, b: 1 }, '{"b":1}'],
    ['writes null for undefined items', [undefined, 1], '[null,1]'],
    ['writes null for undefined', undefined, 'null'],
    ['writes numbers as ECMAScript does', [1e21, 0.1, -0, 1e-7], '[1e+21,0.1,0,1e-7]'],
    ['escapes only what must be', 'a"\\\n\u0007é', '"a\\"\\\\\\n\\u0007é"'],
    ['writes scalars', [null, true, false, ''], '[null,true,false,""]'],
  ])('RFC 8785 %s', (_, value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });
});

test.each(['', 'abc', 'é', '漢', '😀', 'a😀é漢', '\ud800', '\udc00', 'x\ud800y', '\ud83d'])(
  'utf8Length(%j) is the length that encoding gives',
  (text) => {
    expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length);
  },
);

test('jsonBytes counts the JSON text', () => {
  expect(jsonBytes({ a: 'é' })).toBe(new TextEncoder().encode('{"a":"é"}').length);
  expect(jsonBytes(undefined)).toBe(4);
});

test.each<[unknown, boolean]>([
  [{}, true],
  [null, false],
  [[], false],
  ['x', false],
  [1, false],
  [undefined, false],
])('isJsonObject(%j) is %j', (value, expected) => {
  expect(isJsonObject(value)).toBe(expected);
});
