// Texts as a person reads them: nothing is hidden, nothing turns the order of others around (architecture §11, I104).
import { describe, expect, it } from 'vitest';
import {
  hidesAPart,
  printable,
  printableAlone,
  printableJson,
  printableLines,
  printableValue,
} from '../../src/words/printable.js';

describe('[I104] what would be hidden stands as its escape', () => {
  it.each([
    ['an override', 'A-\u202e7001', String.raw`A-\u202e7001`],
    ['an isolate', 'A\u2067B\u2069', String.raw`A\u2067B\u2069`],
    ['no width', 'pay\u200bload', String.raw`pay\u200bload`],
    ['joiners where nothing joins', 'a\u200db\u200cc', String.raw`a\u200db\u200cc`],
    ['a joiner of what is no emoji', '©\u200d®', String.raw`©\u200d®`],
    ['a mark of byte order', '\ufeffx', String.raw`\ufeffx`],
    ['a soft hyphen', 'pay\u00adee', String.raw`pay\u00adee`],
    ['a control', 'a\u0000b\u001b[2J\u009b', String.raw`a\u0000b\u001b[2J\u009b`],
    ['half a pair', 'a\ud83d', String.raw`a\ud83d`],
    ['fillers and blanks that are letters', '\u3164\uffa0\u2800', String.raw`\u3164\uffa0\u2800`],
    ['a selector of nothing', '1\ufe0f \u{e0100}', String.raw`1\ufe0f \udb40\udd00`],
    ['tags', 'x\u{e0041}', String.raw`x\udb40\udc41`],
    ['a place of an object', 'A-\ufffc7001', String.raw`A-\ufffc7001`],
    ['rare spaces', 'a\u2002b\u2000', String.raw`a\u2002b\u2000`],
    ['a joiner of digits', '\u06f1\u200c\u06f2', '\u06f1\\u200c\u06f2'],
    ['line separators', 'a\u2028b\u2029c', String.raw`a\u2028b\u2029c`],
  ])('%s', (_, text, shown) => {
    expect(printable(text)).toBe(shown);
    expect(printableValue(text)).toBe(shown);
    expect(printableLines(text)).toBe(shown);
    expect(printableJson({ [text]: text })).toBe(`{"${shown}":"${shown}"}`);
    expect(JSON.parse(printableJson([text]))).toEqual([text]);
    expect(hidesAPart(text)).toBe(true);
  });

  it.each([
    ['letters of all scripts', 'Grüße, 漢字, עברית, العربية, हिन्दी'],
    ['emoji and their parts', '❤️ ❤️‍🔥 ⛹🏽‍♂️ 🏳️‍🌈 👩🏽‍🚀 👨‍👩‍👧 😀 1️⃣'],
    ['joiners that writing needs', 'می\u200cخواهم क्\u200dष क्\u200cष'],
    ['spaces', '64,90\u00a0€ 一\u3000二'],
    ['other backslashes', String.raw`C:\users\new \d+ \u12`],
  ])('%s stay', (_, text) => {
    for (const shown of [printable, printableValue, printableLines]) expect(shown(text)).toBe(text);
    expect(hidesAPart(text)).toBe(false);
  });
});

it('a value is shown on one line or in its lines', () => {
  const text = 'a\nb\tc\r\nd\re';
  expect(printable(text)).toBe(String.raw`a\u000ab\u0009c\u000d\u000ad\u000de`);
  expect(printableValue(text)).toBe('a\nb\tc\r\nd\\u000de');
  expect(printableLines(text)).toBe('a\nb\tc\r\nd\\u000de');
});

it.each([
  [' A-1', String.raw`\u0020A-1`],
  ['A-1\n', String.raw`A-1\u000a`],
  ['  ', String.raw`\u0020\u0020`],
  ['', '""'],
  ['null', '"null"'],
  ['"null"', String.raw`"\"null\""`],
  ['nullify', 'nullify'],
  ['a "b" c', 'a "b" c'],
  ['2512292042121000001', '2512292042121000001'],
])('[I104] a value that stands alone shows its ends: %j', (value, shown) => {
  expect(printableAlone(value)).toBe(shown);
});

it('long runs are read in their length', () => {
  for (const part of ['\\', ' ', '\u200d', '\u202e', '👩', 'a '])
    for (const shown of [printable, printableValue, printableAlone, printableLines])
      expect(shown(`x${part.repeat(200_000)}x`).length).toBeGreaterThan(100_000);
});

it('[I104] no two values look alike, and a text with printable values in it stays', () => {
  const parts = [
    '\u202e',
    String.raw`\u202e`,
    '\\',
    'a',
    '\u200b',
    String.raw`\u`,
    '0020',
    ' ',
    '\n',
  ];
  const texts = parts.flatMap((a) => parts.flatMap((b) => parts.map((c) => a + b + c)));
  const all = [...new Set(texts)];
  expect(new Set(all.map(printableAlone)).size).toBe(all.length);
  for (const shown of [printable, printableValue]) {
    expect(new Set(all.map(shown)).size).toBe(all.length);
    for (const text of all)
      expect(printableLines(shown(text))).toBe(shown(text).replaceAll('\r', '\\u000d'));
  }
});
