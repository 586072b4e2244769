// The seam between the stores and a database: the subset of Postgres that `pg` and PGlite share (architecture §7).
// Stores know only this; errors of both drivers come out as one of two kinds.
import { HostError } from '../../rules/errors.ts';
import type { Seals } from './seals.ts';

/** Values that a statement takes. JSON goes as text, so that what is read is byte for byte what was written. */
export type SqlValue =
  string | number | boolean | null | Uint8Array | readonly string[] | readonly number[];
/** A column value as read: bigint as number, bytea as bytes, text as string. */
export type SqlRow = Record<string, string | number | boolean | null | Uint8Array>;

export interface Queries {
  /** One statement. Rows of its result; empty when it returns none. */
  query<Row = SqlRow>(text: string, values?: readonly SqlValue[]): Promise<Row[]>;
}

export interface Transaction extends Queries {
  /** Several statements without values, for migrations. */
  script(text: string): Promise<void>;
}

export interface Db extends Queries {
  /**
   * Runs `work` in one READ COMMITTED transaction: committed when it resolves, rolled back when it throws or when a
   * statement failed that it went on behind, whose error it throws then. Nothing else may be awaited in it, because
   * PGlite has one connection. `work` runs again (at most TRANSACTION_TRIES times) after a deadlock, as a statement of
   * `query` does. Ends by itself after `limitMs` without an end (TRANSACTION_LIMIT_MS).
   */
  transaction<Result>(
    work: (tx: Transaction) => Promise<Result>,
    limitMs?: number,
  ): Promise<Result>;
  /**
   * A statement of upkeep that no transaction may hold (VACUUM), with limits of its own in ms: for the locks that it needs
   * (isLockTimeout), and in all; `close` ends it. PGlite, where nobody else is, has no limit.
   */
  maintain(
    text: string,
    limits: { readonly lockMs: number; readonly limitMs: number },
  ): Promise<void>;
  /** Calls back for every NOTIFY on the channel, also those of other processes. Resolves when it is listening. */
  listen(channel: string, callback: (payload: string) => void): Promise<void>;
  /** Calls back when notifications may have been missed and come again. */
  onReconnect(callback: () => void): () => void;
  close(): Promise<void>;
}

/** The database as stores of what may be sealed see it. */
export interface SealedDb extends Db {
  readonly seals: Seals;
}

/** Longest life of a transaction in ms; a client that went away must not hold locks longer. */
export const TRANSACTION_LIMIT_MS = 5_000;
/** How often a transaction runs at most when the database made it the victim of a deadlock. */
export const TRANSACTION_TRIES = 3;

/**
 * The result of `work`. Throws the first error of its statements also where `work` went on: PostgreSQL takes the COMMIT
 * of such a transaction, and rolls it back.
 */
export async function committable<Result>(
  tx: Transaction,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  let failed: Error | undefined;
  const noted = (error: Error): never => {
    failed ??= error;
    throw error;
  };
  const result = await work({
    query: <Row>(text: string, values?: readonly SqlValue[]) =>
      tx.query<Row>(text, values).catch(noted),
    script: (text) => tx.script(text).catch(noted),
  });
  if (failed) throw failed;
  return result;
}

/**
 * What the database said no to because of a statement's own values. Its message may hold values: it goes to logs as a cause,
 * never into a response.
 */
export class SqlError extends Error {
  override readonly name = 'SqlError';
  /** SQLSTATE. */
  readonly sqlState: string;
  readonly constraint: string | undefined;

  constructor(
    message: string,
    sqlState: string,
    options: { constraint?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.sqlState = sqlState;
    this.constraint = options.constraint;
  }
}

/** The form of the codes by which a database says no; EPIPE and the like are none. */
const SQL_STATE = /^(?=.*[0-9])[0-9A-Z]{5}$/;
const UNTRANSLATABLE_CHARACTER = /^(22021|22P05)$/;
/**
 * What the values of one statement, or the rows that they meet, can cause: cardinality, data exceptions, integrity, a check of a
 * view, too deep an expression, too many columns or arguments, and what the triggers of this schema raise. Whatever else a server
 * says is about the server, its schema or this host's rights there.
 */
const OF_VALUES = /^(21|22|23|44|OW|54001$|54011$|54023$)/;
const PROGRAM_LIMIT = '54000';
/** Functions of the server that say PROGRAM_LIMIT of a value: a key that no index can hold. Others say it of the server: no ids are left. */
const SAYS_OF_VALUE = /^(_bt_check_third_page|index_form_tuple)/;
const RETRYABLE = /^(40001|40P01)$/;
const LOCK_TIMEOUT = '55P03';

/** Of an error of a driver. */
function stateIn(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && SQL_STATE.test(code) ? code : undefined;
}

/** The SQLSTATE that the server answered a statement with; undefined: it gave no answer. */
export function sqlStateOf(error: unknown): string | undefined {
  if (error instanceof SqlError) return error.sqlState;
  return error instanceof HostError ? stateIn(error.cause) : undefined;
}

/** True when a statement was given up because a lock that it needs was not free within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === LOCK_TIMEOUT;
}

/** Runs `work` again, at most TRANSACTION_TRIES times in all, while the database makes it the victim of a deadlock. */
export async function pastDeadlocks<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries >= TRANSACTION_TRIES || !RETRYABLE.test(sqlStateOf(error) ?? '')) throw error;
    }
  }
}

/** The database could not be asked, came to no end, or refuses for reasons of its own, which `details.sqlState` names. */
export function unavailable(cause: unknown): HostError {
  const sqlState = stateIn(cause);
  const said = sqlState && { sqlState, reason: `The database answers with SQLSTATE ${sqlState}.` };
  return new HostError('service_unavailable', { part: 'database', ...said }, cause);
}

/**
 * One form for the errors of both drivers: SqlError where the statement's own values caused it, `validation_error` for text that
 * no text column can hold (NUL), HostError `service_unavailable` for everything else.
 */
export function databaseError(error: unknown): Error {
  if (error instanceof HostError || error instanceof SqlError) return error;
  const code = stateIn(error);
  const { message, constraint, routine } = error as {
    message?: string;
    constraint?: string;
    routine?: string;
  };
  const isOfValues =
    code !== undefined &&
    (OF_VALUES.test(code) || (code === PROGRAM_LIMIT && SAYS_OF_VALUE.test(routine ?? '')));
  if (!isOfValues) return unavailable(error);
  if (UNTRANSLATABLE_CHARACTER.test(code)) {
    return new HostError(
      'validation_error',
      { reason: 'A text holds a character that cannot be stored.' },
      error,
    );
  }
  return new SqlError(message ?? 'SQL error', code, { constraint, cause: error });
}

/**
 * Each has its turn, whatever becomes of the others; returned are those that failed. Throws where the database answers nobody:
 * the others have no better luck then.
 */
export async function eachByItself<Item>(
  db: Queries,
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
): Promise<readonly { readonly item: Item; readonly error: unknown }[]> {
  const failed: { readonly item: Item; readonly error: unknown }[] = [];
  for (const item of items)
    await work(item).catch(async (error: unknown) => {
      failed.push({ item, error });
      await db.query('SELECT 1');
    });
  return failed;
}

/** A row with this key is there already. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof SqlError && error.sqlState === '23505';
}

/** Part of a statement: now by the database's clock, in ms. Asked once, so that an index is used. */
export const NOW_MS = '(SELECT openwop_now_ms())';

/** Part of a statement: in so long a time by the database's clock, in ms. */
export function inMs(parameter: string): string {
  return `(SELECT openwop_now_ms() + ${parameter}::bigint)`;
}

/** Part of a statement: so long ago by the database's clock, in ms. Asked once, so that an index is used. */
export function agoMs(parameter: string): string {
  return `(SELECT openwop_now_ms() - ${parameter}::bigint)`;
}

/**
 * Part of a statement: whether what a process dated is at least so old by the database's clock. What is dated later than
 * now is, too: that process's clock is ahead, and nobody waits for it.
 */
export function isOlder(column: string, ageMs: string): string {
  return `(${column} <= ${agoMs(ageMs)} OR ${column} > ${NOW_MS})`;
}
