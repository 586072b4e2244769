// A long run and what is made of its record: how long making, replaying, branching at its end, comparing, exporting and
// importing it take for each of its events, and how much history its forks cost, which hold what they are made from.
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, type WorkflowHandle } from '@temporalio/client';
import { agentNode, BENCH_AGENT, BENCH_TOOL, chained } from './cases.ts';
import {
  startHost,
  untilStatus,
  type StartedHost,
  type StartedHostOptions,
} from './started-host.ts';
import { rounded } from './statistics.ts';
import { connect } from './workers.ts';

const LAUNCHER = fileURLToPath(new URL('../src/app/launch.js', import.meta.url));
const LONG = 'bench-long';
const NAMESPACE = 'default';
const LIMIT_MS = 300_000;
/** What the command prints of a run of thousands of events. */
const MAX_OUTPUT_BYTES = 16 * 1024 ** 2;
const DIGITS = 3;

export interface ForkedOnce {
  readonly msPerEvent: number;
  readonly historyBytesPerEvent: number;
}

export interface ForksReport {
  /** In the log of the run. */
  readonly events: number;
  readonly source: ForkedOnce;
  readonly replay: ForkedOnce;
  /** Lives from its last event on. */
  readonly branch: ForkedOnce;
  readonly diff: { readonly msPerEvent: number; readonly bytes: number };
  readonly bundle: {
    readonly bytesPerEvent: number;
    readonly exportMsPerEvent: number;
    readonly importMsPerEvent: number;
    readonly differs: boolean;
  };
}

export interface ForksOptions extends Pick<StartedHostOptions, 'folder' | 'cacheDir' | 'closing'> {
  /** Of the long run, one after the other. */
  readonly agentNodes: number;
}

const DOCUMENT = { order: { id: 'A-1007', item: 'kettle', totalCents: 4900 } };
const AGENT = {
  manifest: {
    agentId: BENCH_AGENT,
    persona: 'Bench',
    modelClass: 'general',
    systemPrompt: 'You read two fields of an order and decide.',
    toolAllowlist: [BENCH_TOOL],
  },
  script: {
    turns: [
      {
        reasoning: 'I read two fields of the order, because the decision has to name both of them.',
        calls: ['/order/id', '/order/totalCents'].map((pointer) => ({
          toolId: BENCH_TOOL,
          arguments: { document: DOCUMENT, pointer },
        })),
      },
      { reasoning: 'Nothing contradicts it.', final: { decision: 'done', confidence: 1 } },
    ],
  },
};

export async function measureForks(options: ForksOptions): Promise<ForksReport> {
  const { agentNodes, closing, folder, cacheDir } = options;
  const nodes = Array.from({ length: agentNodes }, (_, index) => agentNode(`agent-${index}`));
  const definitions = [chained(LONG, nodes)];
  const host = await startHost({ ...options, name: 'forks', definitions, agents: [AGENT] });
  const target = { address: host.temporalAddress, namespace: NAMESPACE };
  const client = new Client({ connection: connect(closing, target), namespace: NAMESPACE });
  const run = await timed(() => completed(host, '/v1/runs', { workflowId: LONG }));
  const extension = `/v1/host/openwop-temporal/runs/${run.value}`;
  const bundle = await timed(() => host.api<Bundle>(`${extension}/bundle`));
  const events = bundle.value.recording.entries.length;
  const each = (ms: number) => rounded(ms / events, DIGITS);
  const costOf = async ({ ms, value }: Timed<string>): Promise<ForkedOnce> => ({
    msPerEvent: each(ms),
    historyBytesPerEvent: rounded((await historyBytes(client, value)) / events, 0),
  });
  const fork = (body: object) => timed(() => completed(host, `/v1/runs/${run.value}:fork`, body));
  const replay = await fork({ mode: 'replay', fromSeq: 0 });
  const branch = await fork({ mode: 'branch', fromSeq: events - 1 });
  const diff = await timed(() => host.api(`${extension}/diff?against=${replay.value}`));
  const file = join(folder, 'long.openwop-run.json');
  const text = JSON.stringify(bundle.value);
  await writeFile(file, text);
  const imported = await timed(() => importOf(file, cacheDir));
  const report: ForksReport = {
    events,
    source: await costOf(run),
    replay: await costOf(replay),
    branch: await costOf(branch),
    diff: { msPerEvent: each(diff.ms), bytes: JSON.stringify(diff.value).length },
    bundle: {
      bytesPerEvent: rounded(Buffer.byteLength(text) / events, 0),
      exportMsPerEvent: each(bundle.ms),
      importMsPerEvent: each(imported.ms),
      differs: imported.value !== 0,
    },
  };
  await host.stop();
  return report;
}

interface Bundle {
  readonly recording: { readonly entries: readonly unknown[] };
}

interface Timed<T> {
  readonly ms: number;
  readonly value: T;
}

async function timed<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const startedMs = performance.now();
  const value = await work();
  return { ms: performance.now() - startedMs, value };
}

/** Starts a run or a fork; resolves with its id when it has completed. */
async function completed(host: StartedHost, path: string, body: object): Promise<string> {
  const { runId } = await host.api<{ runId: string }>(path, body);
  await untilStatus(host, runId, { status: 'completed', limitMs: LIMIT_MS });
  return runId;
}

/** Of all segments. */
async function historyBytes({ workflow }: Client, runId: string): Promise<number> {
  let bytes = 0;
  let segment: string | null | undefined = await firstSegment(workflow, runId);
  while (segment) {
    const handle: WorkflowHandle = workflow.getHandle(runId, segment);
    const { raw } = await handle.describe();
    bytes += Number(raw.workflowExecutionInfo?.historySizeBytes ?? 0);
    const { events } = await handle.fetchHistory();
    const last = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
    segment = last?.newExecutionRunId;
  }
  return bytes;
}

async function firstSegment(workflow: Client['workflow'], runId: string): Promise<string> {
  const { raw } = await workflow.getHandle(runId).describe();
  return raw.workflowExecutionInfo?.firstRunId ?? '';
}

/** Exit code of `openwop import`: 0 where the replay says the same. */
function importOf(file: string, cacheDir: string): Promise<number> {
  const environment = { PATH: process.env.PATH, HOME: process.env.HOME };
  return new Promise((resolve) =>
    execFile(
      process.execPath,
      [LAUNCHER, 'openwop', 'import', file],
      {
        env: { ...environment, OPENWOP_CACHE_DIR: cacheDir },
        timeout: LIMIT_MS,
        maxBuffer: MAX_OUTPUT_BYTES,
      },
      (error) => resolve(error === null ? 0 : Number(error.code ?? 1)),
    ),
  );
}
