// What a person or a program waits for over HTTP: from the answer to a question, and from the start of a short run, to the
// end of the run at the client; against bare workflows on the same server, in interleaved rounds. Then the fan-out: one run
// with many subscribers, and as many runs with one each; and the disk that an ended short run takes.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { between, chained, humanGate, noop } from './cases.ts';
import { openStream } from './client-stream.ts';
import { bytesIn } from './disk.ts';
import { startHost, untilStatus, type StartedHost } from './started-host.ts';
import { latencyOf, median, nowMs, percentile, rounded, type Latency } from './statistics.ts';
import type { Parts } from './parts.ts';
import { atOnce } from './throughput.ts';
import { connect, startWorker } from './workers.ts';

const SHORT = 'bench-short';
const ASKING = 'bench-asking';
const NAMESPACE = 'default';
const GATE = 'gate';
const ACCEPT = { resumeValue: { action: 'accept' } };
const IN_FLIGHT = 16;
const LIMIT_MS = 120_000;
/** An archive is written when nothing runs; files are counted behind it. */
const QUIET_MS = 5_000;
const KIB = 1_024;

export interface TurnaroundReport {
  readonly startToEnd: Latency;
  readonly bareStartToEnd: Latency;
  readonly answerToEnd: Latency;
  readonly bareUpdateToEnd: Latency;
  /** Medians of each round's own ratio. */
  readonly startRatio: number;
  readonly answerRatio: number;
  readonly fanOut: {
    readonly subscribers: number;
    /** From the answer to the end of each subscriber's stream. */
    readonly p50Ms: number;
    readonly p99Ms: number;
    readonly hostKiBPerStream: number;
  };
  /** As many subscribers, each of a run of its own: from each answer to the end of that run's stream. */
  readonly apart: { readonly p50Ms: number; readonly p99Ms: number };
  readonly disk: { readonly runs: number; readonly bytesPerRun: number };
}

interface Work {
  readonly host: StartedHost;
  readonly client: Client;
  readonly taskQueue: string;
}

const stream = ({ host }: Work, runId: string) =>
  openStream(`${host.url}/v1/runs/${runId}/events`, host.apiKey);

const startRun = ({ host }: Work, workflowId: string) =>
  host.api<{ runId: string }>('/v1/runs', { workflowId });

async function startToEnd(work: Work): Promise<number> {
  const startedMs = nowMs();
  const { runId } = await startRun(work, SHORT);
  return (await stream(work, runId).ended) - startedMs;
}

async function answerToEnd(work: Work): Promise<number> {
  const { runId } = await startRun(work, ASKING);
  const { ended, seen } = stream(work, runId);
  await seen('node.suspended');
  const answeredMs = nowMs();
  await work.host.api(`/v1/runs/${runId}/interrupts/${GATE}`, ACCEPT);
  return (await ended) - answeredMs;
}

let bareRuns = 0;

async function bare(work: Work, workflow: string, update: boolean): Promise<number> {
  const workflowId = `bare-turnaround-${bareRuns++}`;
  const plan = { caseName: 'none', waves: [], padding: '' };
  const of = { workflowId, taskQueue: work.taskQueue, args: [plan] };
  let sinceMs = nowMs();
  const handle = await work.client.workflow.start(workflow, of);
  if (update) {
    // It waits from its first task on: the update comes to a workflow that rests.
    await handle.query('waits');
    sinceMs = nowMs();
    await handle.executeUpdate('answer');
  }
  await handle.result();
  return nowMs() - sinceMs;
}

/** The first of each is not counted. */
async function rounds(work: Work, count: number) {
  const times = { start: [] as number[], bareStart: [] as number[] };
  const answers = { answer: [] as number[], update: [] as number[] };
  for (let round = 0; round <= count; round++) {
    const one = [
      await startToEnd(work),
      await bare(work, 'bareWorkflow', false),
      await answerToEnd(work),
      await bare(work, 'bareWaitingWorkflow', true),
    ] as const;
    if (round === 0) continue;
    times.start.push(one[0]);
    times.bareStart.push(one[1]);
    answers.answer.push(one[2]);
    answers.update.push(one[3]);
  }
  return { ...times, ...answers };
}

function ratioOf(times: readonly number[], bares: readonly number[]): number {
  return rounded(median(times.map((ms, at) => ms / (bares[at] ?? NaN))), 2);
}

async function measureFanOut(work: Work, subscribers: number): Promise<TurnaroundReport['fanOut']> {
  const { host } = work;
  const { runId } = await startRun(work, ASKING);
  await untilStatus(host, runId, { status: 'waiting-approval', limitMs: LIMIT_MS });
  const before = host.look().byProcess.node ?? 0;
  const streams = Array.from({ length: subscribers }, () => stream(work, runId));
  await Promise.all(streams.map(({ seen }) => seen('node.suspended')));
  const open = host.look().byProcess.node ?? 0;
  const answeredMs = nowMs();
  await host.api(`/v1/runs/${runId}/interrupts/${GATE}`, ACCEPT);
  const endedMs = await Promise.all(streams.map(({ ended }) => ended));
  const times = endedMs.map((atMs) => atMs - answeredMs);
  return {
    subscribers,
    p50Ms: rounded(percentile(times, 0.5), 0),
    p99Ms: rounded(percentile(times, 0.99), 0),
    hostKiBPerStream: rounded((Math.max(0, open - before) * KIB) / subscribers, 0),
  };
}

/** As many runs as streams; their answers come so many at once. */
async function measureApart(work: Work, subscribers: number): Promise<TurnaroundReport['apart']> {
  const open: { readonly runId: string; readonly ended: Promise<number> }[] = [];
  await atOnce(subscribers, IN_FLIGHT, async () => {
    const { runId } = await startRun(work, ASKING);
    const { ended, seen } = stream(work, runId);
    await seen('node.suspended');
    open.push({ runId, ended });
  });
  const times: number[] = [];
  await atOnce(subscribers, IN_FLIGHT, async () => {
    const next = open.pop();
    if (!next) return;
    const answeredMs = nowMs();
    await work.host.api(`/v1/runs/${next.runId}/interrupts/${GATE}`, ACCEPT);
    times.push((await next.ended) - answeredMs);
  });
  return { p50Ms: rounded(percentile(times, 0.5), 0), p99Ms: rounded(percentile(times, 0.99), 0) };
}

async function measureDisk(work: Work, runs: number): Promise<TurnaroundReport['disk']> {
  const { host } = work;
  await sleep(QUIET_MS);
  const before = await bytesIn(host.dataDir);
  await atOnce(runs, IN_FLIGHT, async () => {
    const { runId } = await startRun(work, SHORT);
    await untilStatus(host, runId, { status: 'completed', limitMs: LIMIT_MS });
  });
  await sleep(QUIET_MS);
  return { runs, bytesPerRun: rounded(((await bytesIn(host.dataDir)) - before) / runs, 0) };
}

export async function measureTurnaround(parts: Parts): Promise<TurnaroundReport> {
  const { closing, sizes } = parts;
  const definitions = [chained(SHORT, [noop('work')]), between(ASKING, [humanGate(GATE)])];
  const host = await startHost({ ...parts, name: 'turnaround', definitions });
  const target = { address: host.temporalAddress, namespace: NAMESPACE };
  const worker = await startWorker(closing, {
    ...{ target, bundle: (await parts.bundles()).bare, activities: {} },
  });
  const client = new Client({ connection: connect(closing, target), namespace: NAMESPACE });
  const work: Work = { host, client, taskQueue: worker.taskQueue };
  const times = await rounds(work, sizes.turnaroundRounds);
  const fanOut = await measureFanOut(work, sizes.subscribers);
  const apart = await measureApart(work, sizes.subscribers);
  const disk = await measureDisk(work, sizes.diskRuns);
  await worker.stop();
  await host.stop();
  return {
    startToEnd: latencyOf(times.start),
    bareStartToEnd: latencyOf(times.bareStart),
    answerToEnd: latencyOf(times.answer),
    bareUpdateToEnd: latencyOf(times.update),
    startRatio: ratioOf(times.start, times.bareStart),
    answerRatio: ratioOf(times.answer, times.update),
    fanOut,
    apart,
    disk,
  };
}
