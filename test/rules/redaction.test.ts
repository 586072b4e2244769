// SR-1: nothing secret-shaped leaves, whole or in pieces.
import { describe, expect, test } from 'vitest';
import { createRedactor, MAX_HOLD_BACK } from '../../src/rules/redaction.ts';

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJlLWhlcmU';
const redactor = createRedactor([
  { id: 'short', value: 'abcdefgh' },
  { id: 'long', value: 'abcdefgh-ijkl' },
  { id: 'tiny', value: 'tiny' },
  { id: 'odd', value: 'a+b(c)[d]$^' },
  { id: 'quoted', value: 'pass"word\\1' },
]);

const TEXTS: readonly (readonly [string, string])[] = [
  ['nothing secret here', 'nothing secret here'],
  ['x abcdefgh y', 'x [REDACTED:short] y'],
  ['the longest first: abcdefgh-ijkl', 'the longest first: [REDACTED:long]'],
  ['too short to be one: tiny', 'too short to be one: tiny'],
  ['a+b(c)[d]$^', '[REDACTED:odd]'],
  ['as it is: pass"word\\1.', 'as it is: [REDACTED:quoted].'],
  ['in JSON: {"a":"pass\\"word\\\\1"}', 'in JSON: {"a":"[REDACTED:quoted]"}'],
  ['key sk-abcdefghij0123456789.', 'key [REDACTED:credential].'],
  ['key sk-ant-api03-abcdefghij0123456789', 'key [REDACTED:credential]'],
  ['AIzaSyA0123456789abcdefghijklmnopqrstuv', '[REDACTED:credential]'],
  [`Bearer ${JWT}, done`, 'Bearer [REDACTED:credential], done'],
  ['cred_0123456789', '[REDACTED:credential]'],
  ['a task-oriented risk-averse desk-bound clerk', 'a task-oriented risk-averse desk-bound clerk'],
  ['sk-short', 'sk-short'],
  ['eyJ.not.ajwt', 'eyJ.not.ajwt'],
  ['🙂 abcdefgh 🙂', '🙂 [REDACTED:short] 🙂'],
  ['', ''],
];

describe('redaction (SR-1)', () => {
  test.each(TEXTS)('%s', (text, expected) => {
    expect(redactor.text(text)).toBe(expected);
  });

  test('walks keys and values, and leaves the rest alone', () => {
    const value = { abcdefgh: [1, true, null, { deep: 'abcdefgh' }] };
    expect(redactor.json(value)).toEqual({
      '[REDACTED:short]': [1, true, null, { deep: '[REDACTED:short]' }],
    });
  });

  test('keeps a key __proto__ a key', () => {
    const value = JSON.parse('{"__proto__": {"a": "abcdefgh"}}') as object;
    expect(JSON.stringify(redactor.json(value))).toBe('{"__proto__":{"a":"[REDACTED:short]"}}');
  });
});

describe('the stream form: no secret straddles two pieces (architecture §3.5)', () => {
  const cutAll = (text: string, size: number): string[] =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
      text.slice(at * size, (at + 1) * size),
    );

  // [I38]
  test.each(TEXTS)(
    'in pieces of every size it shows what the whole shows: %s',
    (text, expected) => {
      for (let size = 1; size <= Math.max(1, text.length); size++) {
        const stream = redactor.stream();
        const shown = cutAll(text, size).map((piece) => stream.push(piece));
        expect([...shown, stream.end()].join(''), `size ${size}`).toBe(expected);
      }
    },
  );

  test('ordinary text is not held back', () => {
    const stream = redactor.stream();
    expect(stream.push('I read the order')).toBe('I read the order');
    expect(stream.push('.')).toBe('.');
  });

  test.each([
    ['the end of a word is kept: a desk s', 'the end of a word is kept: a desk s'],
    [
      'so is the beginning of an ordinary one: cred',
      'so is the beginning of an ordinary one: cred',
    ],
    ['a bare prefix tells nothing: sk-', 'a bare prefix tells nothing: sk-'],
    ['nor do three characters: abc', 'nor do three characters: abc'],
    ['a known secret that was begun: abcdef', 'a known secret that was begun: [REDACTED:long]'],
    ['a credential that was begun: sk-abc', 'a credential that was begun: [REDACTED:credential]'],
    ['a token that was begun: eyJhbGciOi', 'a token that was begun: [REDACTED:credential]'],
    ['a whole one: abcdefgh', 'a whole one: [REDACTED:short]'],
    [`a whole one: ${JWT}`, 'a whole one: [REDACTED:credential]'],
  ])(
    'a text that is cut off shows its held-back tail, but no beginning of a secret: %s',
    (text, shown) => {
      for (let size = 1; size <= text.length; size++) {
        const stream = redactor.stream();
        const before = cutAll(text, size).map((piece) => stream.push(piece));
        expect([...before, stream.cut()].join(''), `size ${size}`).toBe(shown);
      }
    },
  );

  test('never shows half a surrogate pair', () => {
    const stream = redactor.stream();
    expect(stream.push('x\ud83d')).toBe('x');
    expect(stream.push('\ude42')).toBe('🙂');
  });

  test('an endless credential is swallowed, not kept', () => {
    const stream = redactor.stream();
    let shown = stream.push('key sk-');
    for (let at = 0; at < 40; at++) shown += stream.push('a'.repeat(MAX_HOLD_BACK / 8));
    shown += stream.push('aaa done');
    expect(shown + stream.end()).toBe('key [REDACTED:credential] done');
  });

  test.each(['sk-', 'eyJ', 'a', '-', 'abcdefg'])('1 MB of %j takes linear work', (piece) => {
    const text = piece.repeat(1_000_000 / piece.length);
    redactor.text(text);
    const stream = redactor.stream();
    stream.push(text);
    expect(stream.end().length).toBeLessThanOrEqual(text.length);
  });
});
