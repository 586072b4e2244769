// Logs that were there before the feed come into it (architecture §3.6, migration 008): in batches, each a transaction
// that no writer of a log waits for, from any number of processes, and on from the last one after a crash. Readers of the
// feed do not pass what is still to be filled in.
import { BackOff, rest } from '../../system/time.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Db, Queries } from './db.ts';

/** Rows of one batch, the longest time for it, and the rest behind it, in ms. */
const BACKFILL_ROWS = 1_000;
const BATCH_LIMIT_MS = 60_000;
const BATCH_REST_MS = 10;
/** Pauses in ms before a batch that failed is tried again: the first, and the longest. */
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 60_000;

// Positions ascend as the rows of each log do. A row that a rebuild has written since has its position already; the lock
// keeps a rebuild from taking away a row that gets one here.
const FILL = `
  WITH batch AS MATERIALIZED (
    SELECT tenant_id, run_id, sequence FROM run_events
    WHERE (run_id, sequence) > ($1, $2) ORDER BY run_id, sequence LIMIT $4 FOR KEY SHARE
  ),
  sessions AS MATERIALIZED (
    SELECT run_id, coalesce(session_id, openwop_session(input)) AS session_id FROM runs
    WHERE run_id IN (SELECT run_id FROM batch)
  ),
  filled AS (
    INSERT INTO run_feed (tenant_id, position, session_id, run_id, sequence)
    SELECT b.tenant_id, $3::bigint + row_number() OVER (ORDER BY b.run_id, b.sequence),
      coalesce(s.session_id, b.run_id), b.run_id, b.sequence
    FROM batch b LEFT JOIN sessions s ON s.run_id = b.run_id
    ORDER BY b.run_id, b.sequence
    ON CONFLICT (run_id, sequence) DO NOTHING
  )
  SELECT run_id, sequence, count(*) OVER () AS rows FROM batch ORDER BY run_id DESC, sequence DESC LIMIT 1`;

interface Progress {
  readonly run_id: string;
  readonly sequence: number;
  readonly position: number;
}

/** Whether logs are there that are not in the feed yet. */
async function isOpen(db: Queries): Promise<boolean> {
  return (await db.query('SELECT 1 FROM feed_backfill')).length > 0;
}

/** Fills in the next `limit` rows; false when none is left. Processes that do so at once take turns. */
export function backfillBatch(
  db: Pick<Db, 'transaction'>,
  limit = BACKFILL_ROWS,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.script(`SET LOCAL statement_timeout = ${BATCH_LIMIT_MS}`);
    const [progress] = await tx.query<Progress>(
      'SELECT run_id, sequence, position FROM feed_backfill FOR UPDATE',
    );
    if (!progress) return false;
    const [last] = await tx.query<Omit<Progress, 'position'> & { rows: number }>(FILL, [
      progress.run_id,
      progress.sequence,
      progress.position,
      limit,
    ]);
    if (!last || last.rows < limit) {
      await tx.query('DELETE FROM feed_backfill');
      return false;
    }
    await tx.query(
      'UPDATE feed_backfill SET run_id = $1, sequence = $2, position = position + $3',
      [last.run_id, last.sequence, last.rows],
    );
    return true;
  }, BATCH_LIMIT_MS);
}

type Filling = Pick<Db, 'query' | 'transaction'>;

export interface Backfill {
  /** Ends it behind the batch that is under way; the next process goes on. */
  stop(): Promise<void>;
}

/** Goes on in the background until nothing is left; what fails is tried again. */
export async function startBackfill(db: Filling, logger: Logger): Promise<Backfill> {
  const ended = new AbortController();
  const filling = (await isOpen(db)) ? fillAll(db, logger, ended.signal) : Promise.resolve();
  return {
    async stop() {
      ended.abort();
      await filling;
    },
  };
}

async function fillAll(db: Filling, logger: Logger, signal: AbortSignal): Promise<void> {
  const backOff = new BackOff(FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS);
  logger.info('the feed is filled with the logs that are there; until then its readers wait');
  while (!signal.aborted) {
    try {
      if (!(await backfillBatch(db))) return logger.info('the feed holds every log');
      backOff.reset();
      await rest(BATCH_REST_MS, signal);
    } catch (error) {
      logger.warn('a batch of the feed failed; trying again', { error: String(error) });
      await rest(backOff.next(), signal);
    }
  }
}
