// Memory of everything that `npm start` runs, without runs and with runs that wait for a human.
import { between, humanGate, noop } from './cases.ts';
import {
  startHost,
  untilStatus,
  type StartedHost,
  type StartedHostOptions,
} from './started-host.ts';
import { rounded } from './statistics.ts';
import { atOnce } from './throughput.ts';

const RUN_LIMIT_MS = 60_000;
const IN_FLIGHT = 16;
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

export interface MemoryOptions extends Pick<StartedHostOptions, 'folder' | 'cacheDir' | 'closing'> {
  readonly waitingRuns: number;
  readonly warmUpRuns: number;
  readonly settleMs: number;
}

/** Starts that many runs and waits until each has the status. */
async function startRuns(
  { api }: StartedHost,
  work: { workflowId: string; status: string; count: number },
): Promise<void> {
  const { workflowId, status, count } = work;
  await atOnce(count, IN_FLIGHT, async () => {
    const { runId } = await api<{ runId: string }>('/v1/runs', { workflowId });
    await untilStatus({ api }, runId, { status, limitMs: RUN_LIMIT_MS });
  });
}

export async function measureMemory(options: MemoryOptions): Promise<MemoryReport> {
  const { waitingRuns, warmUpRuns, settleMs } = options;
  const definitions = [between(WAITING, [humanGate('gate')]), between(PASSING, [noop('work')])];
  const host = await startHost({ ...options, name: 'memory', definitions });
  const started = host.look();
  await startRuns(host, { workflowId: PASSING, status: 'completed', count: warmUpRuns });
  const idle = await host.atRest(settleMs);
  await startRuns(host, { workflowId: WAITING, status: 'waiting-approval', count: waitingRuns });
  const waiting = await host.atRest(settleMs);
  await host.stop();
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
