// What comes from outside as JSON is taken as it was written, or refused with its place (architecture §11, I103).
import { describe, expect, it, test, vi } from 'vitest';
import type { JsonValue } from '../../src/rules/json.ts';
import {
  faultText,
  isExact,
  marked,
  markedWithWords,
  opensLevelsAbove,
  readJson,
  uncertainIn,
  unkeptIn,
} from '../../src/rules/json-text.ts';

const AS_TEXT = 'is a number that cannot be kept exactly; send it as text, in quotes';

describe('[I103] a number is taken as it was written', () => {
  it.each([
    '0',
    '-0',
    '0.0',
    '0e999999999999',
    '1',
    '-1.50',
    '100',
    '1e3',
    '1E+3',
    '1000e-3',
    '0.1',
    '1e21',
    '1e-7',
    '5e-324',
    '1.7976931348623157e308',
    '9007199254740991',
    '9007199254740992',
    '-9007199254740992',
    '1000000000000000000000',
    '0.30000000000000004',
    `1${'0'.repeat(300)}`,
    `0.${'0'.repeat(300)}1`,
    `1${'0'.repeat(5000)}e-5000`,
  ])('%.40s', (text) => {
    expect(readJson(text)).toEqual({ ok: true, value: Number(text) });
    expect(readJson(`{"a":[1,${text}]}`)).toEqual({ ok: true, value: { a: [1, Number(text)] } });
  });

  it.each([
    '9007199254740993',
    '-9007199254740993',
    '2512292042121000001',
    '1152921504606846976',
    '1e400',
    '-1e400',
    '1e99999999999999999999',
    '1e-400',
    '0.1000000000000000055511151231257827',
    '0.10000000000000001',
    '9007199254740992.5',
    `1${'0'.repeat(400)}`,
  ])('or refused: %.40s', (text) => {
    expect(readJson(text)).toEqual({
      ok: false,
      isJson: true,
      fault: { pointer: '', message: AS_TEXT },
    });
    expect(readJson(`[{"a/b":{"~":[0, ${text} ]}}]`)).toMatchObject({
      fault: { pointer: '/0/a~1b/~0/1' },
    });
  });

  it('as big integers have it, over many numbers', () => {
    let seed = 7;
    const next = (most: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % most;
    };
    let exact = 0;
    for (let round = 0; round < 20_000; round++) {
      const digits = Array.from({ length: 1 + next(22) }, () => next(10)).join('');
      const point = next(digits.length + 1);
      const power = next(3) === 0 ? `e${next(40) - 20}` : '';
      const whole = digits.slice(0, point).replace(/^0+(?=\d)/, '') || '0';
      const text = whole + (point < digits.length ? `.${digits.slice(point)}` : '') + power;
      const isSame = sameNumber(text, JSON.stringify(Number(text)));
      expect(isExact(text), text).toBe(isSame);
      expect(readJson(`{"n":${text}}`).ok, text).toBe(isSame);
      if (isSame) exact += 1;
    }
    expect(exact).toBeGreaterThan(5_000);
    expect(exact).toBeLessThan(19_000);
  });

  it('whatever stands in texts and names beside it', () => {
    const value = {
      '9007199254740993': '9007199254740993',
      'a"b\\': ['1e400 \\"', '{"a":1e400}', -1.5e-3, true, false, null, {}, []],
      é: { '': [[1, [2]], 'x'] },
    };
    expect(readJson(JSON.stringify(value, null, 1))).toEqual({ ok: true, value });
    expect(readJson('{"a":"1e400","b\\"c":[[],{},9007199254740993]}')).toMatchObject({
      fault: { pointer: '/b"c/2' },
    });
  });
});

describe('[I103] a name that an object has twice is refused at its place', () => {
  it.each([
    ['{"amount":5,"amount":500}', '/amount'],
    ['{"a":1,"\\u0061":1}', '/a'],
    ['[0,{"x/y":[{"b":1},{"b":{"c":1,"d":{},"c":1}}]}]', '/1/x~1y/1/b/c'],
    ['{"":1,"":2}', '/'],
    ['{"a":{"b":1e400},"a":[]}', '/a'],
  ])('%s', (text, pointer) => {
    const message = 'is a name that its object has twice';
    expect(readJson(text)).toEqual({ ok: false, isJson: true, fault: { pointer, message } });
  });
  it.each([
    '[{"a":1},{"a":1}]',
    '{"a":{"a":{"a":1}},"b":{"a":"a:a"}}',
    '["a","a"]',
    '{"a":"\\"a\\":1"}',
  ])('and no other: %s', (text) => {
    expect(readJson(text)).toEqual({ ok: true, value: JSON.parse(text) as JsonValue });
  });
});

describe('[I103] a member named __proto__ is refused, not dropped', () => {
  it.each([
    ['{"__proto__":{"x":1}}', '/__proto__'],
    ['[{"a":{"\\u005f_proto__":1}}]', '/0/a/__proto__'],
    ['{"__proto__":1e400}', '/__proto__'],
  ])('%s', (text, pointer) => {
    const message = 'is a name that is not accepted';
    expect(readJson(text)).toEqual({ ok: false, isJson: true, fault: { pointer, message } });
  });
  it('as a text it is one like others', () => {
    expect(readJson('["__proto__"]')).toEqual({ ok: true, value: ['__proto__'] });
  });
});

describe('what is no JSON, or too deep', () => {
  it.each(['', '{', '[1,]', '{"a":1e}', '01', '1e400 x', '"'])('%j is no JSON', (text) => {
    const read = readJson(text);
    expect(read).toMatchObject({ ok: false, isJson: false, fault: { pointer: '' } });
    expect(faultText('It', read.ok ? { pointer: '', message: '' } : read.fault)).toMatch(
      /^It is not JSON: \S/,
    );
  });
  it('deeper than permitted', () => {
    const fault = { pointer: '', message: 'is nested deeper than 2 levels' };
    expect(readJson('[[[]]]', 2)).toEqual({ ok: false, isJson: true, fault });
    expect(readJson('[[1]]', 2)).toEqual({ ok: true, value: [[1]] });
  });
});

it('a pointer is bounded, and names a place in lists, members and names with slashes', () => {
  expect(readJson(`{"${'x'.repeat(2_000)}":1e400}`)).toMatchObject({
    fault: { pointer: `/${'x'.repeat(499)}` },
  });
  expect(readJson('[[0,{"a/b":[1,{"":[2,1e400]}]}]]')).toMatchObject({
    fault: { pointer: '/0/1/a~1b/1//1' },
  });
});

it('a text of many such numbers, names and zeros is read in its length', () => {
  const many = `[${Array.from({ length: 200_000 }, () => '1e400').join(',')}]`;
  const deep = `${'['.repeat(500)}${many}${']'.repeat(500)}`;
  const zeros = `[1${'0'.repeat(500_000)}1,0.${'0'.repeat(500_000)}1]`;
  for (const text of [many, deep, zeros]) expect(readJson(text, 512).ok).toBe(false);
});

it('a mark is what no JSON can say, at its place alone', () => {
  const text = '{"a":9007199254740993,"b":[1e400,1],"c":9007199254740992}';
  const value = marked(text, JSON.parse(text) as JsonValue);
  expect(value).toEqual({ a: NaN, b: [NaN, 1], c: 9007199254740992 });
  expect(unkeptIn(value)).toEqual({ pointer: '/a', message: AS_TEXT });
});

it('a bare NaN or Infinity has a mark of its own, and a text that is no JSON otherwise has none', () => {
  const value = markedWithWords('{"NaN":"NaN","a":[-Infinity,NaN ,-1e400,Infinity],"a\\"NaN":1}');
  expect(value).toEqual({ NaN: 'NaN', a: [-Infinity, -Infinity, NaN, -Infinity], 'a"NaN': 1 });
  expect(unkeptIn(value)).toMatchObject({ pointer: '/a/0' });
  for (const text of [
    '{"a":NaN',
    '[- NaN]',
    '[+Infinity]',
    '[NaN1]',
    '["NaN]',
    '[NaNNaN]',
    '[nan]',
  ])
    expect(markedWithWords(text)).toBeUndefined();
});

it.each([
  ['no word', 'a-', 0],
  ['a word', '[{"a":"NaN"},', 2],
  ['many words', '[-,', 200_000],
])(
  'a text that is no JSON, with %s, is searched for words where one may begin',
  (_, part, most) => {
    const text = `${part.repeat(100_000)}${most === 0 ? '' : ' NaN, Infinity'}`;
    const looks = vi.spyOn(String.prototype, 'startsWith');
    expect(markedWithWords(text)).toBeUndefined();
    const { length } = looks.mock.calls;
    looks.mockRestore();
    expect(length).toBeLessThanOrEqual(most);
  },
);

it.each([
  ['{"orderId":"A-1","orderId":"B-2"}', '/orderId'],
  ['{"a":[{"b":{"c":1},"b":{"c":2}}]}', '/a/0/b'],
  ['{"a":{"b":1,"b":2},"a":{"c":3}}', '/a'],
  ['{"a":9007199254740993,"a":1}', '/a'],
  ['{"a\\"b":1,"a\\u0022b":1}', '/a"b'],
])('[I103] a name that an object has twice is marked, too: %s', (text, pointer) => {
  const message = 'is a name that its object has twice';
  expect(unkeptIn(marked(text, JSON.parse(text) as JsonValue))).toEqual({ pointer, message });
});

describe('[I103] of a value that others have read, a number that may have been another one', () => {
  it.each([1, 0, -1.5, 0.1, 123456789012345, 1e-7, 9007199254740991])('%d was none', (value) => {
    expect(uncertainIn({ a: [value] })).toBeUndefined();
  });
  it.each([9007199254740992, 1e21, 0.30000000000000004, Infinity, NaN, 2512292042121000000])(
    '%d may have been',
    (value) => expect(uncertainIn({ a: [value] })).toEqual({ pointer: '/a/0', message: AS_TEXT }),
  );
});

/** Both as one fraction of big integers: apart from what is tested. */
function sameNumber(a: string, b: string): boolean {
  const fraction = (text: string): [bigint, bigint] => {
    const [mantissa = '', power = '0'] = text.split('e');
    const [whole = '', rest = ''] = mantissa.split('.');
    const scale = Number(power) - rest.length;
    const top = BigInt(whole + rest);
    return scale >= 0 ? [top * 10n ** BigInt(scale), 1n] : [top, 10n ** BigInt(-scale)];
  };
  const [topA, belowA] = fraction(a);
  const [topB, belowB] = fraction(b);
  return topA * belowB === topB * belowA;
}

test.each<[string, number, boolean]>([
  ['1', 0, false],
  ['[]', 0, true],
  ['[[1],{"a":[2]}]', 3, false],
  ['[[1],{"a":[2]}]', 2, true],
  ['["[[[[", "\\"[[", {"{{{": "}"}]', 2, false],
  ['["\\\\", [[1]]]', 2, true],
  ['[['.repeat(1_000_000), 512, true],
  ['"[[[[', 0, false],
])('opensLevelsAbove(%.40s, %i) is %s', (text, levels, expected) => {
  expect(opensLevelsAbove(text, levels)).toBe(expected);
});
