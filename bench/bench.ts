// The whole bench, section by section. It starts everything that it measures and ends it again.
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, homedir, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { installRuntime } from '../src/adapters/temporal/worker.ts';
import { measureAgents } from './agents.ts';
import { startBenchHost, type BenchHost } from './bench-host.ts';
import { CASES } from './cases.ts';
import { benchLogger, type Closing } from './closing.ts';
import { measureFamilies } from './families.ts';
import { measureLatency } from './latency.ts';
import { measureMemory } from './memory.ts';
import { measureOverhead, type OverheadRow } from './overhead.ts';
import type { BenchReport, DefaultServerRow } from './report.ts';
import { startDefaultServer, startOwnServer, type ServerOptions } from './servers.ts';
import type { Sizes } from './sizes.ts';
import { rounded } from './statistics.ts';
import { measureThroughput } from './throughput.ts';
import { measureHistory, measureTranslate, playLongRun } from './turns.ts';
import { makeBundles, startPair, type Bundles } from './workers.ts';

const MS_PER_SECOND = 1_000;
const BYTES_PER_GIB = 1024 ** 3;

export interface BenchOptions {
  readonly sizes: Sizes;
  readonly closing: Closing;
  /** One line per section. */
  readonly progress: (line: string) => void;
  readonly cacheDir?: string;
}

function defaultCacheDir(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'openwop-temporal');
}

/** Ends what it started when `options.closing` is closed. */
export async function runBench(options: BenchOptions): Promise<BenchReport> {
  const startedMs = performance.now();
  installRuntime(benchLogger);
  const { sizes, closing, progress, cacheDir = defaultCacheDir() } = options;
  const folder = await mkdtemp(join(tmpdir(), 'openwop-bench-'));
  closing.add(() => rm(folder, { recursive: true, force: true }));
  const server: ServerOptions = {
    folder,
    closing,
    program: { cacheDir, env: process.env, report: progress },
  };
  const bundles = await makeBundles(folder, cacheDir);
  const memory = await section(progress, 'memory', () =>
    measureMemory({
      folder,
      cacheDir,
      closing,
      waitingRuns: sizes.waitingRuns,
      warmUpRuns: sizes.memoryWarmUpRuns,
      settleMs: sizes.settleMs,
    }),
  );
  const families = await section(progress, 'families', () =>
    measureFamilies({
      folder,
      cacheDir,
      closing,
      wide: sizes.wideChildren,
      chains: sizes.chainsOfChildren,
      settleMs: sizes.settleMs,
    }),
  );
  const ours = await measureOnOwnServer({ ...options, cacheDir }, { server, bundles });
  const defaultServer = await section(progress, 'a dev server with default settings', () =>
    onDefaultServer(server, bundles, { rounds: sizes.defaultServerRounds, ours: ours.overhead }),
  );
  return {
    machine: { cores: availableParallelism(), memoryGiB: rounded(totalmem() / BYTES_PER_GIB, 0) },
    size: sizes.name,
    ...ours,
    defaultServer,
    memory,
    families,
    seconds: rounded((performance.now() - startedMs) / MS_PER_SECOND, 0),
  };
}

async function section<T>(
  progress: BenchOptions['progress'],
  name: string,
  measure: () => Promise<T>,
): Promise<T> {
  const startedMs = performance.now();
  const result = await measure();
  progress(`${name}: ${rounded((performance.now() - startedMs) / MS_PER_SECOND, 0)} s`);
  return result;
}

async function measureOnOwnServer(
  options: BenchOptions & { cacheDir: string },
  { server, bundles }: { server: ServerOptions; bundles: Bundles },
) {
  const { sizes, closing, progress, cacheDir } = options;
  const target = await startOwnServer(server);
  // Until the host is there, hints go nowhere: the overhead is the workflow's alone.
  const later: { host?: BenchHost } = {};
  const pair = await startPair({
    target,
    bundles,
    cases: CASES,
    closing,
    hint: (...hint) => later.host?.hint(...hint),
  });
  const overhead = await section(progress, 'overhead', () =>
    measureOverhead(pair, sizes.overheadRounds),
  );
  const { folder } = server;
  const host = await startBenchHost({ target, bundles, folder, cacheDir, closing });
  later.host = host;
  const throughput = await section(progress, 'throughput', () =>
    measureThroughput(host, pair, { rounds: sizes.throughputRounds, runs: sizes.throughputRuns }),
  );
  const latency = await section(progress, 'latency', () => measureLatency(host, sizes));
  const longRun = await section(progress, 'agent turns', () => playLongRun(host, sizes.agentTurns));
  const translate = await section(progress, 'translate and rebuild', () =>
    measureTranslate(host, pair, {
      longRun,
      forMs: sizes.translateMs,
      runs: sizes.rebuildRuns,
    }),
  );
  await pair.stop();
  const agents = await section(progress, 'agents', () => measureAgents(host, folder, sizes));
  await host.host.stop();
  const history = measureHistory(longRun);
  return { overhead, throughput, latency, translate, history, agents };
}

async function onDefaultServer(
  server: ServerOptions,
  bundles: Bundles,
  { rounds, ours }: { rounds: number; ours: readonly OverheadRow[] },
): Promise<DefaultServerRow[]> {
  const target = await startDefaultServer(server);
  const { closing } = server;
  const pair = await startPair({ target, bundles, cases: CASES, closing });
  const rows = await measureOverhead(pair, rounds);
  await pair.stop();
  await target.stop();
  return rows.map((row) => {
    const here = ours.find(({ name }) => name === row.name)?.run.wallMs ?? NaN;
    return { ...row, slowerThanRun: rounded(row.bare.wallMs / here, 2) };
  });
}
