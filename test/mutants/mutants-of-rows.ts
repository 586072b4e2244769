// Mutants of sessions, and of what stays one row's own affair (architecture §11, I67, I97): rows of mutants.ts.
import type { Row } from './mutants.ts';

const SEALS = 'src/adapters/postgres/seals.ts';
const SESSIONS = 'src/adapters/postgres/session-store.ts';
const LISTS = 'src/adapters/postgres/run-lists.ts';
const COHORTS = 'src/adapters/postgres/cohort-store.ts';
const FEED = 'src/adapters/postgres/feed-store.ts';
const RUNS = 'src/adapters/postgres/run-store.ts';
const CONVERSATION = 'src/log/conversation.ts';
const ROUNDS = 'src/log/rounds.ts';
const EXPIRER = 'src/log/expirer.ts';
const REAPER = 'src/runs/reaper.ts';
const OF_KEYS = 'test/adapters/lost-keys.test.ts';
const OF_STORES = 'test/adapters/postgres-stores.test.ts';
const OF_ROUNDS = 'test/log/rounds.test.ts';
const OF_EXPIRY = 'test/log/expirer.test.ts';
const OF_REAPER = 'test/runs/reaper.test.ts';

export const OF_ROWS: readonly Row[] = [
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
    [SEALS, 'await keys.byId(parts.keyId).catch(faultOfKey)', 'await keys.byId(parts.keyId)'],
    [OF_KEYS, 'lists of runs tell the others'],
  ],
  [
    97,
    [SEALS, "codeOf(error) === 'history_undecodable') return error", 'false) return error'],
    [OF_KEYS, 'sessions are told'],
  ],
  [
    97,
    [SEALS, "throw new HostError('history_undecodable', { reason }, error);", 'throw error;'],
    [OF_KEYS, 'a row that is damaged is named'],
  ],
  [
    97,
    [LISTS, '...toldOr({ summary: NOTHING_YET }, () => ({', '...(() => ({'],
    [OF_KEYS, 'lists of runs tell the others'],
  ],
  [97, [COHORTS, 'unreadable.push(record.run_id);', ''], [OF_KEYS, 'no cohort has it']],
  [
    97,
    [
      FEED,
      "if ('unreadable' in one) return { rows, unread: one };",
      "if ('unreadable' in one) continue;",
    ],
    [OF_KEYS, 'what is told in order is told up to it'],
  ],
  [
    97,
    [FEED, 'readTo: read.unread.position - 1 };', 'readTo: read.unread.position };'],
    [OF_KEYS, 'a conversation is told as far as it can be'],
  ],
  [
    97,
    [CONVERSATION, 'if (unread) return { unread };', ''],
    [OF_KEYS, 'a conversation is told as far as it can be'],
  ],
  [
    97,
    [
      RUNS,
      'AND (created_at_ms, run_id) > ($3::bigint, $4::text)',
      'AND ($3::bigint, $4::text) IS NOT NULL',
    ],
    [OF_REAPER, 'a whole round of rows that cannot be read'],
  ],
  [
    97,
    [ROUNDS, '&& !(await this.#isThere())', ''],
    [OF_ROUNDS, 'ends the round only where nobody answers at all'],
  ],
  [
    97,
    [ROUNDS, 'if (!this.#told.has(name))', 'if (this.#told.has(name))'],
    [OF_ROUNDS, 'that fails is named'],
  ],
  [
    97,
    [EXPIRER, 'isWhole &&= kind === ', "if (kind !== 'done') return false; isWhole &&= kind === "],
    [OF_EXPIRY, 'each part of a round has its turn'],
  ],
  [
    97,
    [REAPER, "['service_unavailable', 'history_undecodable']", "['service_unavailable']"],
    [OF_REAPER, 'a key that is not to be had fails none'],
  ],
  [
    97,
    ['src/log/followers.ts', 'if (this.#last === last) this.#last = undefined;', ''],
    ['test/log/projector.test.ts', 'a read that failed fails who shared it'],
  ],
];
