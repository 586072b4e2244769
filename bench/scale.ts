// A database of years: many runs that have ended and many that wait for a human, on PostgreSQL, and what reading and
// answering takes among them. The ended ones are rows copied from one that was run; those that wait are runs.
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase, type OpenDatabase } from '../src/adapters/postgres/index.ts';
import { copyEnded, copyId } from '../test/support/run-copies.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { between, chained, humanGate, noop } from './cases.ts';
import { openStream } from './client-stream.ts';
import { benchLogger } from './closing.ts';
import type { Parts } from './parts.ts';
import { startHost, untilStatus, type StartedHost } from './started-host.ts';
import { nowMs, percentile, rounded } from './statistics.ts';
import { atOnce } from './throughput.ts';

const ENDED = 'bench-ended';
const ASKING = 'bench-asking';
const GATE = 'gate';
const ACCEPT = { resumeValue: { action: 'accept' } };
const IN_FLIGHT = 16;
const LIMIT_MS = 120_000;
const PROBE_MS = 100;
const PAGE = 50;
const KB = 1_000;

interface Spread {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface ScaleReport {
  /** Why nothing was measured; absent: it was. */
  readonly missing?: string;
  readonly ended: number;
  readonly waiting: number;
  readonly reads: number;
  readonly listPage: Spread;
  readonly snapshot: Spread;
  readonly eventsPage: Spread;
  readonly answerToEnd: Spread;
  /** Of each run that waits, in the database. */
  readonly kBPerWaitingRun: number;
  /** From the command to the address, with all of them there. */
  readonly startMs: number;
  /** All processes but PostgreSQL, at rest behind that start. */
  readonly restMiB: number;
}

const NOTHING: Spread = { p50Ms: 0, p99Ms: 0 };

async function timed(samples: number, work: (at: number) => Promise<unknown>): Promise<Spread> {
  const times: number[] = [];
  // The first asks for what the others have.
  for (let at = 0; at <= samples; at++) {
    const sinceMs = nowMs();
    await work(at);
    if (at > 0) times.push(nowMs() - sinceMs);
  }
  return { p50Ms: rounded(percentile(times, 0.5), 1), p99Ms: rounded(percentile(times, 0.99), 1) };
}

async function startRun({ api }: StartedHost, workflowId: string): Promise<string> {
  return (await api<{ runId: string }>('/v1/runs', { workflowId })).runId;
}

async function asked(host: StartedHost): Promise<string> {
  const runId = await startRun(host, ASKING);
  await untilStatus(host, runId, { status: 'waiting-approval', limitMs: LIMIT_MS });
  return runId;
}

async function answered(host: StartedHost, runId: string): Promise<void> {
  const { ended, seen } = openStream(`${host.url}/v1/runs/${runId}/events`, host.apiKey);
  await seen('node.suspended');
  await host.api(`/v1/runs/${runId}/interrupts/${GATE}`, ACCEPT);
  await ended;
}

async function untilArchived(db: OpenDatabase['db'], runId: string): Promise<void> {
  const limit = performance.now() + LIMIT_MS;
  const open = 'SELECT run_id FROM run_segments WHERE run_id = $1 AND archive IS NULL';
  while ((await db.query<{ run_id: string }>(open, [runId])).length > 0) {
    if (performance.now() > limit) throw new Error(`run ${runId} is not archived`);
    await sleep(PROBE_MS);
  }
}

/** `missing` where there is no PostgreSQL. */
export async function measureScale(parts: Parts): Promise<ScaleReport> {
  const { closing } = parts;
  const { endedRuns: ended, waitingBesides: waiting, timedReads: reads } = parts.sizes;
  const postgres = await startPostgres();
  if ('missing' in postgres) return { ...absent(postgres.missing), ended, waiting, reads };
  closing.add(() => postgres.stop());
  const databaseUrl = await postgres.createDatabase();
  const definitions = [chained(ENDED, [noop('work')]), between(ASKING, [humanGate(GATE)])];
  const start = () => startHost({ ...parts, name: 'scale', definitions, databaseUrl });
  const { db, close } = await openDatabase({ kind: 'postgres', url: databaseUrl }, benchLogger);
  const bytes = async () => {
    const [row] = await db.query<{ size: string }>(
      'SELECT pg_database_size(current_database())::text AS size',
    );
    return Number(row?.size);
  };

  const first = await start();
  const original = await startRun(first, ENDED);
  await untilStatus(first, original, { status: 'completed', limitMs: LIMIT_MS });
  const before = await bytes();
  const open: string[] = [];
  await atOnce(waiting, IN_FLIGHT, async () => open.push(await asked(first)));
  const kBPerWaitingRun = rounded(((await bytes()) - before) / waiting / KB, 1);
  // Else each of its copies would have to be archived too.
  await untilArchived(db, original);
  await first.stop();
  await copyEnded(db, original, ended);
  await close();

  const sinceMs = nowMs();
  const host = await start();
  const startMs = rounded(nowMs() - sinceMs, 0);
  const rest = await host.atRest(parts.sizes.settleMs);
  const any = () => copyId(original, 1 + Math.floor(Math.random() * ended));
  const report = {
    ...{ ended, waiting, reads, kBPerWaitingRun, startMs, restMiB: rest.totalMiB },
    listPage: await timed(reads, () => host.api(`/v1/runs?limit=${PAGE}`)),
    snapshot: await timed(reads, () => host.api(`/v1/runs/${any()}`)),
    eventsPage: await timed(reads, () => host.api(`/v1/runs/${any()}/events/poll?limit=${PAGE}`)),
    answerToEnd: await timed(parts.sizes.timedAnswers, (at) => answered(host, open[at] ?? '')),
  };
  await host.stop();
  await postgres.stop();
  return report;
}

function absent(missing: string) {
  const none = { listPage: NOTHING, snapshot: NOTHING, eventsPage: NOTHING, answerToEnd: NOTHING };
  return { missing, ...none, kBPerWaitingRun: 0, startMs: 0, restMiB: 0 };
}
