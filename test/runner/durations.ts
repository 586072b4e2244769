// How long each test file took the last time, kept in the user's cache: the longest start first, so that none begins when all
// others are done.
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT } from '../support/root.ts';
import type { Line } from './lines.ts';
import { resultsOf } from './outcome.ts';

const NAME = 'test-durations.json';
/** What was never measured goes by its size: about a second each. */
const BYTES_PER_MS = 10;

/** In ms, by path from the repository's root. */
export type Durations = Readonly<Record<string, number>>;

/** Empty where nothing was measured, or what is kept cannot be read. */
export function readDurations(cacheDir: string): Durations {
  const path = join(cacheDir, NAME);
  try {
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Durations) : {};
  } catch {
    return {};
  }
}

/** Of the files that ended; what else is kept stays. */
export function keepDurations(cacheDir: string, lines: readonly Line[]): void {
  const measured = [...resultsOf(lines)].map(([file, { ms }]) => [file, ms] as const);
  const path = join(cacheDir, NAME);
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  const kept = { ...readDurations(cacheDir), ...Object.fromEntries(measured) };
  writeFileSync(draft, JSON.stringify(kept, undefined, 1));
  renameSync(draft, path);
}

/** Absolute paths of test files, those that take longest in front. */
export function heaviestFirst(paths: readonly string[], durations: Durations): readonly string[] {
  const weight = (path: string) =>
    durations[relative(ROOT, path)] ?? statSync(path).size / BYTES_PER_MS;
  const weights = new Map(paths.map((path) => [path, weight(path)]));
  return [...paths].sort((a, b) => (weights.get(b) ?? 0) - (weights.get(a) ?? 0));
}
