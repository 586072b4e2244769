// Which of the tests that import what was changed have time in a quick run.
import { basename } from 'node:path';
import type { Durations } from './durations.ts';

interface Bounds {
  /** Of the changed files, without what follows the first dot. */
  readonly names: readonly string[];
  readonly durations: Durations;
  readonly budgetMs: number;
}

/** What was never measured, in ms. */
const UNKNOWN_MS = 2_000;

/** Those named as a changed file are first, then the shortest. One that does not fit leaves room for shorter ones. */
export function choose(
  files: readonly string[],
  { names, durations, budgetMs }: Bounds,
): { readonly chosen: readonly string[]; readonly left: readonly string[] } {
  const near = new Set(names);
  const isNear = (file: string) => near.has(basename(file).replace(/\..*$/, ''));
  const msOf = (file: string) => durations[file] ?? UNKNOWN_MS;
  const sorted = [...files].sort(
    (a, b) => Number(isNear(b)) - Number(isNear(a)) || msOf(a) - msOf(b),
  );
  const chosen: string[] = [];
  const left: string[] = [];
  let sum = 0;
  for (const file of sorted) {
    const fits = sum + msOf(file) <= budgetMs;
    (fits ? chosen : left).push(file);
    if (fits) sum += msOf(file);
  }
  return { chosen, left };
}

/** What runs without being imported by its tests: bundled, read, or started as a program; and where its tests are. */
const NOT_IMPORTED: readonly (readonly [changed: RegExp, tests: RegExp])[] = [
  [/^workflows\//, /^test\/(workflows|histories)\//],
  [/\.sql$/, /^test\/(adapters\/postgres-|runs\/)/],
  [/^schemas\//, /^test\/(wire|deploy)\//],
  [/^src\/(app|cli|demo)\//, /^test\/(app|faults)\//],
  [/^examples\//, /^test\/(acceptance\/.*example|opensentience\/examples|deploy\/)/],
  [/^activities\//, /^test\/faults\//],
];

/** Tests of changed files that no import leads to. */
export function testsWithoutImport(
  changed: readonly string[],
  tests: readonly string[],
): readonly string[] {
  const rooms = NOT_IMPORTED.filter(([pattern]) => changed.some((path) => pattern.test(path)));
  return tests.filter((file) => rooms.some(([, room]) => room.test(file)));
}
