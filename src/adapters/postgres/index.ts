// All stores of one database (architecture §7): PGlite in the data folder by default, PostgreSQL in production. Opening
// runs the migrations.
import type { HostKey } from '../../ports/keys.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Stores } from '../../ports/stores.ts';
import { HostError } from '../../rules/errors.ts';
import { ringOf } from '../../rules/key-ring.ts';
import { within } from '../../system/time.ts';
import { createContentFiles } from '../content/file-content-store.ts';
import { createAgentRegistry } from './agent-registry.ts';
import { createFileContentStore, createTableContentStore } from './content-store.ts';
import { createCohortStore } from './cohort-store.ts';
import { unavailable, type Db } from './db.ts';
import { createEffectLedger } from './effect-ledger.ts';
import { createFamilyStore } from './family-store.ts';
import { createFeedStore } from './feed-store.ts';
import { createIdempotencyStore } from './idempotency-store.ts';
import { startKeyKeeper, type KeyKeeper } from './key-keeper.ts';
import { createLogStore } from './log-store.ts';
import { migrate, readMigrations } from './migrate.ts';
import { createPageSessionStore } from './page-session-store.ts';
import { openPglite } from './pglite.ts';
import { openPool } from './pool.ts';
import { createProjectionStore } from './projection-store.ts';
import { createRetentionStore } from './retention-store.ts';
import { createRunStore } from './run-store.ts';
import { createSegmentStore } from './segment-store.ts';
import { createSealedContent } from './sealed-content.ts';
import { withSeals } from './sealed-db.ts';
import { createSeals } from './seals.ts';
import { createSessionStore } from './session-store.ts';
import { createSubjectKeys } from './subject-keys.ts';
import { createSubjectStore } from './subject-store.ts';

/** `cacheDir`: keeps an empty database, which new folders are copies of. */
export type DatabaseOptions =
  | { readonly kind: 'pglite'; readonly dir: string; readonly cacheDir?: string }
  | { readonly kind: 'postgres'; readonly url: string };

export interface OpenStoresOptions {
  readonly database: DatabaseOptions;
  /** Folder for content, with PGlite only; absent, or with PostgreSQL, content is a table. */
  readonly contentDir?: string;
  /** Wrap the keys of subjects, the current one new ones; without any no run may name a subject. */
  readonly masterKeys?: readonly HostKey[];
  readonly logger: Logger;
  /** Names the process to the others that have this database, for as long as it is open. Absent: they learn nothing of it. */
  readonly processId?: string;
  /** For tests; KEY_HELD_MS when absent. */
  readonly keyHeldMs?: number | undefined;
  /** For tests; ANNOUNCED_MS when absent. */
  readonly announcedMs?: number | undefined;
}

export interface OpenDatabase {
  readonly db: Db;
  readonly close: () => Promise<void>;
}

/** Longest time in ms that a ping waits. */
const PING_LIMIT_MS = 2_000;

/** Throws HostError service_unavailable (database cannot be opened) or config_invalid (its schema is newer). */
export async function openStores(options: OpenStoresOptions): Promise<Stores> {
  return storesOn(await openDatabase(options.database, options.logger), options);
}

/** Of a database that is open; they close it. */
export async function storesOn(
  { db: plain, close: closeDatabase }: OpenDatabase,
  options: OpenStoresOptions,
): Promise<Stores> {
  const { database, contentDir, logger, masterKeys = [], keyHeldMs } = options;
  let keeper: KeyKeeper | undefined;
  const close = async () => {
    await keeper?.stop();
    await closeDatabase();
  };
  try {
    await migrate(plain, await readMigrations());
    keeper = await keeperOf(plain, options);
    const keyRing = keeper ?? ringOf(masterKeys);
    const keys = await createSubjectKeys(plain, masterKeys, keyHeldMs);
    const seals = createSeals(keys);
    const db = withSeals(plain, seals);
    const log = await createLogStore(db, logger);
    const projection = await createProjectionStore(db, logger);
    const files =
      database.kind === 'pglite' && contentDir !== undefined
        ? await createContentFiles(contentDir)
        : undefined;
    const stored = files ? createFileContentStore(db, files, logger) : createTableContentStore(db);
    const content = createSealedContent(stored, { keys, seals });
    return {
      runs: createRunStore(db),
      cohorts: createCohortStore(db),
      families: createFamilyStore(db),
      idempotency: createIdempotencyStore(db),
      log,
      feed: createFeedStore(db),
      sessions: createSessionStore(db),
      projection,
      segments: createSegmentStore(db),
      content,
      effects: createEffectLedger(db),
      pageSessions: createPageSessionStore(db),
      agents: createAgentRegistry(db, logger),
      retention: createRetentionStore(db),
      subjects: createSubjectStore(db, keyRing, keyHeldMs),
      subjectKeys: keys,
      keyRing,
      ping: () => ping(db),
      async probe() {
        await ping(db);
        await within(PING_LIMIT_MS, files?.probe() ?? Promise.resolve(), () => {
          throw new HostError('service_unavailable', { part: 'content' });
        });
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function keeperOf(
  db: Db,
  { database, masterKeys: keys = [], processId: holder, logger, announcedMs }: OpenStoresOptions,
): Promise<KeyKeeper> | undefined {
  if (holder === undefined) return undefined;
  const isAlone = database.kind === 'pglite';
  return startKeyKeeper(db, { keys, holder, isAlone, logger, announcedMs });
}

/** The database without stores, for migrations and for tests that look behind them. */
export async function openDatabase(
  database: DatabaseOptions,
  logger: Logger,
): Promise<OpenDatabase> {
  if (database.kind === 'postgres') {
    const db = await openPool(database.url, logger);
    return { db, close: () => db.close() };
  }
  const pglite = await openPglite(database.dir, logger, database.cacheDir);
  return { db: pglite.connect(), close: () => pglite.close() };
}

/** A server that takes no writes is as good as none. Where somebody writes the row just now, it does; one that is lost is made. */
async function ping(db: Db): Promise<void> {
  const asked = db.query(
    `WITH written AS (
       UPDATE store_pings SET at_ms = openwop_now_ms()
       WHERE only_row = (SELECT only_row FROM store_pings FOR UPDATE SKIP LOCKED)
     )
     INSERT INTO store_pings (at_ms) SELECT openwop_now_ms() WHERE NOT EXISTS (SELECT 1 FROM store_pings)
     ON CONFLICT DO NOTHING`,
  );
  await within(PING_LIMIT_MS, asked, () => {
    throw unavailable(new Error('the database does not answer'));
  });
}
