// One vitest at work. A test run has two tracks of them beside each other (plan.ts).
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../support/root.ts';
import { LANE_VARIABLE } from './lines.ts';

/** Names of the projects of vitest.config.ts. */
export const IN_PROCESS = ['pure', 'stores', 'real'] as const;
export const PROCESSES = ['processes'] as const;
export type Project = (typeof IN_PROCESS)[number] | (typeof PROCESSES)[number];

export interface Lane {
  readonly projects: readonly Project[];
  readonly workers: number;
  /** From the repository's root; absent: all of the projects. */
  readonly files?: readonly string[];
}

/** How many files a lane runs at once, for vitest.config.ts. */
export const WORKERS_VARIABLE = 'OPENWOP_TEST_WORKERS';
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const REPORTER = join(ROOT, 'test/runner/reporter.ts');
/** Time in ms between the signal that ends a lane and the one that cannot be caught. */
const GRACE_MS = 10_000;

export interface RunningLane {
  /** Of this process: what its last line names. */
  readonly id: string;
  /** Exit code; 1 for a signal. */
  readonly ended: Promise<number>;
  stop(): void;
}

/** In a process group of its own, so that `stop` reaches its workers too. `args`: as for vitest. */
export function startLane(
  { projects, workers, files = [] }: Lane,
  args: readonly string[],
): RunningLane {
  const chosen = projects.map((name) => `--project=${name}`);
  const reporters = ['--reporter=default', `--reporter=${REPORTER}`];
  const options = [...chosen, ...reporters, '--passWithNoTests', ...files];
  const id = randomUUID();
  const child = spawn(process.execPath, [VITEST, 'run', ...options, ...args], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      [WORKERS_VARIABLE]: String(workers),
      [LANE_VARIABLE]: id,
      ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}),
    },
  });
  // Two at once draw no moving picture.
  child.stdout?.on('data', (piece: Buffer) => process.stdout.write(piece));
  return {
    id,
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
