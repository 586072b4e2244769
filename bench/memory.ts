// Memory of everything that `npm start` runs, without runs and with runs that wait for a human. The
// process tree is read from /proc; the bench itself, its client, is not part of it.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { between, humanGate, noop } from './cases.ts';
import type { Closing } from './closing.ts';
import { residentTree } from './process-tree.ts';
import { rounded } from './statistics.ts';
import { atOnce } from './throughput.ts';

const START = fileURLToPath(new URL('../src/app/start.ts', import.meta.url));
const API_KEY = 'owop_bench_key_of_the_memory_host';
const READY = /OpenWOP host +(\S+)\/\.well-known/;
const START_LIMIT_MS = 120_000;
const STOP_LIMIT_MS = 40_000;
const RUN_LIMIT_MS = 60_000;
const PROBE_MS = 100;
const IN_FLIGHT = 16;
/** Memory is at rest when the newest samples differ by less than this. */
const SETTLED_MIB = 2;
const SAMPLE_MS = 2_000;
const SAMPLES = 5;
const WAITING = 'bench-waiting';
const PASSING = 'bench-passing';

export interface MemoryReport {
  readonly waitingRuns: number;
  /** Right after the start, in MiB. */
  readonly startedMiB: number;
  /** After runs that ended, when nothing runs: what `addedMiB` counts from. */
  readonly idleMiB: number;
  readonly waitingMiB: number;
  readonly addedMiB: number;
  readonly addedKiBPerRun: number;
  /** Share of each program in the last two numbers. */
  readonly idleByProcess: Readonly<Record<string, number>>;
  readonly waitingByProcess: Readonly<Record<string, number>>;
  /** False: the limit came before memory was at rest. */
  readonly settled: boolean;
}

export interface MemoryOptions {
  readonly folder: string;
  readonly cacheDir: string;
  readonly closing: Closing;
  readonly waitingRuns: number;
  readonly warmUpRuns: number;
  readonly settleMs: number;
}

interface StartedHost {
  readonly child: ChildProcess;
  readonly url: string;
}

async function startHost({ folder, cacheDir, closing }: MemoryOptions): Promise<StartedHost> {
  const dataDir = join(folder, 'memory');
  const fixtures = join(folder, 'fixtures');
  await mkdir(fixtures, { recursive: true });
  const definitions = [between(WAITING, [humanGate('gate')]), between(PASSING, [noop('work')])];
  for (const one of definitions)
    await writeFile(join(fixtures, `${one.id}.json`), JSON.stringify(one));
  const child = spawn(process.execPath, ['--import', 'tsx', START], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      OPENWOP_PORT: '0',
      OPENWOP_DATA_DIR: dataDir,
      OPENWOP_CACHE_DIR: cacheDir,
      OPENWOP_FIXTURES_DIR: fixtures,
      OPENWOP_API_KEY: API_KEY,
    },
  });
  closing.add(() => stopHost(child));
  let said = '';
  child.stdout?.on('data', (piece: Buffer) => void (said += piece.toString()));
  const limit = performance.now() + START_LIMIT_MS;
  for (;;) {
    const url = READY.exec(said)?.[1];
    if (url !== undefined) return { child, url };
    if (child.exitCode !== null || performance.now() > limit)
      throw new Error(`the host did not start: ${said}`);
    await sleep(PROBE_MS);
  }
}

/** It ends its dev server itself; SIGKILL would leave that behind, so it comes late. */
async function stopHost(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await gone;
  clearTimeout(late);
}

async function api(url: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

/** Starts that many runs and waits until each has the status. */
async function startRuns(
  url: string,
  work: { workflowId: string; status: string; count: number },
): Promise<void> {
  const { workflowId, status, count } = work;
  await atOnce(count, IN_FLIGHT, async () => {
    const { runId } = await api(`${url}/v1/runs`, { workflowId });
    const limit = performance.now() + RUN_LIMIT_MS;
    while ((await api(`${url}/v1/runs/${String(runId)}`)).status !== status) {
      if (performance.now() > limit) throw new Error(`run ${String(runId)} is never ${status}`);
      await sleep(PROBE_MS);
    }
  });
}

interface Rest {
  readonly byProcess: Readonly<Record<string, number>>;
  readonly totalMiB: number;
  readonly settled: boolean;
}

function look(pid: number): Rest {
  const byProcess = residentTree(pid);
  const total = Object.values(byProcess).reduce((sum, mib) => sum + mib, 0);
  return { byProcess, totalMiB: rounded(total, 0), settled: true };
}

async function atRest(pid: number, limitMs: number): Promise<Rest> {
  const limit = performance.now() + limitMs;
  const totals: number[] = [];
  for (;;) {
    const now = look(pid);
    totals.push(now.totalMiB);
    const newest = totals.slice(-SAMPLES);
    const spread = Math.max(...newest) - Math.min(...newest);
    if (newest.length === SAMPLES && spread <= SETTLED_MIB) return now;
    if (performance.now() > limit) return { ...now, settled: false };
    await sleep(SAMPLE_MS);
  }
}

export async function measureMemory(options: MemoryOptions): Promise<MemoryReport> {
  const { waitingRuns, warmUpRuns, settleMs } = options;
  const { child, url } = await startHost(options);
  const pid = child.pid ?? 0;
  const started = look(pid);
  await startRuns(url, { workflowId: PASSING, status: 'completed', count: warmUpRuns });
  const idle = await atRest(pid, settleMs);
  await startRuns(url, { workflowId: WAITING, status: 'waiting-approval', count: waitingRuns });
  const waiting = await atRest(pid, settleMs);
  await stopHost(child);
  const addedMiB = waiting.totalMiB - idle.totalMiB;
  return {
    waitingRuns,
    startedMiB: started.totalMiB,
    idleMiB: idle.totalMiB,
    waitingMiB: waiting.totalMiB,
    addedMiB,
    addedKiBPerRun: rounded((addedMiB * 1_024) / waitingRuns, 0),
    idleByProcess: idle.byProcess,
    waitingByProcess: waiting.byProcess,
    settled: idle.settled && waiting.settled,
  };
}
