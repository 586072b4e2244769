// Mutants of the operator's keys and of payload encryption (architecture §11, I100, I101): rows of mutants.ts.
import type { Row } from './mutants.ts';

const RING = 'src/rules/key-ring.ts';
const KEEPER = 'src/adapters/postgres/key-keeper.ts';
const CODEC = 'src/adapters/temporal/codec.ts';
const STORE = 'src/adapters/postgres/subject-store.ts';
const KEYS = 'src/adapters/postgres/subject-keys.ts';
const OF_RING = 'test/rules/key-ring.test.ts';
const OF_KEEPER = 'test/adapters/key-keeper.test.ts';
const OF_CODEC = 'test/adapters/codec.test.ts';
const OF_WORKER = 'test/adapters/encrypting-worker.test.ts';
const OF_SUBJECTS = 'test/adapters/subjects.test.ts';

const MARKS = 'src/adapters/temporal/failure-converter.cjs';
const SECRETS = 'src/adapters/postgres/host-secrets.ts';
const OF_OUTAGES = 'test/activities/outages.test.ts';

export const OF_KEYS: readonly Row[] = [
  [100, [RING, 'isComplete || used.has(first)', 'used.has(first)'], [OF_RING, 'alone, and every']],
  [
    100,
    [RING, 'isKnown(first) && (isComplete', 'isKnown(first) || (isComplete'],
    [OF_RING, 'does not know it'],
  ],
  [100, [RING, 'return isInUse(first) ? first : ', 'return '], [OF_RING, 'it stays in use']],
  [100, [RING, 'uses === undefined || knows', 'knows'], [OF_RING, 'is not waited for']],
  [100, [RING, 'before.find(isInUse) ?? ', ''], [OF_RING, 'the one that is in use']],
  [100, [RING, 'isComplete && others.every(', 'others.every('], [OF_RING, 'is shared when']],
  [
    100,
    [KEEPER, 'this.#beat((seen) => this.#refuse(seen))', 'this.#beat()'],
    [OF_KEEPER, 'stands nowhere|of another process'],
  ],
  [
    100,
    [KEEPER, 'if (announced !== undefined)', 'if (announced === undefined && false)'],
    [OF_KEEPER, 'of another process'],
  ],
  [100, [KEEPER, 'if (this.#isAnnounced()) return;', 'return;'], [OF_KEEPER, 'looks again']],
  [100, [CODEC, 'await this.#ring.announced();', ''], [OF_CODEC, 'is asked before']],
  [100, [STORE, '!master || !ring.isShared()', '!master'], [OF_KEEPER, 'and not before']],
  [100, [SECRETS, ' AND NOT EXISTS (${LIVE} IS DISTINCT FROM $4)', ''], [OF_KEEPER, 'slept']],
  [
    101,
    [CODEC, 'if (!payloads.every((', 'if (payloads.length > 0 || !payloads.every(('],
    [OF_WORKER, 'cannot read a step'],
  ],
  [
    101,
    [CODEC, ': this.#subjects.toSeal(keyId));', ': this.#subjects.byId(keyId));'],
    [OF_WORKER, 'of anna'],
  ],
  [101, [CODEC, 'if (keyId === null) return host;', ''], [OF_CODEC, 'with the database away']],
  [101, [CODEC, ' && !isStandIn(payload)', ''], [OF_CODEC, 'is always encoded']],
  [
    101,
    [
      CODEC,
      'if (!isEncrypted(payload)) return payload;',
      'if (!isEncrypted(payload)) return (this.#noteKey(runId ?? "", payload), payload);',
    ],
    [OF_CODEC, 'says nothing of whose run'],
  ],
  [
    101,
    [CODEC, 'keyId !== null || !this', 'keyId === null || !this'],
    [OF_CODEC, 'nothing takes a subject away'],
  ],
  [101, [MARKS, '  markParts(failure.cause);\n', ''], [OF_CODEC, 'is always encoded']],
  [
    101,
    [MARKS, "  mark(failure.canceledFailureInfo?.details?.payloads, 'details');\n", ''],
    [OF_CODEC, 'is always encoded'],
  ],
  [
    101,
    [MARKS, "  mark(failure.timeoutFailureInfo?.lastHeartbeatDetails?.payloads, 'details');\n", ''],
    [OF_CODEC, 'is always encoded'],
  ],
  [
    101,
    [KEYS, 'this.#keys.get(keyId)?.known ?? this.byId(keyId)', 'this.byId(keyId)'],
    [OF_SUBJECTS, 'asks nobody'],
  ],
  [
    85,
    [KEYS, 'of destroyed) this.forget(keyId);', 'of destroyed) void keyId;'],
    [OF_SUBJECTS, 'asks nobody'],
  ],
  [
    98,
    [
      'activities/tries.ts',
      'return begun - failures - outages;',
      'return Context.current().info.attempt - 1 - failures - outages;',
    ],
    [OF_OUTAGES, 'did not begin'],
  ],
  [
    98,
    [
      'src/rules/errors.ts',
      "    isOutage: true,\n    message: 'This process does not",
      "    message: 'This process does not",
    ],
    [OF_OUTAGES, 'key_unavailable'],
  ],
];
