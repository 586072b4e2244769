// Which mutants a run of them tries.
import type { Mutant } from './mutants.ts';

/** At most so many of those that a change concerns: a few minutes. */
const MOST = 30;
/** At most so many beside them; the even steps may leave one less. */
const MORE = 5;

/** `parts`: `I12`, or a part of the name of a file or of a test. */
export function named(all: readonly Mutant[], parts: readonly string[]): readonly Mutant[] {
  const isMeant = (one: Mutant, part: string): boolean =>
    part === `I${one.invariant}` || one.file.includes(part) || one.test.includes(part);
  return all.filter((one) => parts.some((part) => isMeant(one, part)));
}

/** Separated by blanks or commas. */
export function wordsOf(text: string | undefined): readonly string[] {
  return (text ?? '').split(/[\s,]+/).filter((word) => word !== '');
}

/** What is wrong with the words that somebody gave: each has to mean a mutant. */
export function faultOfWords(all: readonly Mutant[], words: readonly string[]): string | undefined {
  const unknown = words.filter((word) => named(all, [word]).length === 0);
  if (unknown.length === 0) return undefined;
  return `OPENWOP_MUTANTS: no mutant has ${unknown.join(', ')} in its file or test, or as its number.`;
}

export interface Choice {
  readonly chosen: readonly Mutant[];
  /** How many the change concerns besides, which are not chosen. */
  readonly left: number;
}

export interface Change {
  /** Files that have changed. */
  readonly files: readonly string[];
  /** The lines that are new in the tables of mutants. */
  readonly rows?: string;
  /** The text of a test file; for what it imports of test/support. */
  readonly textOf?: (path: string) => string;
}

/** Whether a change concerns a mutant: its line, its row, its test, or what that imports of test/support. */
function isOf({ files, rows = '', textOf = () => '' }: Change): (mutant: Mutant) => boolean {
  const touched = new Set(files);
  const support = files.flatMap((path) => /^test(\/support\/.*)$/.exec(path)?.[1] ?? []);
  const imports = (killer: string): boolean =>
    support.length > 0 && support.some((path) => textOf(killer).includes(`..${path}'`));
  const isNew = ({ before, test }: Mutant): boolean =>
    rows.includes(test) || rows.includes(before.split('\n')[0]?.trim() ?? before);
  return (mutant) =>
    touched.has(mutant.file) ||
    touched.has(mutant.killer) ||
    (rows !== '' && isNew(mutant)) ||
    imports(mutant.killer);
}

/** Those that a change concerns, 30 at most, and four or five others. The seed says which. */
export function concerned(all: readonly Mutant[], change: Change, seed: number): Choice {
  const isTouched = isOf(change);
  const meant = spread(all.filter(isTouched), MOST, seed);
  const others = all.filter((one) => !isTouched(one));
  const tried = new Set([...meant, ...spread(others, MORE, seed)]);
  return {
    chosen: all.filter((one) => tried.has(one)),
    left: all.length - others.length - meant.length,
  };
}

/** At most so many of them, in even steps. */
function spread(mutants: readonly Mutant[], most: number, seed: number): readonly Mutant[] {
  const step = Math.max(1, Math.ceil(mutants.length / most));
  return mutants.filter((_, index) => (index + seed) % step === 0);
}

/** A test that failed in a report of vitest. */
export interface FailedTest {
  /** From the root of the project. */
  readonly file: string;
  readonly fullName: string;
  readonly failureMessages?: readonly string[];
}

/**
 * Mutants whose own tests fail before a line is changed, and why: what fails anyway kills nothing. A file may have run tests
 * that only another file's mutant names, without what those tests need; they are passed over.
 */
export function brokenBefore(
  chosen: readonly Mutant[],
  failed: readonly FailedTest[],
): ReadonlyMap<Mutant, string> {
  return new Map(
    chosen.flatMap((mutant) => {
      const own = new RegExp(mutant.test);
      const one = failed.find(({ file, fullName }) => file === mutant.killer && own.test(fullName));
      if (!one) return [];
      const message = (one.failureMessages ?? []).join('\n').slice(0, 600);
      return [[mutant, `${one.file} fails without it: ${one.fullName}\n${message}`] as const];
    }),
  );
}
