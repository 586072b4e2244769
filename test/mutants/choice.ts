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

/** Those whose line or test is in a changed file, 30 at most, and four or five others. The seed says which. */
export function concerned(
  all: readonly Mutant[],
  changed: readonly string[],
  seed: number,
): Choice {
  const touched = new Set(changed);
  const isTouched = ({ file, killer }: Mutant) => touched.has(file) || touched.has(killer);
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
