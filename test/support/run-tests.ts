// `npm test`: obtains a Temporal server as `npm start` does, runs vitest with the arguments given, names what was
// skipped, and ends with one line of its own. Where nothing but the in-memory server can be had, the tests of pure
// rooms run, and what needs a dev server is skipped. With OPENWOP_TEST_REQUIRE (a list of postgres, java, chromium,
// python, go) a skip is a failure (architecture §8).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  obtainProgram,
  type ServerProgram,
} from '../../src/adapters/temporal/server-program/index.ts';
import { withProgress } from '../../src/app/progress.ts';
import { shareSlowness } from './machine.ts';
import { realTestFiles } from './projects.ts';
import { PROGRAM, TEST_TEMPORAL_VARIABLE } from './temporal.ts';

/** The part of vitest's JSON report that is read. */
export interface Report {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    /** In ms. */
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** One line per skipped suite (or lone test): file, title, number of tests. */
  readonly twins: readonly string[];
}

/** Counts tests. A file that failed without a failed test (it did not load, a hook broke) counts as one failure. */
export function outcomeOf(report: Report): Outcome {
  const tests = report.testResults.flatMap((file) =>
    file.assertionResults.map((test) => ({ ...test, file: file.name })),
  );
  const count = (status: string) => tests.filter((test) => test.status === status).length;
  const broken = report.testResults.filter(
    (file) =>
      file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  const skipped = tests.filter((test) => !['passed', 'failed'].includes(test.status));
  const twins = new Map<string, number>();
  for (const test of skipped) {
    const title = `${shortName(test.file)}: ${test.ancestorTitles[0] ?? test.title}`;
    twins.set(title, (twins.get(title) ?? 0) + 1);
  }
  const failed = count('failed') + broken.length;
  return {
    passed: count('passed'),
    // An error outside of every test still fails the run.
    failed: failed === 0 && !report.success ? 1 : failed,
    skipped: skipped.length,
    twins: [...twins].map(([title, tests]) => `${title} (${tests})`),
  };
}

/** The line that ends `npm test`. */
export function lastLine({ passed, failed, skipped }: Outcome): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

const SLOWEST = 10;

/** The files that took longest, a line each: `test/support/order.ts` keeps what they take. */
export function slowestFiles({ testResults }: Report): readonly string[] {
  const tookMs = ({ startTime, endTime }: Report['testResults'][number]) => endTime - startTime;
  return [...testResults]
    .sort((a, b) => tookMs(b) - tookMs(a))
    .slice(0, SLOWEST)
    .map((file) => `${(tookMs(file) / 1000).toFixed(1).padStart(6)} s  ${shortName(file.name)}`);
}

function shortName(file: string): string {
  const at = file.lastIndexOf('/test/');
  return at < 0 ? file : file.slice(at + 1);
}

async function runVitest(args: readonly string[]): Promise<{ code: number; report?: Report }> {
  const folder = mkdtempSync(join(tmpdir(), 'openwop-report-'));
  const file = join(folder, 'report.json');
  const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const child = spawn(process.execPath, [vitest, 'run', ...reporters, ...args], {
    stdio: 'inherit',
  });
  const forward = (signal: NodeJS.Signals) => child.kill(signal);
  process.on('SIGINT', forward).on('SIGTERM', forward);
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return { code: code ?? 1, report: JSON.parse(readFileSync(file, 'utf8')) as Report };
  } catch {
    return { code: 1 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What the tests run on; the line of each step is printed. A server named in the environment is used as it is. */
async function findServer(): Promise<ServerProgram['kind'] | undefined> {
  if (process.env[TEST_TEMPORAL_VARIABLE]) return 'dev';
  const report = (line: string) => console.log(line);
  try {
    const { kind } = await withProgress(report, "Getting Temporal's server ready", () =>
      obtainProgram({ ...PROGRAM, report, orInMemory: true }),
    );
    return kind;
  } catch (error) {
    console.log((error as Error).message);
    console.log(`For the tests: ${TEST_TEMPORAL_VARIABLE} is the address of a running dev server.`);
    return undefined;
  }
}

/** Nothing that needs a dev server ran: each of its files counts as skipped. */
function withoutRealTests(outcome: Outcome): Outcome {
  const files = realTestFiles().map((file) => `${file}: no Temporal dev server`);
  return {
    ...outcome,
    skipped: outcome.skipped + files.length,
    twins: [...outcome.twins, ...files],
  };
}

async function main(args: readonly string[]): Promise<number> {
  const kind = await findServer();
  if (kind === undefined) {
    console.log('0 passed, 1 failed');
    return 1;
  }
  const isReal = kind === 'dev';
  const factor = await shareSlowness();
  console.log(`Machine factor ${factor}: limits that end a wait are multiplied by it.`);
  const { code, report } = await runVitest(
    isReal ? args : ['--project', 'pure', '--project', 'stores', ...args],
  );
  if (!report) {
    console.log('The tests did not run to their end.\n0 passed, 1 failed');
    return 1;
  }
  const counted = isReal ? outcomeOf(report) : withoutRealTests(outcomeOf(report));
  const outcome = code !== 0 && counted.failed === 0 ? { ...counted, failed: 1 } : counted;
  console.log(['Slowest files:', ...slowestFiles(report)].join('\n'));
  const required = process.env.OPENWOP_TEST_REQUIRE ?? '';
  for (const twin of outcome.twins) console.log(`skipped  ${twin}`);
  const refused = required !== '' && outcome.skipped > 0;
  if (refused) console.log(`OPENWOP_TEST_REQUIRE=${required}: a skip is a failure.`);
  console.log(lastLine(outcome));
  return outcome.failed > 0 || refused ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = await main(process.argv.slice(2));
