// Which mutants are none: their line has moved, is there twice, stays as it is, or is no program any more. And which are tried.
import { expect, test } from 'vitest';
import { brokenBefore, concerned, faultOfWords, named, wordsOf } from './choice.ts';
import { mutate } from './mutate.ts';
import { MUTANTS } from './mutants.ts';

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

test('those of a changed file and of a changed test are tried, and five others by the seed', () => {
  const [first, second] = MUTANTS;
  if (!first || !second) throw new Error('no mutants');
  const tried = (seed: number, ...changed: string[]) =>
    concerned(MUTANTS, { files: changed }, seed).chosen;
  const others = (seed: number) => tried(seed).map((one) => MUTANTS.indexOf(one));
  expect(others(1).length).toBeGreaterThanOrEqual(4);
  expect(others(1).length).toBeLessThanOrEqual(5);
  expect(others(1)).toEqual(others(1));
  expect(others(1)).not.toEqual(others(2));
  const all = new Set(Array.from({ length: MUTANTS.length }, (_, seed) => others(seed)).flat());
  expect(all.size).toBe(MUTANTS.length);
  for (const path of [first.file, second.killer]) {
    const meant = MUTANTS.filter(({ file, killer }) => file === path || killer === path);
    expect(tried(7, path)).toEqual(expect.arrayContaining(meant));
  }
  const helped = { files: ['test/support/a.ts'], textOf: () => "from '../support/a.ts'" };
  expect(concerned([second], helped, 7)).toEqual({ chosen: [second], left: 0 });
  const rows = `  [0, ['src/a.ts', '', ''], ['test/a.test.ts', '${first.test}']],`;
  for (let seed = 0; seed < 40; seed++)
    expect(concerned(MUTANTS, { files: [], rows }, seed).chosen).toContain(first);
});

test('of a change that concerns many a bounded number is tried, and the others are counted', () => {
  const changed = MUTANTS.map(({ file }) => file);
  const { chosen, left } = concerned(MUTANTS, { files: changed }, 3);
  expect(chosen.length).toBeLessThanOrEqual(30);
  expect(chosen.length + left).toBe(MUTANTS.length);
  expect(left).toBeGreaterThan(0);
});

test('words choose by number, file and test', () => {
  const [first] = MUTANTS;
  expect(named(MUTANTS, ['I1']).every(({ invariant }) => invariant === 1)).toBe(true);
  expect(named(MUTANTS, [first?.file ?? ''])).toContain(first);
  expect(named(MUTANTS, ['no such word'])).toEqual([]);
});

test('a word that means no mutant is refused, beside others too', () => {
  expect(wordsOf(undefined)).toEqual([]);
  expect(wordsOf(' I1,, I2 ')).toEqual(['I1', 'I2']);
  expect(faultOfWords(MUTANTS, ['I1', 'I2'])).toBeUndefined();
  expect(faultOfWords(MUTANTS, ['I1', 'nosuchword'])).toMatch(/no mutant has nosuchword in/);
});

test('a mutant is broken where its own test fails before it, and not where another test of the file does', () => {
  const [mutant] = MUTANTS;
  if (!mutant) throw new Error('no mutants');
  const own = { ...mutant, killer: 'test/a.test.ts', test: 'own words' };
  const fail = (file: string, fullName: string) =>
    brokenBefore([own], [{ file, fullName, failureMessages: ['a reason'] }]).get(own);
  expect(fail('test/a.test.ts', 'a group has own words')).toMatch(
    /^test\/a\.test\.ts fails without it: a group has own words\na reason$/,
  );
  expect(fail('test/a.test.ts', 'a group has other words')).toBeUndefined();
  expect(fail('test/b.test.ts', 'a group has own words')).toBeUndefined();
});
