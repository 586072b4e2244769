// A whole system of processes that tests crash: one Temporal dev server with a database file, one PostgreSQL cluster,
// and facades and workers as processes of their own, each on ports that stay.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStores } from '../../../src/adapters/postgres/index.ts';
import {
  freePort,
  obtainDevServer,
  type DevServer,
} from '../../../src/adapters/temporal/dev-server.ts';
import type { Environment } from '../../../src/app/config.ts';
import type { Stores } from '../../../src/ports/stores.ts';
import { TEST_API_KEY, until } from '../host.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { silentLogger } from '../log-parts.ts';
import { CACHE_DIR } from '../temporal.ts';
import { startEffectService, type EffectService } from './effects-receiver.ts';
import { startHalf, type HalfKind, type HalfProcess } from './half-process.ts';
import { EFFECTS_VARIABLE } from './scene.ts';

/** A half that stays what it is over its deaths: same port, same environment. */
export interface Half {
  readonly kind: HalfKind;
  /** Base of the API; of a worker, of its health, or '' where it tells that nowhere. */
  readonly url: string;
  process(): HalfProcess;
  /** SIGKILL unless told otherwise; resolves when it is gone. */
  kill(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
  /** Resolves when it takes work again; with other values of these variables, where they are given. */
  restart(env?: Environment): Promise<void>;
  /** Of its processes that ended though nobody killed them: none may. */
  readonly deaths: readonly string[];
}

export interface FaultSystem {
  readonly temporal: DevServer;
  readonly postgres: TestPostgres;
  readonly databaseUrl: string;
  readonly effects: EffectService;
  /** This process's own look at the database. */
  readonly stores: Stores;
  start(kind: HalfKind, env?: Environment): Promise<Half>;
  /** SIGKILL of the dev server; its keeper in this process starts it again. Resolves when it is gone. */
  killTemporal(): Promise<void>;
  /** Resolves when a server answers again after `killTemporal`. */
  temporalBack(): Promise<void>;
  stop(): Promise<void>;
}

/** `{missing}` where there is no PostgreSQL. */
export async function startFaultSystem(): Promise<FaultSystem | { readonly missing: string }> {
  const postgres = await startPostgres();
  if ('missing' in postgres) return postgres;
  const folder = await mkdtemp(join(tmpdir(), 'openwop-faults-'));
  const [databaseUrl, temporal, effects] = await Promise.all([
    postgres.createDatabase(),
    obtainDevServer({
      dataDir: join(folder, 'temporal'),
      ui: false,
      program: { cacheDir: CACHE_DIR, env: process.env, report: () => {} },
      logger: silentLogger,
    }),
    startEffectService(),
  ]);
  const stores = await openStores({
    database: { kind: 'postgres', url: databaseUrl },
    logger: silentLogger,
  });
  const base: Environment = {
    OPENWOP_DATA_DIR: join(folder, 'data'),
    OPENWOP_CACHE_DIR: CACHE_DIR,
    OPENWOP_API_KEY: TEST_API_KEY,
    OPENWOP_LOG_LEVEL: 'info',
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    [EFFECTS_VARIABLE]: effects.url,
  };
  const halves: Half[] = [];
  let killedPid: number | undefined;
  return {
    temporal,
    postgres,
    databaseUrl,
    effects,
    stores,
    async start(kind, env = {}) {
      const half = await keepHalf(kind, { ...base, ...env });
      halves.push(half);
      return half;
    },
    async killTemporal() {
      await until(() => temporal.pid() !== undefined, 'the dev server runs');
      killedPid = temporal.pid();
      if (killedPid !== undefined) process.kill(killedPid, 'SIGKILL');
      await until(() => temporal.pid() !== killedPid, 'the dev server is gone');
    },
    async temporalBack() {
      await until(
        () => temporal.pid() !== undefined && temporal.pid() !== killedPid,
        'the dev server is there again',
      );
    },
    async stop() {
      await Promise.all(halves.map((half) => half.kill()));
      await stores.close();
      await temporal.stop();
      await Promise.all([effects.stop(), postgres.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function keepHalf(kind: HalfKind, env: Environment): Promise<Half> {
  const port = kind === 'serve' ? await freePort() : 0;
  let own: Environment = { ...env, OPENWOP_PORT: String(port) };
  const deaths: string[] = [];
  const start = () => startHalf(kind, own, (how) => deaths.push(how));
  let current = await start();
  return {
    deaths,
    kind,
    url: current.url,
    process: () => current,
    kill: (signal = 'SIGKILL') => current.kill(signal),
    async restart(changed = {}) {
      own = { ...own, ...changed };
      current = await start();
    },
  };
}

export type Victim = 'worker' | 'facade' | 'temporal' | 'postgres';

/** Kills all victims at once, leaves them dead for `downMs`, and brings them back, what others need first. */
export async function crash(
  system: FaultSystem,
  halves: { readonly worker: Half; readonly facade: Half },
  { victims, downMs }: { victims: readonly Victim[]; downMs: number },
): Promise<void> {
  const hit = (victim: Victim) => victims.includes(victim);
  await Promise.all([
    hit('worker') && halves.worker.kill(),
    hit('facade') && halves.facade.kill(),
    hit('temporal') && system.killTemporal(),
    hit('postgres') && system.postgres.kill(),
  ]);
  await sleep(downMs);
  await Promise.all([
    hit('postgres') && system.postgres.restart(),
    hit('temporal') && system.temporalBack(),
  ]);
  await Promise.all([
    hit('worker') && halves.worker.restart(),
    hit('facade') && halves.facade.restart(),
  ]);
}
