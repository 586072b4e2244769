// Mutants of erasure (architecture §10.1), as mutants.ts has them.
import type { Row } from './mutants.ts';

const KEYS = 'src/adapters/postgres/subject-keys.ts';
const SUBJECTS = 'src/adapters/postgres/subject-store.ts';
const TABLE = 'src/adapters/postgres/key-table.ts';
const SEALS = 'src/adapters/postgres/seals.ts';
const SEALED_ROWS = 'src/adapters/postgres/rows.ts';
const MIGRATE = 'src/adapters/postgres/migrate.ts';
const LOGS = 'src/adapters/postgres/erased-logs.ts';
const OF_LOST_ROWS = 'test/runs/erasure-lost-rows.test.ts';
const OF_SUBJECTS = 'test/adapters/subjects.test.ts';
const OF_TABLE = 'test/adapters/key-table.test.ts';
const OF_ERASING = 'test/acceptance/erasure.test.ts';
const OF_FORKS = 'test/acceptance/erasure-forks.test.ts';
const OF_PLACES = 'test/adapters/content-places.test.ts';

export const OF_ERASURE: readonly Row[] = [
  [
    113,
    [
      'src/adapters/postgres/idempotency-store.ts',
      'if (keyId === null) return kept === requestDigest;',
      'if (keyId === null || keyId) return kept === requestDigest;',
    ],
    ['test/adapters/subjects.test.ts', 'a repeat is compared as the first request was kept'],
  ],
  [
    113,
    [
      'src/runs/accept.ts',
      'const isAsked = once !== undefined && mayHaveSubject',
      'const isAsked = once !== undefined && !mayHaveSubject',
    ],
    ['test/runs/accept-subjects.test.ts', 'during an erasure of its subject'],
  ],
  [
    114,
    [
      'src/adapters/postgres/session-store.ts',
      'parentRunId === undefined && input.fork === undefined,',
      'parentRunId !== undefined && input.fork === undefined,',
    ],
    ['test/adapters/subjects.test.ts', 'the row of a session decides'],
  ],
  [
    115,
    [
      'src/runs/erase.ts',
      'await deps.engine.terminate(run.runId, ENDED_BY_ERASURE);',
      "await deps.engine.terminate('', ENDED_BY_ERASURE);",
    ],
    ['test/runs/erasure-keeper.test.ts', 'what Temporal still has open of a run is ended'],
  ],
  [
    115,
    ['src/log/unread-runs.ts', 'return deadline.isOver() && rounds', 'return rounds'],
    ['test/log/unread-runs.test.ts', 'the time counts from the first round'],
  ],
  [
    115,
    ['src/log/unread-runs.ts', ' && rounds + 1 >= this.#minRounds', ''],
    ['test/log/unread-runs.test.ts', 'counts rounds, too'],
  ],
  [
    115,
    [
      'src/runs/erasure-keeper.ts',
      '{ ...given, unread: new UnreadRuns(MIN_UNREAD_ROUNDS) }',
      'given',
    ],
    ['test/runs/erasure-keeper.test.ts', 'whatever the clocks say'],
  ],
  [
    97,
    ['src/runs/erase.ts', ' && found.code !== FORGOTTEN', ''],
    [OF_LOST_ROWS, 'and its history, that had not ended'],
  ],
  [
    115,
    [
      'src/adapters/postgres/erased-logs.ts',
      'const status = endedWith(endedBy ?? end.type);',
      "const status = 'running';",
    ],
    ['test/runs/erasure-keeper.test.ts', 'a run whose own key is damaged ends'],
  ],
  [
    115,
    ['src/runs/start.ts', 'marked && !marked.wasEnded', 'marked'],
    [OF_LOST_ROWS, 'whose start arrives after its log was ended'],
  ],
  [
    115,
    [
      'src/adapters/postgres/run-store.ts',
      "h.closed AND (h.temporal_run_id = '' OR started.temporal_run_id <> $2) AS was_ended",
      'h.closed AS was_ended',
    ],
    [OF_LOST_ROWS, 'of a run that somebody else started'],
  ],
  [
    115,
    ['src/adapters/postgres/run-store.ts', ' OR started.temporal_run_id <> $2) AS', ') AS'],
    [OF_LOST_ROWS, 'which had lost the run, began it again'],
  ],
  [
    115,
    ['src/runs/start.ts', 'find(tenant, runId).catch(nothingOf)', 'find(tenant, runId)'],
    [OF_LOST_ROWS, 'whose start arrives after its log was ended'],
  ],
  [
    97,
    [LOGS, 'WHERE r.subject_key = ${key} AND', 'WHERE false AND'],
    [OF_LOST_ROWS, 'finds a run'],
  ],
  [
    97,
    [LOGS, 'await tx.query(PUT_LOST_HEAD, [runId, tenant]);', ''],
    [OF_LOST_ROWS, 'of a run without its head'],
  ],
  [
    97,
    [LOGS, 'max(type) FILTER (WHERE key = $3) AS ended_by', 'NULL::text AS ended_by'],
    [OF_LOST_ROWS, 'of a run without its head that had ended'],
  ],
  [
    97,
    ['src/runs/erase.ts', 'if (!row && !read.head.closed) throw new HostError(LOST);', ''],
    [OF_LOST_ROWS, 'names the run without its row'],
  ],
  [
    97,
    ['src/runs/erase.ts', '...(isKept ? {} : { isKept: false as const }),', ''],
    [OF_LOST_ROWS, 'names the run without its row'],
  ],
  [
    97,
    [LOGS, "WHERE NOT ${isWhole('erased_runs', 'excluded.erasure_id')}", 'WHERE false'],
    [OF_LOST_ROWS, 'notes a log again of which'],
  ],
  [
    115,
    [
      'src/adapters/temporal/engine.ts',
      '...{ namespace, workflowExecution, reason,',
      "...{ namespace, workflowExecution: { workflowId: '-' }, reason,",
    ],
    ['test/adapters/engine.test.ts', 'ends what is open of a run'],
  ],
  [
    114,
    ['src/runs/accept.ts', 'if (tries < SESSION_TRIES) continue;', ''],
    ['test/runs/accept-subjects.test.ts', 'also where that got one meanwhile'],
  ],
  [
    84,
    [SEALED_ROWS, 'return atRest(seal, { place, json: payload, kept });', 'return payload;'],
    [OF_ERASING, 'planted is left'],
  ],
  [
    85,
    [KEYS, 'held.asked.agoMs() <', '0 * held.asked.agoMs() <'],
    [OF_SUBJECTS, 'without a word of it'],
  ],
  [
    86,
    [MIGRATE, 'name text NOT NULL, digest', 'name text NOT NULL, said text, digest'],
    [OF_PLACES, 'every column'],
  ],
  [
    87,
    [SUBJECTS, '(open.length > 0) return f', '(open.length < 0) return f'],
    [OF_SUBJECTS, 'a run of it is'],
  ],
  [
    88,
    [
      'src/runs/fork-children.ts',
      '...(parent.subjectKey === undefined ? {} : { subjectKey: parent.subjectKey }),',
      '',
    ],
    [OF_FORKS, 'are sealed with the same key'],
  ],
  [
    89,
    ['src/adapters/postgres/cohort-store.ts', "'r.subject_key IS NULL',", ''],
    [OF_FORKS, 'takes a run of a subject'],
  ],
  [85, [KEYS, 'asked.agoMs() <= ANSWER_LIMIT_MS', 'true'], [OF_SUBJECTS, 'several are asked']],
  [85, [SUBJECTS, '!deadline.isOver()', 'false'], [OF_SUBJECTS, 'for five seconds']],
  [85, [SEALS, '!known.mayOpen()', 'false'], [OF_SUBJECTS, 'waited for long']],
  [102, [TABLE, 'told && told.bound <= bound', 'told'], [OF_TABLE, 'removed for one']],
  [102, [TABLE, 'after.frozen < bound', 'after.frozen < 0'], [OF_TABLE, 'the database alone']],
  [102, [TABLE, 'xid !== null && fullXid(xid, next) < bound', 'false'], [OF_TABLE, 'sees the key']],
  [102, [TABLE, 'isBefore(xmin, next) || ', ''], [OF_TABLE, 'sees the key']],
  [102, [TABLE, ' || isBefore(xid, next)', ''], [OF_TABLE, 'a prepared transaction']],
  [
    102,
    [TABLE, 'after.file === before.file', 'after.file === -1'],
    [OF_TABLE, 'does not rewrite the table subject|database does not'],
  ],
  [
    102,
    [TABLE, 'reasons.length === 0 ? undefined', 'reasons.length < 9 ? undefined'],
    [OF_TABLE, 'can hand out'],
  ],
  [
    102,
    [
      'src/runs/erase.ts',
      'if (!wait || patience.isOver()) return wait;',
      'return wait && undefined;',
    ],
    [OF_LOST_ROWS, 'signs nothing while the database may still give out'],
  ],
  [102, [TABLE, 'state IS NULL OR replay_lsn', 'replay_lsn'], [OF_TABLE, 'a standby: ']],
  [102, [TABLE, 'replay_lsn < lsn OR ', ''], [OF_TABLE, 'a standby: ']],
  [102, [TABLE, 'NOT active AND ', 'false AND '], [OF_TABLE, 'a standby: ']],
  [
    102,
    [TABLE, 'row.bound > row.next ? 0 : row.bound', 'row.bound'],
    [OF_TABLE, 'of another database'],
  ],
  [102, [TABLE, ' AND written_lsn <= pg_current_wal_lsn()', ''], [OF_TABLE, 'of another database']],
  [102, [SUBJECTS, 'xids_so_far = ${XIDS_SO_FAR}', 'xids_so_far = 0'], [OF_TABLE, 'sees the key']],
  [102, [TABLE, 'AND (xids_so_far <= $1', 'AND ($1 > 0'], [OF_TABLE, 'none after it']],
];
