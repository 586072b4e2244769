// Which mutants are none: their line has moved, is there twice, stays as it is, or is no program any more.
import { expect, test } from 'vitest';
import { mutate } from './mutate.ts';

const TEXT = 'export const limit = 1;\nexport const other = 2;\n';
const given = (before: string, after: string) =>
  mutate({ file: 'src/a.ts', before, after }, TEXT) as { text?: string; fault?: string };

test.each([
  ['one line is changed', 'limit = 1', 'limit = 9', TEXT.replace('1', '9')],
  ['what takes its place is taken as it is', '= 1;', "= '$&';", TEXT.replace('1', () => "'$&'")],
])('%s', (_, before, after, text) => {
  expect(given(before, after)).toEqual({ text });
});

test.each([
  ['the line is not there', 'limit = 3', 'limit = 9', /0 times/],
  ['it is there twice', 'export', 'import', /2 times/],
  ['nothing is changed', 'limit = 1', 'limit = 1', /nothing is changed/],
  ['it is no program', 'limit = 1', 'limit =', /does not compile/],
])('no mutant: %s', (_, before, after, fault) => {
  expect(given(before, after).fault).toMatch(fault);
});
