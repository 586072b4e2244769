// A host as `npm start` runs it, in processes of its own, with Temporal's server below it, for what only that shows: the
// memory of everything. The process tree is read from /proc; the bench itself, its client, is not part of it.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { WorkflowDefinition } from '../schemas/types.generated.ts';
import type { Closing } from './closing.ts';
import { residentTree } from './process-tree.ts';
import { nowMs, rounded } from './statistics.ts';

const LAUNCHER = fileURLToPath(new URL('../src/app/launch.js', import.meta.url));
const API_KEY = 'owop_bench_key_of_the_started_host';
const READY = /OpenWOP host +(\S+)\/\.well-known/;
const START_LIMIT_MS = 120_000;
const STOP_LIMIT_MS = 40_000;
const PROBE_MS = 100;
const SHOWN_PROBE_MS = 5;
/** Memory is at rest when the newest samples differ by less than this. */
const SETTLED_MIB = 2;
const SAMPLE_MS = 2_000;
const SAMPLES = 5;

export interface StartedHostOptions {
  readonly folder: string;
  /** Names the host's folders within `folder`. */
  readonly name: string;
  readonly cacheDir: string;
  readonly closing: Closing;
  readonly definitions: readonly WorkflowDefinition[];
  /** Absent: the embedded one. */
  readonly databaseUrl?: string;
  /** What they are, and what each says in the place of a model. */
  readonly agents?: readonly {
    readonly manifest: { readonly agentId: string };
    readonly script: object;
  }[];
}

/** Throws where it fails, or takes longer. */
export async function untilStatus(
  { api }: Pick<StartedHost, 'api'>,
  runId: string,
  wanted: { readonly status: string; readonly limitMs: number },
): Promise<void> {
  const limit = performance.now() + wanted.limitMs;
  for (;;) {
    const { status } = await api<{ status: string }>(`/v1/runs/${runId}`);
    if (status === wanted.status) return;
    if (status === 'failed' || performance.now() > limit)
      throw new Error(`run ${runId} is ${status}, and not ${wanted.status}`);
    await sleep(PROBE_MS);
  }
}

/** Memory of all processes, in MiB. */
export interface Rest {
  readonly byProcess: Readonly<Record<string, number>>;
  readonly totalMiB: number;
  /** False: the limit came before memory was at rest. */
  readonly settled: boolean;
}

export interface StartedHost {
  readonly url: string;
  readonly apiKey: string;
  readonly dataDir: string;
  /** Of its Temporal server. */
  readonly temporalAddress: string;
  /** Throws where the answer is no success. */
  readonly api: <T>(path: string, body?: unknown) => Promise<T>;
  look(): Rest;
  atRest(limitMs: number): Promise<Rest>;
  /** When its terminal showed this first, in ms epoch, seen every few ms; throws where the host ends or takes longer. */
  shown(pattern: RegExp): Promise<number>;
  stop(): Promise<void>;
  /** SIGKILL: its Temporal server goes on, and is found by the next host with this name. */
  kill(): Promise<void>;
}

export async function startHost(options: StartedHostOptions): Promise<StartedHost> {
  const { folder, name, cacheDir, closing, definitions, databaseUrl, agents = [] } = options;
  const dataDir = join(folder, name);
  const fixtures = join(folder, `${name}-definitions`);
  await mkdir(fixtures, { recursive: true });
  for (const one of definitions)
    await writeFile(join(fixtures, `${one.id}.json`), JSON.stringify(one));
  const manifests = join(folder, `${name}-agents`);
  await mkdir(manifests, { recursive: true });
  for (const { manifest, script } of agents) {
    const file = join(manifests, manifest.agentId);
    await writeFile(`${file}.agent.json`, JSON.stringify(manifest));
    await writeFile(`${file}.script.json`, JSON.stringify(script));
  }
  const child = spawn(process.execPath, [LAUNCHER, 'start'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      // As the scripts of package.json have it.
      MALLOC_ARENA_MAX: '2',
      OPENWOP_PORT: '0',
      OPENWOP_DATA_DIR: dataDir,
      OPENWOP_CACHE_DIR: cacheDir,
      OPENWOP_FIXTURES_DIR: fixtures,
      OPENWOP_AGENTS_DIR: manifests,
      OPENWOP_API_KEY: API_KEY,
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    },
  });
  const stop = () => stopHost(child);
  closing.add(stop);
  const terminal = terminalOf(child);
  const [, url = ''] = await terminal.shown(READY);
  const record = await readFile(join(dataDir, 'temporal.json'), 'utf8');
  const { port } = JSON.parse(record) as { port: number };
  const pid = child.pid ?? 0;
  return {
    ...{ url, apiKey: API_KEY, dataDir },
    temporalAddress: `127.0.0.1:${port}`,
    api: (path, body) => api(`${url}${path}`, body),
    look: () => look(pid),
    atRest: (limitMs) => atRest(pid, limitMs),
    shown: async (pattern) => (await terminal.shown(pattern)) && nowMs(),
    stop,
    async kill() {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** Looks at what the process writes, from its start on. */
function terminalOf(child: ChildProcess): { shown(pattern: RegExp): Promise<RegExpExecArray> } {
  let said = '';
  child.stdout?.on('data', (piece: Buffer) => void (said += piece.toString()));
  return {
    async shown(pattern) {
      const limit = performance.now() + START_LIMIT_MS;
      for (;;) {
        const found = pattern.exec(said);
        if (found) return found;
        if (child.exitCode !== null || performance.now() > limit)
          throw new Error(`the host did not show ${String(pattern)}: ${said}`);
        await sleep(SHOWN_PROBE_MS);
      }
    },
  };
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

async function api<T>(url: string, body?: unknown): Promise<T> {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
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
