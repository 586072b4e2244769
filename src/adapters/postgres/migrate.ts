// Numbered SQL migrations at start (architecture §7): each in one transaction under one advisory lock, so that any
// number of processes may start at once. Whoever works on meanwhile waits behind a migration's locks: it gives up after a
// moment and comes again. A database from a newer release is refused, and one from before the first.
import { readdir, readFile } from 'node:fs/promises';
import { HostError } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { BackOff, rest } from '../../system/time.ts';
import { isLockTimeout, type Db } from './db.ts';

const MIGRATIONS_DIR = new URL('./migrations/', import.meta.url);
const FILE_NAME = /^(\d{3})-([a-z0-9-]+)\.sql$/;
/** Advisory lock of all migrations: the letters `owop`. */
const LOCK_ID = 0x6f776f70;
/** Longest time in ms for one migration, waiting for other processes included. */
const MIGRATION_LIMIT_MS = 10 * 60_000;
/**
 * Longest wait in ms of a migration for a lock, during which others wait behind it; how often it is tried; and the pauses
 * in ms between two tries, the first and the longest. Together longer than any transaction of a host.
 */
const LOCK_LIMIT_MS = 1_000;
const LOCK_TRIES = 90;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** The migrations of this release, ascending, without gaps. */
export async function readMigrations(): Promise<readonly Migration[]> {
  const files = (await readdir(MIGRATIONS_DIR)).sort();
  return Promise.all(
    files.map(async (file, index) => {
      const match = FILE_NAME.exec(file);
      if (!match?.[1] || !match[2] || Number(match[1]) !== index + 1) {
        throw new Error(
          `migrations/${file}: expected number ${index + 1} and the form 001-name.sql`,
        );
      }
      return {
        version: index + 1,
        name: match[2],
        sql: await readFile(new URL(file, MIGRATIONS_DIR), 'utf8'),
      };
    }),
  );
}

/** Of what it does: comments and white space do nothing. */
function digestOf({ sql }: Migration): string {
  return sha256Hex(sql.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim());
}

/**
 * Brings the database to the last of `migrations`. Throws HostError `config_invalid` when it is beyond that or of a state
 * before the first release, and `service_unavailable` when a table is locked for longer than `lockTries` tries.
 */
export async function migrate(
  db: Db,
  migrations: readonly Migration[],
  lockTries = LOCK_TRIES,
): Promise<void> {
  const backOff = new BackOff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  let tries = 0;
  for (;;) {
    try {
      if (await migrateOnce(db, migrations)) return;
      tries = 0;
      backOff.reset();
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      tries += 1;
      if (tries >= lockTries) throw lockedOut(tries, error);
      await rest(backOff.next());
    }
  }
}

function lockedOut(tries: number, cause: unknown): HostError {
  const reason =
    `A migration of the database found its tables locked ${tries} times. ` +
    'End the transaction that holds them (pg_locks and pg_stat_activity name it), and start again.';
  return new HostError('service_unavailable', { part: 'database', reason }, cause);
}

/** Applies the next migration, if there is one; true when nothing is left to do. */
async function migrateOnce(db: Db, migrations: readonly Migration[]): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.script(`SET LOCAL statement_timeout = ${MIGRATION_LIMIT_MS}`);
    await tx.query('SELECT pg_advisory_xact_lock($1)', [LOCK_ID]);
    await tx.script(
      `CREATE TABLE IF NOT EXISTS schema_migrations
         (version integer PRIMARY KEY, name text NOT NULL, digest text NOT NULL,
          applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    // The first states of the schema kept no digest.
    const applied = await tx.query<{ version: number; digest: string | null }>(
      `SELECT version, to_jsonb(m) ->> 'digest' AS digest FROM schema_migrations m ORDER BY version`,
    );
    const version = applied.at(-1)?.version ?? 0;
    const isOther = applied.some((one) => {
      const known = migrations[one.version - 1];
      return known !== undefined && one.digest !== digestOf(known);
    });
    if (isOther) {
      throw new HostError('config_invalid', {
        reason:
          'The database is of a version from before release 0.1.0, whose data no release reads. ' +
          'Name an empty database, or another data folder.',
      });
    }
    if (version > migrations.length) {
      throw new HostError('config_invalid', {
        reason:
          `The database has schema version ${version}; this release knows versions up to ${migrations.length}. ` +
          'Run the newer release, or use another database.',
      });
    }
    const next = migrations[version];
    if (!next) return true;
    await tx.script(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}`);
    await tx.script(next.sql);
    await tx.query('INSERT INTO schema_migrations (version, name, digest) VALUES ($1, $2, $3)', [
      next.version,
      next.name,
      digestOf(next),
    ]);
    return false;
  }, MIGRATION_LIMIT_MS);
}
