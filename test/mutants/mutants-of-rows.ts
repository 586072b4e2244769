// Mutants of sessions, and of what stays one row's own affair (architecture §11, I67, I97): rows of mutants.ts.
import type { Row } from './mutants.ts';

const SEALS = 'src/adapters/postgres/seals.ts';
const DAMAGED = 'src/rules/damaged.ts';
const SUBJECT_KEYS = 'src/adapters/postgres/subject-keys.ts';
const SESSIONS = 'src/adapters/postgres/session-store.ts';
const COHORTS = 'src/adapters/postgres/cohort-store.ts';
const RUNS = 'src/adapters/postgres/run-store.ts';
const CONVERSATION = 'src/log/conversation.ts';
const ROUNDS = 'src/log/rounds.ts';
const EXPIRER = 'src/log/expirer.ts';
const REAPER = 'src/runs/reaper.ts';
const OF_KEYS = 'test/adapters/lost-keys.test.ts';
const OF_ONE = 'test/adapters/one-row.test.ts';
const OF_POISON = 'test/facade/poisoned-rows.test.ts';
const OF_STORES = 'test/adapters/postgres-stores.test.ts';
const OF_ROUNDS = 'test/log/rounds.test.ts';
const OF_EXPIRY = 'test/log/expirer.test.ts';
const OF_REAPER = 'test/runs/reaper.test.ts';

export const OF_ROWS: readonly Row[] = [
  [
    97,
    [
      'src/runs/pause.ts',
      'return isTime(atMs) ? { pausedAt: new Date(atMs).toISOString() } : {};',
      'return atMs === undefined ? {} : { pausedAt: new Date(atMs).toISOString() };',
    ],
    ['test/runs/pause.test.ts', 'of a run that is paused already is refused as that'],
  ],
  [
    97,
    [
      'src/pages/timeline.js',
      'const atMs = event.unreadable ? undefined : Date.parse(event.timestamp);',
      'const atMs = Date.parse(event.timestamp);',
    ],
    ['test/pages/timeline.test.ts', 'an event with a damaged time is shown without one'],
  ],
  [
    97,
    [
      'src/runs/cohort-selection.ts',
      'return knowsAgents(change, input);',
      'return agentsIn(change, input) !== undefined;',
    ],
    ['test/runs/cohort-selection.test.ts', 'has that run as one that is refused by itself'],
  ],
  [
    97,
    ['src/rules/unreadable.ts', 'if (isTime(ms)) return', 'if (ms !== undefined) return'],
    ['test/wire/render.test.ts', 'which is no time'],
  ],
  [
    67,
    [
      'src/adapters/postgres/session-store.ts',
      'if (!places.has(message)) places.set(message, position);',
      'places.set(message, position);',
    ],
    ['test/log/conversation.test.ts', 'is what all runs of a session say'],
  ],
  [
    97,
    [SESSIONS, 'json: JSON.stringify(text) }', 'json: text }'],
    [OF_STORES, 'a title and tags may begin as what is sealed begins'],
  ],
  [
    97,
    [SUBJECT_KEYS, '// It is the fault of this key alone.', 'throw error;'],
    [OF_KEYS, 'lists of runs tell the others'],
  ],
  [
    97,
    [SUBJECT_KEYS, 'unreadableFor(error)) return error', 'false) return error'],
    [OF_KEYS, 'sessions are told'],
  ],
  [
    97,
    [COHORTS, 'unreadable.push({ runId: record.run_id, createdAtMs: record.created_at_ms });', ''],
    [OF_KEYS, 'no cohort has it'],
  ],
  [
    97,
    [
      RUNS,
      'AND (created_at_ms, run_id) > ($3::bigint, $4::text)',
      'AND ($3::bigint, $4::text) IS NOT NULL',
    ],
    [OF_REAPER, 'pages of rows that cannot be read'],
  ],
  [
    97,
    [ROUNDS, '&& !(await this.#outage.isThere(turn.message))', ''],
    [OF_ROUNDS, 'ends the round only where one who is needed'],
  ],
  [
    97,
    [SEALS, 'if (!form(value)) throw damagedAt(place);', ''],
    [OF_ONE, 'what an agent said that is damaged is left out'],
  ],
  [
    97,
    ['src/adapters/postgres/run-record.ts', 'if (!isInput(input)) throw damagedAt(place);', ''],
    [OF_POISON, 'takes no other out of any list'],
  ],
  [
    97,
    ['src/log/fold.ts', 'if (isFolded(snapshot)) return', 'if (snapshot !== null) return'],
    [OF_POISON, 'takes no other out of any list'],
  ],
  [
    97,
    [
      'src/adapters/postgres/list-cursor.ts',
      'return `${column}::text`;',
      'return `least(${column}, 9)::text`;',
    ],
    [OF_POISON, 'takes no other out of any list'],
  ],
  [
    97,
    ['src/adapters/content/file-content-store.ts', 'requireHash(hash);', ''],
    ['test/adapters/content-files.test.ts', 'of what is no hash nothing beside the folder'],
  ],
  [97, [REAPER, ' && !isUnreadable(error.code);', ';'], [OF_REAPER, 'a key that is not to be had']],
  [
    97,
    ['src/log/followers.ts', 'if (this.#last === last) this.#last = undefined;', ''],
    ['test/log/projector.test.ts', 'a read that failed fails who shared it'],
  ],
  [
    97,
    [DAMAGED, 'if (kind !== undefined && found !== kind) throw damagedAt(place);', ''],
    ['test/rules/damaged.test.ts', 'in the place of another kind'],
  ],
  [
    97,
    [DAMAGED, 'throw damagedAt(place, error);', 'throw error;'],
    [OF_KEYS, 'a row that is damaged is named'],
  ],
  [
    97,
    [SEALS, 'toldOr<Opened>({ text: keptIn(place, text) }, () => {', '(() => {'],
    [OF_KEYS, 'what is damaged of a session'],
  ],
  [
    97,
    [CONVERSATION, '&& !one.row.unreadable ? []', '? []'],
    [OF_KEYS, 'what was hidden when its key is there'],
  ],
  [
    97,
    [SESSIONS, 'THEN least(m.position, excluded.position) ELSE', 'THEN m.position ELSE'],
    [OF_KEYS, 'whose first place was hidden'],
  ],
  [
    97,
    [
      'src/adapters/postgres/append-groups.ts',
      "if (codeOf(error) !== 'service_unavailable') return true;",
      "if (codeOf(error) !== 'never') return codeOf(error) !== 'service_unavailable';",
    ],
    [OF_ONE, 'one that takes too long keeps no other'],
  ],
  [
    97,
    [
      'src/adapters/postgres/subject-keys.ts',
      'this.#masters.length === 0 && !(await this.#hasSubjects())',
      'this.#masters.length === 0',
    ],
    [OF_ONE, 'writes nothing of a subject in the clear'],
  ],
  [
    97,
    [
      'src/adapters/postgres/cohort-store.ts',
      'AND (created_at_ms, cohort_id) > ($3::bigint, $4::text)',
      'AND ($3::bigint, $4::text) IS NOT NULL',
    ],
    [OF_ONE, 'page by page'],
  ],
  [
    97,
    [
      'src/adapters/postgres/cohort-rows.ts',
      "...toldOr<Pick<CohortMember, 'report'>>({}, () => reportIn(record)),",
      '...reportIn(record),',
    ],
    [OF_ONE, 'a damaged member keeps no cohort open'],
  ],
  [
    97,
    [
      'src/log/projector.ts',
      "logger.warn('open runs cannot be listed, trying again', { reason: String(error) });",
      'throw error;',
    ],
    ['test/log/projector.test.ts', 'a page of open runs that the database does not give'],
  ],
  [
    97,
    [
      'src/adapters/postgres/projection-store.ts',
      'DELETE FROM process_leases WHERE holder = $1 AND expires_at_ms = $2',
      'DELETE FROM process_leases WHERE holder = $1 AND $2::bigint IS NOT NULL',
    ],
    [OF_STORES, 'no longer the taker’s'],
  ],
  [
    97,
    [
      'src/log/left-runs.ts',
      'isOutage && !(await ownFaults.isOwn(run, error))',
      'isOutage && ownFaults',
    ],
    ['test/log/left-runs.test.ts', 'is named at once'],
  ],
  [
    97,
    [
      'src/opensentience/registry-writer.ts',
      'faults.push({ agentId: value[0], error });',
      'throw error;',
    ],
    ['test/opensentience/registry-writer.test.ts', 'an agent whose tools are not taken'],
  ],
  [
    97,
    ['src/adapters/postgres/free-rows.ts', 'FOR UPDATE SKIP LOCKED))', 'FOR UPDATE))'],
    [OF_ONE, 'keeps no other whose time is over'],
  ],
  [
    97,
    ['src/adapters/postgres/host-secrets.ts', '$3 FOR UPDATE SKIP LOCKED', '$3 FOR UPDATE'],
    [OF_ONE, 'keeps no other key of a subject'],
  ],
  [
    97,
    [
      'src/adapters/postgres/append-groups.ts',
      'group.length === 1 && isLockTimeout(error)',
      'group.length === 0',
    ],
    [OF_ONE, 'keeps no append of other runs waiting'],
  ],
  [
    97,
    [SEALS, 'if (!isTime(ms)) throw damagedAt(place);', ''],
    [OF_ONE, 'lists of runs and sessions tell a row'],
  ],
  [
    97,
    [
      'src/adapters/postgres/subject-store.ts',
      'records.map(listedErasure)',
      'records.map(erasureOf)',
    ],
    [OF_ONE, 'of erasures one that is damaged'],
  ],
  [
    97,
    [
      'src/facade/session-envelope.ts',
      'run.unreadable ?? row.unreadable ?? time.unreadable',
      'row.unreadable',
    ],
    ['test/facade/session-stream.test.ts', 'tells an event with a time that is none'],
  ],
  [
    97,
    [
      'src/adapters/temporal/closed-runs.ts',
      'Math.min(toMs(closeTime) ?? 0, Date.now())',
      'toMs(closeTime) ?? 0',
    ],
    ['test/adapters/closed-runs.test.ts', 'a close time ahead of now'],
  ],
  [
    97,
    [
      'src/adapters/postgres/projection-store.ts',
      "WHERE watermark_ms <= openwop_now_ms() + $1::bigint',",
      "WHERE $1::bigint > 0',",
    ],
    ['test/log/sweeper.test.ts', 'a watermark that is ahead of now'],
  ],
  [
    97,
    [
      'src/adapters/content/file-content-store.ts',
      'return OF_FILE.has(code);',
      'return !OF_FILE.has(code);',
    ],
    ['test/adapters/content-files.test.ts', 'a file that cannot be read on a disk that answers'],
  ],
  [
    97,
    [ROUNDS, 'known?.code !== fault.code', 'known?.code === fault.code'],
    [OF_ROUNDS, 'that fails is named'],
  ],
  [
    97,
    [ROUNDS, 'known && known.left-- > 0', 'known && known.left-- > 1e9'],
    [OF_ROUNDS, 'comes less often'],
  ],
  [
    97,
    [
      EXPIRER,
      'await this.#rounds.turn({ message, fields: {} }, async () => {',
      'await (async (work: () => Promise<void>) => work())(async () => {',
    ],
    [OF_EXPIRY, 'each part of a round has its turn'],
  ],
  [
    97,
    [REAPER, 'signal.aborted || limit.isOver()', 'signal.aborted'],
    [OF_REAPER, 'goes on behind what it looked at'],
  ],
  [
    97,
    ['src/runs/erase.ts', 'if (kept > 0 && patience.isOver())', 'if (patience.isOver())'],
    [OF_ONE, 'a page of them neither'],
  ],
  [
    97,
    [
      'src/runs/family-keeper.ts',
      'Promise.allSettled([tellParent(deps, run), cancelChildren(deps, run)])',
      'Promise.allSettled([tellParent(deps, run).then(() => cancelChildren(deps, run))])',
    ],
    ['test/runs/family-keeper.test.ts', 'whose parent cannot be told still ends the children'],
  ],
  [
    97,
    ['src/adapters/temporal/rpc.ts', 'if (REFUSALS.has(grpcCode))', 'if (true)'],
    ['test/adapters/rpc-errors.test.ts', 'may be answered otherwise'],
  ],
  [
    98,
    ['src/adapters/temporal/rpc.ts', 'hasFailure(error, NOT_READY)', 'false'],
    ['test/adapters/rpc-errors.test.ts', 'because the run was not ready'],
  ],
  [
    97,
    [
      'src/runs/cohort-change.ts',
      'const { agentId } = payloadOf(row);',
      'const { agentId } = JSON.parse(row.payload);',
    ],
    ['test/runs/cohort-change.test.ts', 'an entry of the source that is damaged'],
  ],
  [
    97,
    ['src/adapters/postgres/segment-store.ts', 'greatest(0, least(claims, $3))', 'claims'],
    [OF_ONE, 'a count of claims that is damaged'],
  ],
  [
    97,
    ['src/app/rebuild-runs.ts', 'refused++;', 'if (!(error instanceof HostError)) throw error;'],
    ['test/app/rebuild-runs.test.ts', 'keeps no other from its turn'],
  ],
  [
    97,
    [
      'src/runs/erasure-keeper.ts',
      'await rounds.turn(turn, async () => {',
      'await Promise.resolve().then(() => {',
    ],
    ['test/runs/erasure-keeper.test.ts', 'keys that do not open delay no batch'],
  ],
  [
    97,
    ['src/runs/family-keeper.ts', '.catch(nothingOf))?.input ?? {};', ')?.input ?? {};'],
    ['test/runs/family-keeper.test.ts', 'whichever row of them does not open'],
  ],
  [
    97,
    ['src/runs/children.ts', 'if (!unreadableFor(error)) throw error;', 'throw error;'],
    ['test/runs/family-keeper.test.ts', 'of a child whose row does not open'],
  ],
];
