// How long runs stand still when their host dies: a host as `npm start` runs it gets SIGKILL in the middle of runs that
// never rest long, and is started again. Times are those of the runs' own events.
import { setTimeout as sleep } from 'node:timers/promises';
import { chained } from './cases.ts';
import {
  startHost,
  untilStatus,
  type StartedHost,
  type StartedHostOptions,
} from './started-host.ts';
import { latencyOf, nowMs, type Latency } from './statistics.ts';
import type { WorkflowNode } from '../schemas/types.generated.ts';

const STEADY = 'bench-steady';
const STEPS = 150;
const STEP_MS = 200;
/** How long runs go on before the kill. */
const UNDER_WAY_MS = 1_500;
const LIMIT_MS = 60_000;
const PROBE_MS = 100;
const PAGE = 500;

export interface RecoveryReport {
  /** From SIGKILL to the first event of each run behind it, the start of the new process included. */
  readonly killToEvent: Latency;
  /** From the command to the address. */
  readonly start: Latency;
  readonly kills: number;
}

export interface RecoveryOptions extends Pick<
  StartedHostOptions,
  'folder' | 'cacheDir' | 'closing'
> {
  readonly kills: number;
  readonly runsPerKill: number;
}

function pause(id: string): WorkflowNode {
  return {
    ...{ id, typeId: 'core.delay', name: id, position: { x: 0, y: 0 }, inputs: {} },
    config: { ms: STEP_MS },
  };
}

async function firstEventBehind(
  { api }: StartedHost,
  runId: string,
  atMs: number,
): Promise<number> {
  const limit = performance.now() + LIMIT_MS;
  for (;;) {
    const { events } = await api<{ events: { timestamp: string }[] }>(
      `/v1/runs/${runId}/events/poll?limit=${PAGE}`,
    );
    const times = events.map(({ timestamp }) => Date.parse(timestamp)).filter((ms) => ms > atMs);
    if (times.length > 0) return Math.min(...times);
    if (performance.now() > limit) throw new Error(`run ${runId} does not go on`);
    await sleep(PROBE_MS);
  }
}

export async function measureRecovery(options: RecoveryOptions): Promise<RecoveryReport> {
  const { kills, runsPerKill } = options;
  const definition = chained(
    STEADY,
    Array.from({ length: STEPS }, (_, at) => pause(`step-${at}`)),
  );
  const startedMs: number[] = [];
  const start = async (): Promise<StartedHost> => {
    const sinceMs = nowMs();
    const host = await startHost({ ...options, name: 'recovery', definitions: [definition] });
    startedMs.push(nowMs() - sinceMs);
    return host;
  };
  let host = await start();
  const stoodMs: number[] = [];
  for (let kill = 0; kill < kills; kill++) {
    const runs = await Promise.all(
      Array.from({ length: runsPerKill }, () =>
        host.api<{ runId: string }>('/v1/runs', { workflowId: STEADY }),
      ),
    );
    for (const { runId } of runs)
      await untilStatus(host, runId, { status: 'running', limitMs: LIMIT_MS });
    await sleep(UNDER_WAY_MS);
    const killedMs = nowMs();
    await host.kill();
    host = await start();
    for (const { runId } of runs) {
      stoodMs.push((await firstEventBehind(host, runId, killedMs)) - killedMs);
      await host.api(`/v1/runs/${runId}/cancel`, {});
    }
  }
  await host.stop();
  // The first start makes the folder.
  return { killToEvent: latencyOf(stoodMs, 0), start: latencyOf(startedMs.slice(1), 0), kills };
}
