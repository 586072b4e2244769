// The table of subjects' keys, rewritten after one of them was destroyed (architecture §10.1). What a row held before stays
// in the table's file for as long as a transaction may see it, and longer. So the table is rewritten (VACUUM FULL), and the
// database itself shows how far back it kept rows: `relfrozenxid` is then the horizon that it used, whoever holds that back,
// a session of another role, a prepared transaction, a slot or a standby. Followers of the database's log come last: a standby
// answers from before until it has replayed, and a slot hands out what it has not passed.
import { HostError } from '../../rules/errors.ts';
import type { ErasureWait } from '../../ports/subjects.ts';
import { BackOff, Deadline } from '../../system/time.ts';
import { isLockTimeout, sqlStateOf, type Db, type Queries } from './db.ts';

/** Longest wait in ms for the exclusive lock on the table: later statements on it queue after that wait. */
const LOCK_LIMIT_MS = 100;
/** Longest time in ms that the table is rewritten: nobody reads a key meanwhile. */
const REWRITE_LIMIT_MS = 60_000;
/** Rewrites that one erasure begins at a time: it is noted after the first. */
const MAX_REWRITES = 2;
/** Rests in ms after a table that was in use, and after a rewrite in vain: the first, and the longest. */
const IN_USE_REST_MS = 1_000;
const VAIN_REST_MS = 10_000;
const LONGEST_IN_USE_REST_MS = 30_000;
const LONGEST_VAIN_REST_MS = 600_000;
/** How many of those that it waits for a reason names. */
const NAMED = 5;
const NAME_CHARS = 120;

/** SQL: a transaction id (bigint) above all that have ended. */
const NEXT_XID = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint';
const NEXT = `${NEXT_XID} AS next`;

/**
 * SQL for a 64-bit transaction id (bigint), in the transaction that destroys a key, after the row's lock: all transactions
 * that changed the row, and this one, have lower ids.
 */
export const XIDS_SO_FAR = `greatest(pg_current_xact_id()::text::bigint + 1, ${NEXT_XID})`;

export interface KeyTable {
  /**
   * Undefined if no session can read the erasure's key by SQL, and no slot and no standby that is directly connected is behind
   * the rewrite; files of the database's log that the server or an archive still keeps, and backups, may hold it. Else what is
   * waited for, as far as the database shows it. Throws HostError service_unavailable, and internal_error: no such erasure.
   */
  overwrite(erasureId: string): Promise<ErasureWait | undefined>;
}

export function createKeyTable(db: Db): KeyTable {
  return new RewrittenTable(db);
}

/** A wait, true of each key whose transactions are not below that id. */
interface SharedWait {
  readonly wait: ErasureWait;
  readonly bound: number;
}

class RewrittenTable implements KeyTable {
  readonly #db: Db;
  readonly #inUse = new BackOff(IN_USE_REST_MS, LONGEST_IN_USE_REST_MS);
  readonly #inVain = new BackOff(VAIN_REST_MS, LONGEST_VAIN_REST_MS);
  #rest: (SharedWait & { readonly limit: Deadline }) | undefined;
  #running: Promise<SharedWait | undefined> | undefined;

  constructor(db: Db) {
    this.#db = db;
  }

  async overwrite(erasureId: string): Promise<ErasureWait | undefined> {
    for (let rewrites = 0; rewrites < MAX_REWRITES;) {
      const { bound, isWritten } = await standing(this.#db, erasureId);
      if (isWritten)
        return following(this.#db, erasureId).catch((error: unknown) => this.#refused(error));
      const others = this.#running;
      if (others === undefined) {
        this.#running = this.#rewrite(bound).finally(() => (this.#running = undefined));
        const own = await this.#running;
        if (own) return own.wait;
        rewrites++;
        continue;
      }
      // Whoever waits for another's rewrite looks whether that was its own; what others threw is theirs.
      const told = await others.catch(() => undefined);
      if (told && told.bound <= bound) return told.wait;
    }
    throw new HostError('internal_error', { reason: 'The rewrite is not noted.' });
  }

  /** One rewrite serves all keys that were destroyed before it and that no transaction holds any more. */
  async #rewrite(bound: number): Promise<SharedWait | undefined> {
    const rest = this.#rest;
    if (rest && !rest.limit.isOver() && rest.bound <= bound) return rest;
    try {
      const holders = await holding(this.#db, bound);
      if (holders.length > 0) return { wait: keptFor(holders), bound };
      const wait = await rewritten(this.#db, bound);
      if (wait) return this.#resting(this.#inVain, { wait, bound });
    } catch (error) {
      if (isLockTimeout(error)) {
        const lockers = await locking(this.#db).catch(() => []);
        return this.#resting(this.#inUse, { wait: inUse(lockers), bound: 0 });
      }
      return this.#resting(this.#inVain, { wait: await this.#refused(error), bound: 0 });
    }
    this.#inUse.reset();
    this.#inVain.reset();
    return undefined;
  }

  /** What the database said, whose statements here have no values to tell of. Throws what it did not say. */
  async #refused(error: unknown): Promise<ErasureWait> {
    if (sqlStateOf(error) === undefined) throw error;
    await this.#db.query('SELECT 1');
    const { cause } = error as { readonly cause?: { readonly message?: string } };
    return waitFor(`The database refuses: ${cause?.message}.`);
  }

  #resting(rests: BackOff, told: SharedWait): SharedWait {
    this.#rest = { ...told, limit: new Deadline(rests.next()) };
    return told;
  }
}

/** Undefined: all that were destroyed before, and that nobody holds, are noted, and the one with this bound is among them. */
async function rewritten(db: Db, bound: number): Promise<ErasureWait | undefined> {
  const before = await fileOf(db);
  await db.maintain('VACUUM FULL subject_keys', {
    ...{ lockMs: LOCK_LIMIT_MS, limitMs: REWRITE_LIMIT_MS },
  });
  const after = await fileOf(db);
  if (after.file === before.file)
    return waitFor(
      'The database did not rewrite the table subject_keys: this host’s role must own it.',
    );
  await db.query(
    `UPDATE subject_erasures SET written_lsn = pg_current_wal_lsn()
     WHERE state = 'destroyed' AND written_lsn IS NULL
       AND (xids_so_far <= $1 OR xids_so_far > ${NEXT_XID})`,
    [after.frozen],
  );
  return after.frozen < bound ? keptFor(await holding(db, bound)) : undefined;
}

async function standing(
  db: Queries,
  erasureId: string,
): Promise<{ readonly bound: number; readonly isWritten: boolean }> {
  const [row] = await db.query<{ bound: number; is_written: boolean; next: number }>(
    `SELECT xids_so_far AS bound, (written_lsn IS NOT NULL OR state = 'erased') AS is_written, ${NEXT}
     FROM subject_erasures WHERE erasure_id = $1 AND xids_so_far IS NOT NULL`,
    [erasureId],
  );
  if (!row) throw new HostError('internal_error', { reason: 'The key is not destroyed.' });
  // An id that is not given out yet is another database's, from which this one was restored: it holds no row from before.
  return { bound: row.bound > row.next ? 0 : row.bound, isWritten: row.is_written };
}

interface File {
  readonly file: number;
  /** No row that was replaced before this transaction id is in it. */
  readonly frozen: number;
}

async function fileOf(db: Queries): Promise<File> {
  const [row] = await db.query<{ file: number; frozen: number; next: number }>(
    `SELECT pg_relation_filenode(oid)::bigint AS file, relfrozenxid::text::bigint AS frozen, ${NEXT}
     FROM pg_class WHERE oid = 'subject_keys'::regclass`,
  );
  return { file: row?.file ?? 0, frozen: fullXid(row?.frozen ?? 0, row?.next ?? 0) };
}

/** A number of 32 bits and one more. */
const XIDS = 0x1_0000_0000;

/** The 64-bit transaction id of the 32-bit `xid`, given an id `near` that is less than 2^31 away. */
export function fullXid(xid: number, near: number): number {
  const behindBy = (((near - xid) % XIDS) + XIDS) % XIDS;
  return behindBy < XIDS / 2 ? near - behindBy : near + XIDS - behindBy;
}

interface Holder {
  readonly name: string;
  readonly xmin: number | null;
  readonly xid: number | null;
  readonly next: number;
}

/**
 * What makes the database keep rows from before a transaction id. Every role may see these columns of other sessions. A writer
 * in another database counts, since each snapshot in this one waits for it; a plain VACUUM does not.
 */
const HOLDERS = `
  SELECT ${NEXT}, 'session ' || pid || coalesce(' of role ' || usename, '') ||
      coalesce(' (' || nullif(application_name, '') || ')', '') AS name,
    CASE WHEN datid IS NULL OR datname = current_database() THEN backend_xmin::text::bigint END AS xmin,
    backend_xid::text::bigint AS xid
  FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
  UNION ALL SELECT ${NEXT}, 'prepared transaction "' || gid || '"', NULL, transaction::text::bigint FROM pg_prepared_xacts
  UNION ALL SELECT ${NEXT}, 'replication slot "' || slot_name || '"', xmin::text::bigint, NULL
    FROM pg_replication_slots WHERE xmin IS NOT NULL AND wal_status IS DISTINCT FROM 'lost'`;

async function holding(db: Queries, bound: number): Promise<readonly string[]> {
  const rows = await db.query<Holder>(HOLDERS);
  const isBefore = (xid: number | null, next: number) => xid !== null && fullXid(xid, next) < bound;
  return rows
    .filter(({ xmin, xid, next }) => isBefore(xmin, next) || isBefore(xid, next))
    .map(({ name }) => name);
}

function keptFor(holders: readonly string[]): ErasureWait {
  return waitFor(
    holders.length > 0
      ? `The database still keeps rows from before the key was destroyed, because of: ${named(holders)}.`
      : 'The database still keeps rows from before the key was destroyed, and does not show why.',
  );
}

/** Who had the table for as long as it was waited for; of some roles this host may not see since when. */
async function locking(db: Queries): Promise<readonly string[]> {
  const rows = await db.query<{ name: string }>(
    `SELECT DISTINCT coalesce('session ' || l.pid || coalesce(' of role ' || a.usename, ''), 'a prepared transaction') AS name
     FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.relation = 'subject_keys'::regclass AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND (a.xact_start IS NULL OR a.xact_start < clock_timestamp() - interval '${LOCK_LIMIT_MS} ms')`,
  );
  return rows.map(({ name }) => name);
}

function inUse(holders: readonly string[]): ErasureWait {
  const by = holders.length > 0 ? ` by: ${named(holders)}` : '';
  return waitFor(`The table subject_keys is in use${by}.`);
}

/**
 * Followers of the database's log that have not reached the rewrite, or of which the host may not see whether they have: a slot
 * of a standby that is not connected shows what that received, not what it replayed. A position that is not reached yet is
 * another database's, from which this one was restored.
 */
const FOLLOWERS = `WITH rewrite AS (
    SELECT written_lsn AS lsn FROM subject_erasures WHERE erasure_id = $1 AND written_lsn <= pg_current_wal_lsn()
  )
  SELECT 'replication slot "' || slot_name || '"' AS name,
    CASE WHEN coalesce(confirmed_flush_lsn, restart_lsn) < lsn THEN 'behind' ELSE 'away' END AS kind
  FROM pg_replication_slots, rewrite
  WHERE wal_status IS DISTINCT FROM 'lost' AND (database IS NULL OR database = current_database())
    AND (coalesce(confirmed_flush_lsn, restart_lsn) < lsn OR (slot_type = 'physical' AND NOT active AND restart_lsn IS NOT NULL))
  UNION ALL
  SELECT 'replication client ' || pid || coalesce(' (' || nullif(application_name, '') || ')', ''),
    CASE WHEN state IS NULL THEN 'hidden' ELSE 'behind' END
  FROM pg_stat_replication, rewrite
  WHERE (state IS NULL OR replay_lsn < lsn OR (replay_lsn IS NULL AND state IN ('startup', 'catchup')))
    AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE active_pid IS NOT NULL AND database <> current_database())`;

const FOLLOWS = {
  behind: (who: string) =>
    `The key can still be read by followers of the database's log that have not reached its end: ${who}.`,
  away: (who: string) =>
    `The standby of a slot is not connected, and may still answer with the key: ${who}. Connect it, or drop the slot.`,
  hidden: (who: string) =>
    `This host may not see how far followers of the database's log have come: ${who}. Grant its role pg_read_all_stats.`,
};

async function following(db: Queries, erasureId: string): Promise<ErasureWait | undefined> {
  const rows = await db.query<{ name: string; kind: keyof typeof FOLLOWS }>(FOLLOWERS, [erasureId]);
  const reasons = (['behind', 'away', 'hidden'] as const).flatMap((kind) => {
    const names = rows.filter((row) => row.kind === kind).map(({ name }) => name);
    return names.length === 0 ? [] : [FOLLOWS[kind](named(names))];
  });
  return reasons.length === 0 ? undefined : waitFor(reasons.join(' '));
}

function named(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return (
    names
      .slice(0, NAMED)
      .map((name) => name.slice(0, NAME_CHARS))
      .join(', ') + more
  );
}

function waitFor(reason: string): ErasureWait {
  return { kind: 'database', reason };
}
