// What the tests of one run share: a place, a dev server and databases where they can be had, and the machine factor. It ends with
// the run, whatever ends that, and then the run's last lines are printed.
import { join } from 'node:path';
import { obtainProgram } from '../../src/adapters/temporal/server-program/index.ts';
import { withProgress } from '../../src/app/progress.ts';
import { setup } from '../support/global-setup.ts';
import { shareSlowness } from '../support/machine.ts';
import { setup as setupDatabases } from '../support/setup-databases.ts';
import { PROGRAM, TEST_TEMPORAL_VARIABLE } from '../support/temporal.ts';
import { LINES_VARIABLE } from './lines.ts';
import { inPlace } from './place.ts';
import { TestRun } from './test-run.ts';

export interface Surroundings {
  /** False: nothing but the in-memory server can be had. */
  readonly hasServer: boolean;
  /** The machine factor. */
  readonly slow: string;
}

export interface Closing {
  /** The last says `N passed, N failed`. */
  readonly lines: readonly string[];
  readonly code: number;
}

interface Limits {
  /** Longest time of the tests in ms on a machine of factor 1, and on any. */
  readonly limitMs: number;
  readonly longestMs: number;
}

type Work = (run: TestRun, about: Surroundings) => Promise<Closing>;

const NOTHING_RAN: Closing = { lines: ['0 passed, 1 failed'], code: 1 };

/** Does the work of a run and prints its closing lines; the exit code. */
export async function withServers({ limitMs, longestMs }: Limits, work: Work): Promise<number> {
  let closing = NOTHING_RAN;
  try {
    await inPlace(async (folder) => {
      closing = await workIn(folder, { limitMs, longestMs }, work);
    });
  } finally {
    console.log(closing.lines.join('\n'));
  }
  return closing.code;
}

async function workIn(
  folder: string,
  { limitMs, longestMs }: Limits,
  work: Work,
): Promise<Closing> {
  const path = join(folder, 'lines');
  process.env[LINES_VARIABLE] = path;
  let tearDown = async (): Promise<void> => undefined;
  try {
    const kind = await findServer();
    if (kind === undefined) return NOTHING_RAN;
    const slow = await shareSlowness();
    console.log(`Machine factor ${slow}: limits that end a wait are multiplied by it.`);
    const run = new TestRun(path, Math.min(longestMs, limitMs * Number(slow)));
    // npm passes on what a terminal has sent already: the second one changes nothing.
    for (const name of ['SIGINT', 'SIGTERM'] as const)
      process.on(name, () => run.stop(`The tests were ended by ${name}.`));
    tearDown = await (kind === 'dev' ? setup() : setupDatabases());
    return await work(run, { hasServer: kind === 'dev', slow });
  } finally {
    await tearDown().catch((error: unknown) => console.log(`did not end well: ${String(error)}`));
  }
}

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
