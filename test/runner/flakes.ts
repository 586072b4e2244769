// A test that fails and passes alone is a flake: a fault of the test or of the product that nobody has found yet. It does not
// stop what is unrelated to it, and it is not forgotten: each is a row, and the third row of one test stops everybody.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MUTANTS } from '../mutants/mutants.ts';
import { ROOT } from '../support/root.ts';
import type { FileResult } from './lines.ts';
import { failedTests } from './outcome.ts';

/** Files that may be run again in one run; more failures are no chance. */
const FILES_AGAIN = 2;
/** Rows of one test that are one too many. */
const ROWS = 3;
/** Rows that everybody shares: somebody commits what the cache of a machine holds. */
const COMMITTED = join(ROOT, '.ci/flakes.jsonl');
const NAME = 'test-flakes.jsonl';

/** What such an error says is never chance: data was lost, doubled or shown (support/invariants.ts). */
const NEVER_CHANCE = /^Broken:/;
/** What these files hold is not asked a second time: erasure, access, redaction, appends, what is rebuilt, invariants. */
const NEVER_AGAIN =
  /erasure|erased|redact|access|rebuild|retention|postgres-(faults|migrating)|run-bundle/;
const GUARDS = new Set(MUTANTS.map(({ killer }) => killer));

export interface Flake {
  readonly file: string;
  readonly test: string;
  readonly message: string;
  /** The machine factor. */
  readonly slow: string;
  readonly commit: string;
  /** ISO 8601. */
  readonly at: string;
}

/** Says that the rows of a test before this time are dealt with. */
interface Mended {
  readonly mended: string;
  readonly at: string;
}

type Row = Flake | Mended;

/** The failed files that are run once more: none when there are too many, or when one of them is nothing to try twice. */
export function filesAgain(
  failed: ReadonlyMap<string, FileResult | undefined>,
  isProcessLevel: (file: string) => boolean,
): readonly string[] {
  if (failed.size > FILES_AGAIN) return [];
  const mayRun = [...failed].every(
    ([file, result]) =>
      isProcessLevel(file) && result !== undefined && !isGuard(file) && !isBroken(result),
  );
  return mayRun ? [...failed.keys()] : [];
}

const isGuard = (file: string): boolean => GUARDS.has(file) || NEVER_AGAIN.test(file);

function isBroken({ tests, errors }: FileResult): boolean {
  const all = [...errors, ...tests.flatMap((test) => test.errors)];
  return all.some((error) => NEVER_CHANCE.test(error));
}

/** What failed in a file, as rows. */
export function flakesOf(
  file: string,
  result: FileResult,
  run: Pick<Flake, 'slow' | 'commit' | 'at'>,
): readonly Flake[] {
  const tests = failedTests(result).map(({ titles, errors }) => ({
    test: titles.join(' › '),
    message: errors.join('; '),
  }));
  const found = tests.length > 0 ? tests : [{ test: '', message: result.errors.join('; ') }];
  return found.map((one) => ({ file, ...one, message: one.message.slice(0, 500), ...run }));
}

const nameOf = ({ file, test }: Pick<Flake, 'file' | 'test'>): string => `${file} › ${test}`;

/** Names of tests that have flaked too often. A row that is kept in both places counts once. */
export function tooOften(rows: readonly Row[]): readonly string[] {
  const mended = new Map<string, string>();
  for (const row of rows)
    if ('mended' in row && row.at > (mended.get(row.mended) ?? '')) mended.set(row.mended, row.at);
  const seen = new Map<string, Set<string>>();
  for (const row of rows) {
    if ('mended' in row || row.at <= (mended.get(nameOf(row)) ?? '')) continue;
    const times = seen.get(nameOf(row)) ?? new Set();
    seen.set(nameOf(row), times.add(row.at));
  }
  return [...seen].filter(([, times]) => times.size >= ROWS).map(([name]) => name);
}

export function readFlakes(cacheDir: string): readonly Row[] {
  return [COMMITTED, join(cacheDir, NAME)].flatMap((path) =>
    existsSync(path)
      ? readFileSync(path, 'utf8')
          .split('\n')
          .filter((line) => line.trim() !== '')
          .map((line) => JSON.parse(line) as Row)
      : [],
  );
}

export function keepFlakes(cacheDir: string, flakes: readonly Flake[]): void {
  if (flakes.length === 0) return;
  const path = join(cacheDir, NAME);
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, flakes.map((row) => `${JSON.stringify(row)}\n`).join(''));
}
