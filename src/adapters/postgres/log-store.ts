// The log's port on Postgres (architecture §3): appends and deltas live in files of their own, reads and the restore of
// a rebuilt run here.
import { QUESTION_TYPES } from '../../rules/events.ts';
import type { Head, LogStore } from '../../ports/log.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { Logger } from '../../ports/logger.ts';
import type { SealedDb } from './db.ts';
import { createAppend } from './append-groups.ts';
import { LOG_CHANNEL } from './log-append.ts';
import { appendDeltas, closeBlock, storedDeltas } from './log-deltas.ts';
import { logLinks } from './log-links.ts';
import { restore } from './log-restore.ts';
import { EVENT_COLUMNS, HEAD_COLUMNS, headOf, logRowsOf, sealedOfHead } from './rows.ts';
import type { EventRecord, HeadRecord } from './rows.ts';

/** The condition of the index `run_events_of_questions`. */
const IS_QUESTION = `type IN (${QUESTION_TYPES.map((type) => `'${type}'`).join(', ')})`;

type Change = { runId: string; nextSequence: number };

/** Resolves when changes of every process are heard. */
export async function createLogStore(db: SealedDb, logger: Logger): Promise<LogStore> {
  const listeners = new Set<(change: Change) => void>();
  await db.listen(LOG_CHANNEL, (text) => {
    const change = changeOf(text);
    if (change) for (const listener of [...listeners]) notify(listener, change, logger);
  });
  return {
    ...reads(db),
    ...logLinks(db),
    append: createAppend(db),
    appendDeltas: (run, activityId, tryNumber, deltas) =>
      appendDeltas(db, { run, activityId, tryNumber, deltas }),
    closeBlock: (run, activityId) => closeBlock(db, run, activityId),
    restore: (run, told, seen) => restore(db, run, { ...told, seen }),
    async setProblem({ tenant, runId }, problem) {
      await db.query(
        'UPDATE run_heads SET problem = $2::text WHERE run_id = $1 AND tenant_id = $3 AND (NOT closed OR $2::text IS NULL)',
        [runId, problem ?? null, tenant],
      );
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onReconnect: (listener) => db.onReconnect(listener),
  };
}

/** `<runId>:<nextSequence>`; anything else on the channel is not ours. */
function changeOf(text: string): Change | undefined {
  const at = text.lastIndexOf(':');
  const nextSequence = Number(text.slice(at + 1));
  return at > 0 && Number.isSafeInteger(nextSequence)
    ? { runId: text.slice(0, at), nextSequence }
    : undefined;
}

function notify(listener: (change: Change) => void, change: Change, logger: Logger): void {
  try {
    listener(change);
  } catch (error) {
    logger.error('a log listener failed', { runId: change.runId, error: String(error) });
  }
}

/** Heads that are asked for in one turn of the event loop are read by one statement, at most so many. */
const HEADS_AT_ONCE = 100;

interface HeadRead {
  readonly run: RunRef;
  readonly resolve: (head: Head | undefined) => void;
  readonly reject: (error: unknown) => void;
}

function createHeadReads(db: SealedDb): LogStore['head'] {
  let asked: HeadRead[] = [];

  /** One whose key is not there keeps no other from being read. */
  const opened = async (record: HeadRecord): Promise<Head> =>
    headOf(record, await db.seals.opener(sealedOfHead(record)));

  async function readGroup(group: readonly HeadRead[]): Promise<void> {
    try {
      const records = await db.query<HeadRecord>(
        `SELECT ${HEAD_COLUMNS} FROM run_heads WHERE run_id = ANY($1::text[]) AND tenant_id = ANY($2::text[])`,
        [
          [...new Set(group.map(({ run }) => run.runId))],
          [...new Set(group.map(({ run }) => run.tenant))],
        ],
      );
      const found = new Map(records.map((record) => [record.run_id, record]));
      for (const { run, resolve, reject } of group) {
        const record = found.get(run.runId);
        if (record?.tenant_id === run.tenant) opened(record).then(resolve, reject);
        else resolve(undefined);
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  function readAll(): void {
    const all = asked;
    asked = [];
    for (let at = 0; at < all.length; at += HEADS_AT_ONCE)
      void readGroup(all.slice(at, at + HEADS_AT_ONCE));
  }

  return (run) =>
    new Promise((resolve, reject) => {
      asked.push({ run, resolve, reject });
      if (asked.length === 1) setImmediate(readAll);
    });
}

function reads(
  db: SealedDb,
): Pick<
  LogStore,
  'head' | 'tail' | 'read' | 'questions' | 'sequenceOf' | 'problems' | 'storedDeltas' | 'openBlocks'
> {
  return {
    head: createHeadReads(db),
    async tail({ tenant, runId }) {
      const [record] = await db.query<Pick<HeadRecord, 'next_sequence' | 'closed'>>(
        'SELECT next_sequence, closed FROM run_heads WHERE run_id = $1 AND tenant_id = $2',
        [runId, tenant],
      );
      return record && { nextSequence: record.next_sequence, closed: record.closed };
    },
    async read({ tenant, runId }, { after, limit }) {
      const records = await db.query<EventRecord>(
        `SELECT ${EVENT_COLUMNS} FROM run_events WHERE run_id = $1 AND tenant_id = $4 AND sequence > $2 ORDER BY sequence LIMIT $3`,
        [runId, after, limit, tenant],
      );
      return logRowsOf(db.seals, records);
    },
    async questions({ tenant, runId }, { nodeId, after, limit }) {
      const records = await db.query<EventRecord>(
        `SELECT ${EVENT_COLUMNS} FROM run_events
         WHERE run_id = $1 AND tenant_id = $4 AND sequence > $2 AND ${IS_QUESTION} AND coalesce(node_id, $5) = $5
         ORDER BY sequence LIMIT $3`,
        [runId, after, limit, tenant, nodeId],
      );
      return logRowsOf(db.seals, records);
    },
    async sequenceOf({ tenant, runId }, eventId) {
      const [row] = await db.query<{ sequence: number }>(
        'SELECT sequence FROM run_events WHERE event_id = $2 AND run_id = $1 AND tenant_id = $3',
        [runId, eventId, tenant],
      );
      return row?.sequence;
    },
    async problems(limit) {
      return db.query<{ runId: string; problem: string }>(
        'SELECT run_id AS "runId", problem FROM run_heads WHERE problem IS NOT NULL ORDER BY run_id LIMIT $1',
        [limit],
      );
    },
    storedDeltas: (run, activityId) => storedDeltas(db, run, activityId),
    async openBlocks({ tenant, runId }) {
      const rows = await db.query<{ activity_id: string }>(
        'SELECT activity_id FROM run_blocks WHERE run_id = $1 AND tenant_id = $2 AND NOT closed ORDER BY activity_id',
        [runId, tenant],
      );
      return rows.map((row) => row.activity_id);
    },
  };
}
