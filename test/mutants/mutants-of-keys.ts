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

export const OF_KEYS: readonly Row[] = [
  [
    100,
    [RING, '(isKnown && (isComplete || used.has(first)))', 'used.has(first)'],
    [OF_RING, 'alone, and every'],
  ],
  [100, [RING, 'isKnown && (isComplete', 'isKnown || (isComplete'], [OF_RING, 'does not know it']],
  [100, [RING, 'if (isInUse || ', 'if ('], [OF_RING, 'it stays in use']],
  [100, [RING, 'isComplete && others.every(', 'others.every('], [OF_RING, 'is shared when']],
  [
    100,
    [KEEPER, 'await this.#beat(refusal);', 'await this.#beat(() => undefined);'],
    [OF_KEEPER, 'is refused'],
  ],
  [100, [STORE, '!master || !ring.isShared()', '!master'], [OF_KEEPER, 'and not before']],
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
  [101, [CODEC, 'if (isStandIn(payload)) return;', ''], [OF_CODEC, 'is always encoded']],
  [
    101,
    [CODEC, 'keyId !== null || !this', 'keyId === null || !this'],
    [OF_CODEC, 'nothing takes a subject away'],
  ],
  [
    101,
    [KEYS, 'this.#keys.get(keyId)?.known ?? this.byId(keyId)', 'this.byId(keyId)'],
    [OF_SUBJECTS, 'asks nobody'],
  ],
];
