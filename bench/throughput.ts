// Runs per second: runs of one activity, sixteen in flight, one process, interleaved rounds: the bare
// workflow, runs without projector, with it, and with it when every run is watched.
import { ONE, runInputOf } from './cases.ts';
import type { BenchHost } from './bench-host.ts';
import { median, rounded } from './statistics.ts';
import type { Pair } from './workers.ts';
import type { BarePlan } from './workflows/bare.ts';
import type { RunInput } from '../src/rules/run-input.ts';
import { runRef } from '../test/support/run-ref.ts';

const IN_FLIGHT = 16;
const WATCH_MS = 60_000;
const WATCHER = 'bench';
const LOGGED_LIMIT_MS = 30_000;
const LOGGED_PROBE_MS = 10;

type Mode = 'bare' | 'withoutProjector' | 'withProjector' | 'watched';
const MODES: readonly Mode[] = ['bare', 'withoutProjector', 'withProjector', 'watched'];

export interface Throughput {
  readonly inFlight: number;
  /** Medians of the rounds. */
  readonly runsPerSecond: Readonly<Record<Mode, number>>;
  /** CPU time of this process (client, worker, projector, database; not the server), medians. */
  readonly cpuMsPerRun: Readonly<Record<Mode, number>>;
  /** Medians of each round's ratio to its bare runs. */
  readonly ratioToBare: Readonly<Record<Exclude<Mode, 'bare'>, number>>;
  /** From the end of the last run until every log had its terminal row, in ms. */
  readonly projectorLagMs: number;
  readonly rounds: number;
}

export async function atOnce(
  count: number,
  inFlight: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, lane));
}

async function untilLogged({ host }: BenchHost, inputs: readonly RunInput[]): Promise<void> {
  const limit = performance.now() + LOGGED_LIMIT_MS;
  for (const { runId } of inputs) {
    while (!(await host.stores.log.head(runRef(runId)))?.closed) {
      if (performance.now() > limit) throw new Error(`the log of ${runId} does not end`);
      await new Promise((resolve) => setTimeout(resolve, LOGGED_PROBE_MS));
    }
  }
}

interface Work {
  readonly bench: BenchHost;
  readonly pair: Pair;
  readonly plan: BarePlan;
  readonly runs: number;
}

/** Rows and watches are written before the clock starts: they belong to the facade. */
async function prepared({ bench, runs }: Work, mode: Mode): Promise<RunInput[]> {
  const inputs = Array.from({ length: runs }, () => runInputOf(ONE.definition));
  if (mode !== 'withProjector' && mode !== 'watched') return inputs;
  for (const input of inputs) {
    await bench.accept(input);
    if (mode === 'watched')
      await bench.host.stores.projection.watch(runRef(input.runId), WATCHER, WATCH_MS);
  }
  return inputs;
}

interface Round {
  readonly perSecond: number;
  readonly cpuMs: number;
  readonly lagMs: number;
}

async function runRound(work: Work, mode: Mode): Promise<Round> {
  const { bench, pair, plan, runs } = work;
  const { stores, projector } = bench.host;
  const projected = mode === 'withProjector' || mode === 'watched';
  const inputs = await prepared(work, mode);
  bench.hint = projected ? (...hint) => projector.hint(...hint) : () => {};
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  await atOnce(runs, IN_FLIGHT, async (index) => {
    const input = inputs[index] as RunInput;
    const handle = await (mode === 'bare' ? pair.startBare(plan) : pair.startRun(input));
    if (projected) await stores.runs.markStarted(runRef(input.runId), handle.firstExecutionRunId);
    await handle.result();
  });
  const endedMs = performance.now();
  if (projected) await untilLogged(bench, inputs);
  const lagMs = performance.now() - endedMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (mode === 'watched')
    for (const { runId } of inputs) await stores.projection.unwatch(runRef(runId), WATCHER);
  return {
    perSecond: (runs * 1_000) / (endedMs - startedMs),
    cpuMs: (user + system) / 1_000 / runs,
    lagMs,
  };
}

export async function measureThroughput(
  bench: BenchHost,
  pair: Pair,
  { rounds, runs }: { rounds: number; runs: number },
): Promise<Throughput> {
  bench.hint = () => {};
  const work: Work = { bench, pair, plan: await pair.planOf(ONE), runs };
  const results = byMode((): Round[] => []);
  for (let round = 0; round < rounds; round++) {
    const order = [...MODES.slice(round % MODES.length), ...MODES.slice(0, round % MODES.length)];
    for (const mode of order) {
      results[mode].push(await runRound(work, mode));
    }
  }
  bench.hint = () => {};
  return reportOf(results);
}

function byMode<T>(of: (mode: Mode) => T): Record<Mode, T> {
  return {
    bare: of('bare'),
    withoutProjector: of('withoutProjector'),
    withProjector: of('withProjector'),
    watched: of('watched'),
  };
}

function reportOf(results: Record<Mode, readonly Round[]>): Throughput {
  const middle = (mode: Mode, of: (round: Round) => number) =>
    rounded(median(results[mode].map(of)), 1);
  const ratio = (mode: Mode) => {
    const ratios = results[mode].map(
      ({ perSecond }, round) => perSecond / (results.bare[round]?.perSecond ?? NaN),
    );
    return rounded(median(ratios), 3);
  };
  return {
    inFlight: IN_FLIGHT,
    runsPerSecond: byMode((mode) => middle(mode, ({ perSecond }) => perSecond)),
    cpuMsPerRun: byMode((mode) => middle(mode, ({ cpuMs }) => cpuMs)),
    ratioToBare: {
      withoutProjector: ratio('withoutProjector'),
      withProjector: ratio('withProjector'),
      watched: ratio('watched'),
    },
    projectorLagMs: middle('withProjector', ({ lagMs }) => lagMs),
    rounds: results.bare.length,
  };
}
