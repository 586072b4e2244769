// One vitest at work. A test run has two beside each other: tests in process, and those that start and kill processes, which
// run one at a time.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../support/source-tree.ts';

/** Names of the projects of vitest.config.ts. */
export const IN_PROCESS = ['pure', 'stores', 'real'] as const;
export const PROCESSES = ['processes'] as const;
export type Project = (typeof IN_PROCESS)[number] | (typeof PROCESSES)[number];

export interface Lane {
  readonly projects: readonly Project[];
  readonly workers: number;
}

/** How many files a lane runs at once, for vitest.config.ts. */
export const WORKERS_VARIABLE = 'OPENWOP_TEST_WORKERS';
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const REPORTER = join(ROOT, 'test/runner/reporter.ts');
/** Time in ms between the signal that ends a lane and the one that cannot be caught. */
const GRACE_MS = 10_000;

/** Where there is no dev server, what needs one is left out. */
export function lanes(hasServer: boolean): readonly Lane[] {
  if (!hasServer) return [{ projects: ['pure', 'stores'], workers: availableParallelism() }];
  return [
    { projects: IN_PROCESS, workers: Math.max(2, availableParallelism()) },
    { projects: PROCESSES, workers: 1 },
  ];
}

export interface RunningLane {
  /** Exit code; 1 for a signal. */
  readonly ended: Promise<number>;
  stop(): void;
}

/** In a process group of its own, so that `stop` reaches its workers too. `args`: as for vitest. */
export function startLane({ projects, workers }: Lane, args: readonly string[]): RunningLane {
  const chosen = projects.map((name) => `--project=${name}`);
  const reporters = ['--reporter=default', `--reporter=${REPORTER}`];
  const options = [...chosen, ...reporters, '--passWithNoTests'];
  const child = spawn(process.execPath, [VITEST, 'run', ...options, ...args], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      [WORKERS_VARIABLE]: String(workers),
      ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}),
    },
  });
  // Two at once draw no moving picture.
  child.stdout?.on('data', (piece: Buffer) => process.stdout.write(piece));
  return {
    ended: once(child, 'close').then(([code]) => (code as number | null) ?? 1),
    stop() {
      signal(child, 'SIGTERM');
      setTimeout(() => signal(child, 'SIGKILL'), GRACE_MS).unref();
    },
  };
}

function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
