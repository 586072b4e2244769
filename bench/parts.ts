// What several sections of the bench measure on: one server of our own with its workers, a host on it, and what they leave
// each other. Each part is made when the first section asks for it, and stopped behind the last that needs it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBenchHost, type BenchHost } from './bench-host.ts';
import { CASES } from './cases.ts';
import type { Closing } from './closing.ts';
import { measureOverhead, type OverheadRow } from './overhead.ts';
import { startOwnServer, type ServerOptions } from './servers.ts';
import type { Sizes } from './sizes.ts';
import { playLongRun, type LongRun } from './turns.ts';
import { makeBundles, startPair, type Bundles, type Pair } from './workers.ts';
import type { TemporalTarget } from '../src/adapters/temporal/connection.ts';

export interface PartsOptions {
  readonly sizes: Sizes;
  readonly closing: Closing;
  readonly cacheDir: string;
  /** One line at a time. */
  readonly progress: (line: string) => void;
}

/** Parts that are stopped when no section needs them any more. */
export type Stoppable = 'pair' | 'host';

/** Each promise is of one thing, made once. */
export interface Parts extends PartsOptions {
  readonly folder: string;
  readonly server: ServerOptions;
  bundles(): Promise<Bundles>;
  /** Until the host is there, its hints go nowhere: what is measured then is the workflow's alone. */
  pair(): Promise<Pair>;
  host(): Promise<BenchHost>;
  /** Measured once: other sections are told against it. */
  overhead(): Promise<readonly OverheadRow[]>;
  longRun(): Promise<LongRun>;
  /** Of one that was never asked for: nothing. */
  stop(part: Stoppable): Promise<void>;
}

export async function benchParts(options: PartsOptions): Promise<Parts> {
  const { sizes, closing, cacheDir, progress } = options;
  const folder = await mkdtemp(join(tmpdir(), 'openwop-bench-'));
  closing.add(() => rm(folder, { recursive: true, force: true }));
  const program = { cacheDir, env: process.env, report: progress };
  const server: ServerOptions = { folder, closing, program };
  const started: { pair?: Pair; host?: BenchHost } = {};
  const target = once((): Promise<TemporalTarget> => startOwnServer(server));
  const bundles = once(() => makeBundles(folder, cacheDir));
  const pair = once(async () => {
    const hint: BenchHost['hint'] = (...told) => started.host?.hint(...told);
    const made = { target: await target(), bundles: await bundles(), cases: CASES, closing, hint };
    return (started.pair = await startPair(made));
  });
  const host = once(async () => {
    const on = { target: await target(), bundles: await bundles(), folder, cacheDir, closing };
    return (started.host = await startBenchHost(on));
  });
  return {
    ...options,
    ...{ folder, server, bundles, pair, host },
    overhead: once(async () => measureOverhead(await pair(), sizes.overheadRounds)),
    longRun: once(async () => playLongRun(await host(), sizes.agentTurns)),
    async stop(part) {
      await (part === 'pair' ? started.pair?.stop() : started.host?.host.stop());
    },
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
