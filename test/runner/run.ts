// `npm test`: obtains a Temporal server as `npm start` does, runs the tests in two lanes (lane.ts), names what was skipped, and
// ends with one line of its own. Where nothing but the in-memory server can be had, what needs a dev server is skipped. With
// OPENWOP_TEST_REQUIRE (a list of postgres, java, chromium, python, go) a skip is a failure (architecture §8).
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { obtainProgram } from '../../src/adapters/temporal/server-program/index.ts';
import { withProgress } from '../../src/app/progress.ts';
import { setup } from '../support/global-setup.ts';
import { shareSlowness } from '../support/machine.ts';
import { processTestFiles, realTestFiles } from '../support/projects.ts';
import { setup as setupDatabases } from '../support/setup-databases.ts';
import { ROOT } from '../support/source-tree.ts';
import { CACHE_DIR, PROGRAM, TEST_TEMPORAL_VARIABLE } from '../support/temporal.ts';
import { keepDurations } from './durations.ts';
import {
  filesAgain,
  flakesOf,
  keepFlakes,
  nameOf,
  readFlakes,
  tooOften,
  type Flake,
} from './flakes.ts';
import { lanes, PROCESSES, startLane, type Lane, type RunningLane } from './lane.ts';
import { LINES_VARIABLE, readLines, type Line } from './lines.ts';
import { lastLine, outcomeOf, resultsOf, slowestFiles, totals, type Outcome } from './outcome.ts';
import { takePlace } from './place.ts';

/** Longest time of all tests in ms on a machine of factor 1, and on any. */
const LIMIT_MS = 20 * 60_000;
const LONGEST_MS = 40 * 60_000;

/** Whether a dev server can be had; the line of each step is printed. A server named in the environment is used as it is. */
async function findServer(): Promise<'dev' | 'in-memory' | undefined> {
  if (process.env[TEST_TEMPORAL_VARIABLE]) return 'dev';
  const report = (line: string) => console.log(line);
  try {
    const { kind } = await withProgress(report, "Getting Temporal's server ready", () =>
      obtainProgram({ ...PROGRAM, report, orInMemory: true }),
    );
    return kind === 'dev' ? 'dev' : 'in-memory';
  } catch (error) {
    console.log((error as Error).message);
    console.log(`For the tests: ${TEST_TEMPORAL_VARIABLE} is the address of a running dev server.`);
    return undefined;
  }
}

class TestRun {
  readonly #path: string;
  readonly #limitMs: number;
  readonly #running = new Set<RunningLane>();
  /** Lanes that ended without a word. */
  #lost = 0;
  #why: string | undefined;

  constructor(path: string, limitMs: number) {
    this.#path = path;
    this.#limitMs = limitMs;
  }

  get lines(): readonly Line[] {
    return readLines(this.#path);
  }

  get outcome(): Outcome {
    return outcomeOf(this.lines, this.#lost);
  }

  /** Why the run ended before its time. */
  get why(): string | undefined {
    return this.#why;
  }

  stop(why: string): void {
    this.#why ??= why;
    for (const lane of this.#running) lane.stop();
  }

  async play(all: readonly Lane[], args: readonly string[]): Promise<void> {
    const timer = setTimeout(() => {
      this.stop(`The tests took longer than ${Math.round(this.#limitMs / 60_000)} minutes.`);
    }, this.#limitMs);
    await Promise.all(all.map((lane) => this.#runLane(lane, args)));
    clearTimeout(timer);
  }

  async #runLane(lane: Lane, args: readonly string[]): Promise<void> {
    if (this.#why !== undefined) return;
    const running = startLane(lane, args);
    this.#running.add(running);
    const code = await running.ended;
    this.#running.delete(running);
    // Each says its piece in the lines, unless it crashed.
    if (code !== 0 && this.outcome.failed === 0) this.#lost += 1;
  }
}

/** Failed files of the process level once more, each alone; what passes then is a flake. */
async function again(run: TestRun, slow: string): Promise<readonly Flake[]> {
  const results = resultsOf(run.lines);
  const failed = new Map(run.outcome.failures.map((file) => [file, results.get(file)]));
  const ofProcesses = new Set(processTestFiles());
  const files = run.why === undefined ? filesAgain(failed, (file) => ofProcesses.has(file)) : [];
  if (files.length === 0 || run.outcome.failed > failedIn(run, files)) return [];
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const about = { slow, commit: commit.trim(), at: new Date().toISOString() };
  const flakes: Flake[] = [];
  for (const file of files) {
    console.log(`\n${file} failed; once more, alone:`);
    await run.play([{ projects: PROCESSES, workers: 1 }], [file]);
    const before = failed.get(file);
    if (!run.outcome.failures.includes(file) && before)
      flakes.push(...flakesOf(file, before, about));
  }
  return flakes;
}

/** Failures that these files explain. */
function failedIn({ lines }: TestRun, files: readonly string[]): number {
  return outcomeOf(lines.filter((line) => line.kind === 'file' && files.includes(line.file)))
    .failed;
}

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

interface Closing {
  /** The last says `N passed, N failed`. */
  readonly lines: readonly string[];
  readonly code: number;
}

const NOTHING_RAN: Closing = { lines: ['0 passed, 1 failed'], code: 1 };

async function main(args: readonly string[]): Promise<number> {
  const place = takePlace();
  let tearDown = async (): Promise<void> => undefined;
  let closing = NOTHING_RAN;
  try {
    const kind = await findServer();
    if (kind !== undefined) {
      const path = join(place.folder, 'lines');
      process.env[LINES_VARIABLE] = path;
      const slow = await shareSlowness();
      console.log(`Machine factor ${slow}: limits that end a wait are multiplied by it.`);
      const run = new TestRun(path, Math.min(LONGEST_MS, LIMIT_MS * Number(slow)));
      for (const name of ['SIGINT', 'SIGTERM'] as const)
        process.once(name, () => run.stop(`The tests were ended by ${name}.`));
      tearDown = await (kind === 'dev' ? setup() : setupDatabases());
      closing = await test(run, { kind, slow, args });
    }
  } finally {
    await tearDown();
    for (const command of await place.clear()) console.log(`left behind, and ended: ${command}`);
    console.log(closing.lines.join('\n'));
  }
  return closing.code;
}

interface Asked {
  readonly kind: 'dev' | 'in-memory';
  /** The machine factor. */
  readonly slow: string;
  readonly args: readonly string[];
}

async function test(run: TestRun, { kind, slow, args }: Asked): Promise<Closing> {
  const hasServer = kind === 'dev';
  await run.play(lanes(hasServer), args);
  const flakes = await again(run, slow);
  keepFlakes(CACHE_DIR, flakes);
  if (run.why === undefined) keepDurations(CACHE_DIR, run.lines);
  return close(run, hasServer ? run.outcome : withoutRealTests(run.outcome), flakes);
}

function close(run: TestRun, outcome: Outcome, flakes: readonly Flake[]): Closing {
  const lines = ['Slowest files:', ...slowestFiles(run.lines), totals(run.lines)];
  if (run.why !== undefined) lines.push(run.why);
  lines.push(...outcome.cutOff.map((file) => `did not end  ${file}`));
  lines.push(...outcome.twins.map((twin) => `skipped  ${twin}`));
  for (const { file, test: name } of flakes)
    lines.push(`FLAKE ${file}: failed once, passed alone: ${name}`);
  const often = flakes.length === 0 ? [] : tooOften(readFlakes(CACHE_DIR));
  const stopping = flakes.map(nameOf).filter((name) => often.includes(name));
  for (const name of stopping)
    lines.push(`FLAKED too often: ${name}. Mend it; test/runner/flakes.ts says how it goes on.`);
  const required = process.env.OPENWOP_TEST_REQUIRE ?? '';
  const isRefused = required !== '' && outcome.skipped > 0;
  if (isRefused) lines.push(`OPENWOP_TEST_REQUIRE=${required}: a skip is a failure.`);
  const isStopped = run.why !== undefined && outcome.failed === 0;
  const failed = outcome.failed + stopping.length + (isStopped ? 1 : 0);
  lines.push(lastLine({ ...outcome, failed }));
  return { lines, code: failed > 0 || isRefused ? 1 : 0 };
}

process.exitCode = await main(process.argv.slice(2));
