// `npm test`: obtains a Temporal server as `npm start` does, runs the tests on two tracks (plan.ts), names what was skipped, and
// ends with one line of its own. Where nothing but the in-memory server can be had, what needs a dev server is skipped. With
// OPENWOP_TEST_REQUIRE (a list of postgres, java, chromium, python, go) a skip is a failure (architecture §8).
import {
  inProcessTestFiles,
  processTestFiles,
  realTestFiles,
  testFiles,
} from '../support/projects.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { MUTANTS } from '../mutants/mutants.ts';
import { overBudget } from './budget.ts';
import { keepDurations, readDurations } from './durations.ts';
import { keepFlakes, readFlakes, tooOften, type Flake } from './flakes.ts';
import { Greens } from './green.ts';
import { withoutKiller } from './killers.ts';
import { lastLine, resultsOf, slowestFiles, totals, type Outcome } from './outcome.ts';
import { inProcess, plan, processes, type Track } from './plan.ts';
import { tryAgain } from './second-try.ts';
import { withServers, type Closing, type Surroundings } from './servers.ts';
import type { TestRun } from './test-run.ts';

/** Longest time of all tests in ms on a machine of factor 1, and on any. */
const LIMIT_MS = 30 * 60_000;
const LONGEST_MS = 50 * 60_000;

/** Nothing that needs a dev server ran: each of its files counts as skipped. */
function withoutRealTests(outcome: Outcome): Outcome {
  const files = [...realTestFiles(), ...processTestFiles()];
  const twins = files.map((file) => `${file}: no Temporal dev server`);
  return {
    ...outcome,
    skipped: outcome.skipped + files.length,
    twins: [...outcome.twins, ...twins],
  };
}

function tracksOf(hasServer: boolean, args: readonly string[]): readonly Track[] {
  if (!hasServer) return [[inProcess(false)]];
  if (args.length > 0) return [[inProcess(true)], [processes()]];
  const files = { inProcess: inProcessTestFiles(), processes: processTestFiles() };
  return plan(files, readDurations(CACHE_DIR));
}

async function test(run: TestRun, { hasServer, slow, args }: Asked): Promise<Closing> {
  await run.play(tracksOf(hasServer, args), args);
  const about = { slow, commit: greens.begun ?? '', at: new Date().toISOString() };
  const flakes = await tryAgain(run, processTestFiles(), about);
  noted(() => keepFlakes(CACHE_DIR, flakes));
  noted(() => keepDurations(CACHE_DIR, run.lines));
  const outcome = hasServer ? run.outcome : withoutRealTests(run.outcome);
  const isWhole = args.length === 0 && run.why === undefined;
  const closing = close(run, outcome, { flakes, isWhole, hasServer });
  if (closing.code === 0 && isWhole && outcome.skipped === 0) noted(() => greens.keep());
  return closing;
}

/** Bookkeeping: what the tests came to stands without it. */
function noted(keep: () => void): void {
  try {
    keep();
  } catch (error) {
    console.log(`Could not be kept for the next run: ${String(error)}`);
  }
}

/** Files of a whole run that no lane took up. */
function unheard(run: TestRun, hasServer: boolean): readonly string[] {
  const heard = new Set([...resultsOf(run.lines).keys(), ...run.outcome.cutOff]);
  const others = new Set(hasServer ? [] : [...realTestFiles(), ...processTestFiles()]);
  return testFiles().filter((file) => !heard.has(file) && !others.has(file));
}

interface Seen {
  readonly flakes: readonly Flake[];
  /** All files were to run. */
  readonly isWhole: boolean;
  readonly hasServer: boolean;
}

function close(run: TestRun, outcome: Outcome, { flakes, isWhole, hasServer }: Seen): Closing {
  const lines = ['Slowest files:', ...slowestFiles(run.lines), totals(run.lines)];
  if (run.why !== undefined) lines.push(run.why);
  lines.push(...run.failures);
  lines.push(...outcome.cutOff.map((file) => `did not end  ${file}`));
  const silent = isWhole ? unheard(run, hasServer) : [];
  lines.push(...silent.map((file) => `did not run  ${file}`));
  lines.push(...outcome.twins.map((twin) => `skipped  ${twin}`));
  for (const { file, test: name } of flakes)
    lines.push(`FLAKE ${file}: failed once, passed alone: ${name}`);
  const stopping = tooOften(readFlakes(CACHE_DIR));
  lines.push(...stopping.map(sayTooOften));
  const required = process.env.OPENWOP_TEST_REQUIRE ?? '';
  const isRefused = required !== '' && outcome.skipped > 0;
  if (isRefused) lines.push(`OPENWOP_TEST_REQUIRE=${required}: a skip is a failure.`);
  const against = [...overBudget(run.lines, isWhole), ...withoutKiller(run.lines, MUTANTS)];
  lines.push(...against);
  const isStopped = run.why !== undefined && outcome.failed === 0;
  const isEmpty = outcome.passed + outcome.failed === 0;
  if (isEmpty) lines.push('No test ran: nothing is of that name.');
  const others = silent.length + Number(isStopped) + Number(isEmpty);
  const failed = outcome.failed + stopping.length + against.length + others;
  lines.push(lastLine({ ...outcome, failed }));
  return { lines, code: failed > 0 || isRefused ? 1 : 0 };
}

function sayTooOften(name: string): string {
  const row = JSON.stringify({ mended: name, at: new Date().toISOString() });
  return `FLAKED too often: ${name}. Mend it, then add to .ci/flakes.jsonl: ${row}`;
}

interface Asked extends Surroundings {
  readonly args: readonly string[];
}

const args = process.argv.slice(2);
const greens = new Greens(CACHE_DIR, 'test');
process.exitCode = await withServers({ limitMs: LIMIT_MS, longestMs: LONGEST_MS }, (run, about) =>
  test(run, { ...about, args }),
);
