// What a test run comes to: its counts, the line that ends it, and what it says above that line.
import type { FileResult, Line, Spent, Startable, TestResult } from './lines.ts';
import { STARTABLE } from './lines.ts';

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** One line for each skipped suite, or lone test: file, title, number of tests. */
  readonly twins: readonly string[];
  /** Files with a failure, those that never ended among them. */
  readonly failures: readonly string[];
  /** Files that were to run and did not end. */
  readonly cutOff: readonly string[];
}

/** The last result of each file: one that was run again counts as it ended then. */
export function resultsOf(lines: readonly Line[]): ReadonlyMap<string, FileResult> {
  return new Map(lines.flatMap((line) => (line.kind === 'file' ? [[line.file, line.result]] : [])));
}

export function spentOf(lines: readonly Line[]): ReadonlyMap<string, Spent> {
  return new Map(lines.flatMap((line) => (line.kind === 'spent' ? [[line.file, line.spent]] : [])));
}

/**
 * Counts tests. A file that failed without a failed test (it did not load, a hook broke), one that did not end, and errors
 * outside of all tests count as a failure each. `lost`: what ended without a word, as a vitest that crashed.
 */
export function outcomeOf(lines: readonly Line[], lost = 0): Outcome {
  const results = resultsOf(lines);
  const queued = new Set(lines.flatMap((line) => (line.kind === 'queued' ? line.files : [])));
  const cutOff = [...queued].filter((file) => !results.has(file));
  const strays = lines.filter((line) => line.kind === 'end' && line.errors.length > 0).length;
  const twins = new Map<string, number>();
  const failures = [...cutOff];
  const counts = { passed: 0, failed: cutOff.length + strays + lost, skipped: 0 };
  for (const [file, { tests, errors }] of results) {
    for (const test of tests) {
      counts[test.state] += 1;
      if (test.state !== 'skipped') continue;
      const title = `${file}: ${test.titles[0]}`;
      twins.set(title, (twins.get(title) ?? 0) + 1);
    }
    const hasFailed = tests.some(({ state }) => state === 'failed');
    if (errors.length > 0 && !hasFailed) counts.failed += 1;
    if (errors.length > 0 || hasFailed) failures.push(file);
  }
  return {
    ...counts,
    twins: [...twins].map(([title, count]) => `${title} (${count})`),
    failures,
    cutOff,
  };
}

/** The line that ends `npm test`. */
export function lastLine({ passed, failed, skipped }: Outcome): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

const NAMED = 30;
const LONGEST_MESSAGE = 300;

/** A line for each failure, at most 30: what a log that is cut keeps, since they stand just above its end. */
export function failureLines(lines: readonly Line[], lost = 0): readonly string[] {
  const named: string[] = [];
  const name = (where: string, errors: readonly string[]) => {
    named.push(`FAILED ${where}: ${errors.map(shortened).join('; ') || 'no message'}`);
  };
  for (const [file, result] of resultsOf(lines)) {
    const tests = failedTests(result);
    for (const { titles, errors } of tests) name(`${file} › ${titles.join(' › ')}`, errors);
    if (tests.length === 0 && result.errors.length > 0) name(file, result.errors);
  }
  for (const line of lines)
    if (line.kind === 'end' && line.errors.length > 0) name('outside of all tests', line.errors);
  if (lost > 0) name(`${lost} lanes`, ['ended without a word']);
  const left = named.length - NAMED;
  return left > 0 ? [...named.slice(0, NAMED), `FAILED ${left} more`] : named;
}

function shortened(error: string): string {
  return error.replaceAll(/\s+/g, ' ').slice(0, LONGEST_MESSAGE);
}

const SLOWEST = 10;

/** The files that took longest, a line each. */
export function slowestFiles(lines: readonly Line[]): readonly string[] {
  const spent = spentOf(lines);
  return [...resultsOf(lines)]
    .sort(([, a], [, b]) => b.ms - a.ms)
    .slice(0, SLOWEST)
    .map(
      ([file, { ms }]) => `${seconds(ms)} s ${seconds(spent.get(file)?.cpuMs ?? 0)} CPU s  ${file}`,
    );
}

/** What the tests took in all: seconds of their files, of the processors, and what they started. */
export function totals(lines: readonly Line[]): string {
  const results = [...resultsOf(lines).values()];
  const spent = [...spentOf(lines).values()];
  const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
  const started = (what: Startable) => `${sum(spent.map((one) => one.started[what]))} ${what}s`;
  const files = seconds(sum(results.map(({ ms }) => ms))).trim();
  const cpu = seconds(sum(spent.map(({ cpuMs }) => cpuMs))).trim();
  return `Files took ${files} s and ${cpu} CPU s, and started ${STARTABLE.map(started).join(', ')}.`;
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1).padStart(6);
}

export function failedTests(result: FileResult): readonly TestResult[] {
  return result.tests.filter(({ state }) => state === 'failed');
}
