// docs/architecture.md against the tree, both ways: its rooms, its invariants with their tests and mutants, and what
// cites it.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MUTANTS } from './mutants/mutants.ts';
import { mutate } from './mutants/mutate.ts';
import { ROOT } from './support/root.ts';
import { repositoryFiles } from './support/source-tree.ts';

const LEAST_INVARIANTS = 25;
const PAGE = 'docs/architecture.md';
const textOf = (path: string): string => readFileSync(ROOT + path, 'utf8');
/** A citation may go over the end of a line of a comment. */
const flat = (text: string): string => text.replace(/\n\s*(\/\/|\*|--|#)?\s*/g, ' ');
const page = textOf(PAGE);
const citing = repositoryFiles('.').filter(
  (path) =>
    /\.(ts|js|cjs|mjs|json|md|sql|go|yml)$|^\.ci\/|^Dockerfile$/.test(path) &&
    !/^test\/(histories|mutants)\/|package-lock|^docs\/architecture\.md$/.test(path),
);

interface Invariant {
  readonly number: number;
  readonly file: string;
  readonly test: string;
}
const invariants = [
  ...page.matchAll(/^- \*\*I(\d+)\.\*\* .*\n(?: {2}(?!`).*\n)* {2}`([^`]+)`: “([^”]+)”$/gm),
].map(([, number, file = '', test = '']): Invariant => ({ number: Number(number), file, test }));

/** Names of tests in a source: quotes in them are escaped there. */
function holds(file: string, test: string): boolean {
  return existsSync(ROOT + file) && textOf(file).replaceAll('\\', '').includes(test);
}

function invariantsCitedIn(path: string): number[] {
  return [...textOf(path).matchAll(/\[I(\d+)\]/g)].map(([, number]) => Number(number));
}

describe('the rooms of architecture §1.1', () => {
  it('are those of tidy.test.ts', () => {
    const table =
      /\nconst ROOMS[^\n]*\{\n([^]*?)\n\};/.exec(textOf('test/tidy.test.ts'))?.[1] ?? '';
    const rooms = [...table.matchAll(/^ {2}'?([\w/.-]+)'?: \{/gm)].map(([, name]) => name);
    const told = [...page.matchAll(/^\| `([\w/-]+)` /gm)].map(([, name]) => name);
    // Files with a row of their own belong to the room that they are in.
    expect(told.sort()).toEqual(rooms.filter((name) => !name?.match(/\.[jt]s$/)).sort());
  });
});

describe('the invariants of architecture §11', () => {
  it(`go from 1 without a gap, and are ${LEAST_INVARIANTS} or more`, () => {
    expect(invariants.length).toBeGreaterThanOrEqual(LEAST_INVARIANTS);
    expect(invariants.map(({ number }) => number)).toEqual(invariants.map((_, at) => at + 1));
    expect(page.match(/^- \*\*I/gm)).toHaveLength(invariants.length);
  });
  it('name a test that exists, each time that they name one', () => {
    const named = [...page.matchAll(/^ {2}`([^`]+)`: “([^”]+)”$/gm)];
    expect(named.length).toBeGreaterThan(invariants.length);
    expect(named.filter(([, file = '', test = '']) => !holds(file, test))).toEqual([]);
  });
  it('are cited by that test', () => {
    const silent = invariants.filter(
      ({ number, file }) => !existsSync(ROOT + file) || !invariantsCitedIn(file).includes(number),
    );
    expect(silent).toEqual([]);
  });
  it('are held by `npm test`: each of those files is one of its own, or what such a file imports', () => {
    const tests = repositoryFiles('test').filter((path) => path.endsWith('.test.ts'));
    const texts = tests.map(textOf);
    const isImported = (file: string) =>
      texts.some((text) => text.includes(`from '../${file.replace('test/', '')}'`));
    const outside = invariants.filter(({ file }) => !tests.includes(file) && !isImported(file));
    expect(outside).toEqual([]);
  });
  it('exist where they are cited', () => {
    const known = new Set(invariants.map(({ number }) => number));
    const dangling = citing.flatMap((path) =>
      invariantsCitedIn(path)
        .filter((number) => !known.has(number))
        .map((number) => `${path}: I${number}`),
    );
    expect(dangling).toEqual([]);
  });
  it('have a mutant each, and each mutant has its invariant', () => {
    const mutated = new Set(MUTANTS.map(({ invariant }) => invariant));
    expect([...mutated].sort((a, b) => a - b)).toEqual(invariants.map(({ number }) => number));
  });
});

describe('each mutant', () => {
  it('changes a line that is there once, and stays a program', () => {
    const faults = MUTANTS.map((mutant) => {
      const { file, invariant } = mutant;
      if (!existsSync(ROOT + file)) return `I${invariant} ${file}: is not there`;
      const mutated = mutate(mutant, textOf(file));
      return 'fault' in mutated ? `I${invariant} ${file}: ${mutated.fault}` : '';
    });
    expect(faults.filter((fault) => fault !== '')).toEqual([]);
  });
  it('names a file of tests that exists', () => {
    expect(MUTANTS.filter(({ killer }) => !existsSync(ROOT + killer))).toEqual([]);
  });
});

describe('the paths that the pages name', () => {
  it.each([PAGE, 'docs/how-to-add.md', 'docs/upgrades.md', 'docs/performance.md'])(
    '%s: are there',
    (path) => {
      const named = [
        ...textOf(path).matchAll(
          /`((?:src|test|workflows|activities|schemas|docs|examples|\.ci)\/[\w./-]*)`/g,
        ),
      ].map(([, one = '']) => one);
      expect(named.filter((one) => !existsSync(ROOT + one))).toEqual([]);
    },
  );
});

describe('what cites architecture.md', () => {
  it('stands in the place of notes that are not in the repository', () => {
    // Put together here, so that this file does not find itself.
    const notes = new RegExp(['des' + 'ign §', 'spec/' + '0\\d', 'style' + '\\.md'].join('|'));
    expect(citing.filter((path) => notes.test(flat(textOf(path))))).toEqual([]);
  });
  it('quotes words that stand there', () => {
    const words = flat(page).toLowerCase();
    const quoted = citing.flatMap((path) =>
      [...flat(textOf(path)).matchAll(/architecture §[\d.]+ "([^"]+)"/g)].map(
        ([, quote = '']) => quote,
      ),
    );
    expect(quoted.length).toBeGreaterThan(0);
    expect(quoted.filter((quote) => !words.includes(quote))).toEqual([]);
  });
  it('names a section that is there', () => {
    const sections = new Set(
      [...page.matchAll(/^#{2,3} (\d+(?:\.\d+)?)\.? /gm)].map(([, number]) => number),
    );
    const dangling = citing.flatMap((path) =>
      [
        ...flat(textOf(path)).matchAll(/architecture((?:(?:, | and |–)?\s*§\d+(?:\.\d+)?)+)/g),
      ].flatMap(([, cited = '']) =>
        [...cited.matchAll(/§(\d+(?:\.\d+)?)/g)]
          .map(([, number]) => number)
          .filter((number) => !sections.has(number))
          .map((number) => `${path}: §${number}`),
      ),
    );
    expect(dangling).toEqual([]);
  });
});
