// Full load that goes on and on, on a host as `npm start` runs it: short runs, and runs that ask a human who answers at
// once. Whether memory grows is a line through what it was, of which the first sixth is left out; disk grows with what ended.
import { setTimeout as sleep } from 'node:timers/promises';
import { between, chained, humanGate, noop } from './cases.ts';
import { bytesIn } from './disk.ts';
import type { Parts } from './parts.ts';
import { startHost, untilStatus, type Rest, type StartedHost } from './started-host.ts';
import { median, rounded, trendOf } from './statistics.ts';
import { atOnce } from './throughput.ts';

const SHORT = 'bench-short';
const ASKING = 'bench-asking';
const GATE = 'gate';
const ACCEPT = { resumeValue: { action: 'accept' } };
const IN_FLIGHT = 16;
/** Of so many runs one asks. */
const ASKS_ONE_OF = 4;
const LIMIT_MS = 120_000;
const SAMPLES = 180;
const SKIPPED = 1 / 6;
const MS_PER_HOUR = 3_600_000;

export interface SoakReport {
  readonly minutes: number;
  readonly runs: number;
  readonly runsPerSecond: number;
  /** Of all processes; medians of the first and of the last third of what is counted. */
  readonly earlyMiB: number;
  readonly lateMiB: number;
  /** Which programs that is, as of its ends. */
  readonly earlyByProcess: Readonly<Record<string, number>>;
  readonly lateByProcess: Readonly<Record<string, number>>;
  readonly slopeMiBPerHour: number;
  /** Standard deviation around that line: what is noise. */
  readonly noiseMiB: number;
  readonly samples: number;
  readonly bytesPerRun: number;
}

async function oneRun(host: StartedHost, at: number): Promise<void> {
  const asks = at % ASKS_ONE_OF === 0;
  const workflowId = asks ? ASKING : SHORT;
  const { runId } = await host.api<{ runId: string }>('/v1/runs', { workflowId });
  if (asks) {
    await untilStatus(host, runId, { status: 'waiting-approval', limitMs: LIMIT_MS });
    await host.api(`/v1/runs/${runId}/interrupts/${GATE}`, ACCEPT);
  }
  await untilStatus(host, runId, { status: 'completed', limitMs: LIMIT_MS });
}

export async function measureSoak(parts: Parts): Promise<SoakReport> {
  const { soakMs } = parts.sizes;
  const definitions = [chained(SHORT, [noop('work')]), between(ASKING, [humanGate(GATE)])];
  const host = await startHost({ ...parts, name: 'soak', definitions });
  const bytes = await bytesIn(host.dataDir);
  const sinceMs = performance.now();
  const leftMs = () => sinceMs + soakMs - performance.now();
  let runs = 0;
  const load = atOnce(IN_FLIGHT, IN_FLIGHT, async () => {
    while (leftMs() > 0) await oneRun(host, runs++);
  });
  const seen: (Rest & { readonly atMs: number })[] = [];
  const looking = (async () => {
    while (leftMs() > 0) {
      await sleep(soakMs / SAMPLES);
      seen.push({ ...host.look(), atMs: performance.now() - sinceMs });
    }
  })();
  await Promise.all([load, looking]);
  const tookMs = performance.now() - sinceMs;
  const grown = (await bytesIn(host.dataDir)) - bytes;
  await host.stop();
  const counted = seen.filter(({ atMs }) => atMs >= soakMs * SKIPPED);
  const third = Math.ceil(counted.length / 3);
  const middle = (some: readonly Rest[]) => rounded(median(some.map((one) => one.totalMiB)), 0);
  const { slope, residual } = trendOf(counted.map(({ atMs, totalMiB }) => [atMs, totalMiB]));
  return {
    minutes: rounded(tookMs / 60_000, 1),
    runs,
    runsPerSecond: rounded((runs * 1_000) / tookMs, 1),
    earlyMiB: middle(counted.slice(0, third)),
    lateMiB: middle(counted.slice(-third)),
    earlyByProcess: counted[0]?.byProcess ?? {},
    lateByProcess: counted.at(-1)?.byProcess ?? {},
    slopeMiBPerHour: rounded(slope * MS_PER_HOUR, 0),
    noiseMiB: rounded(residual, 1),
    samples: counted.length,
    bytesPerRun: rounded(grown / runs, 0),
  };
}
