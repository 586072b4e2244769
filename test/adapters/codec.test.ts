// Payload encryption (architecture §7), pure: what goes in, what can be read, what comes back.
import { randomBytes } from 'node:crypto';
import {
  ApplicationFailure,
  CancelledFailure,
  defaultPayloadConverter,
  TimeoutFailure,
  type Payload,
} from '@temporalio/common';
import {
  decodeOptionalFailureToOptionalError,
  encodeErrorToFailure,
  loadDataConverter,
} from '@temporalio/common/lib/internal-non-workflow/index.js';
import { describe, expect, test } from 'vitest';
import {
  createEncryption,
  dataConverter,
  ENCRYPTED_ENCODING,
  parseEncryptionKeys,
} from '../../src/adapters/temporal/codec.ts';
import type { KnownKey, SubjectKeys } from '../../src/ports/subjects.ts';
import { codeOf, HostError } from '../../src/rules/errors.ts';
import { CARRIER_METADATA_KEY } from '../../src/rules/journal.ts';
import { newSecret, sealingKey } from '../../src/system/sealing.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { codeThrownBy } from '../support/code-thrown.ts';

const oldKey = { id: 'k1', key: randomBytes(32) };
const newKey = { id: 'k2', key: randomBytes(32) };
const SECRET = 'the quick brown secret';

function payload(value: unknown) {
  const plain = defaultPayloadConverter.toPayload(value);
  return {
    ...plain,
    metadata: { ...plain?.metadata, [CARRIER_METADATA_KEY]: new Uint8Array([49]) },
  };
}

describe('architecture §7: AES-256-GCM over the whole payload', () => {
  test('a payload comes back with content and metadata, and neither is readable in between', async () => {
    const codec = createEncryption({ ring: ringOf([oldKey]) });
    const plain = payload({ text: SECRET });
    const [sealed] = await codec.encode([plain]);
    const readable = Buffer.concat([
      ...Object.values(sealed?.metadata ?? {}),
      sealed?.data ?? new Uint8Array(),
    ]).toString('latin1');
    expect(readable).not.toContain('secret');
    expect(Object.keys(sealed?.metadata ?? {}).sort()).toEqual([
      'encoding',
      'encryption-cipher',
      'encryption-key-id',
    ]);
    const [opened] = await codec.decode([sealed ?? {}]);
    expect(defaultPayloadConverter.fromPayload(opened ?? {})).toEqual({ text: SECRET });
    expect(Buffer.from(opened?.metadata?.[CARRIER_METADATA_KEY] ?? []).toString()).toBe('1');
  });

  test('the same payload never looks the same twice', async () => {
    const codec = createEncryption({ ring: ringOf([oldKey]) });
    const [one, two] = await codec.encode([payload(1), payload(1)]);
    expect(Buffer.from(one?.data ?? []).equals(Buffer.from(two?.data ?? []))).toBe(false);
  });

  test('rotation: the first key encrypts, every key decrypts, and a plain payload from before passes', async () => {
    const before = await createEncryption({ ring: ringOf([oldKey]) }).encode([payload('a')]);
    const rotated = createEncryption({ ring: ringOf([newKey, oldKey]) });
    const after = await rotated.encode([payload('b')]);
    expect(Buffer.from(after[0]?.metadata?.['encryption-key-id'] ?? []).toString()).toBe('k2');
    const opened = await rotated.decode([...before, ...after, payload('c')]);
    expect(opened.map((each) => defaultPayloadConverter.fromPayload(each))).toEqual([
      'a',
      'b',
      'c',
    ]);
  });

  test.each([
    ['the same id with another key', [{ ...oldKey, key: randomBytes(32) }], 'history_undecodable'],
    ['an unknown id', [newKey], 'key_unavailable'],
    ['no key at all', [], 'key_unavailable'],
  ])('%s does not open it', async (_name, keys, code) => {
    const sealed = await createEncryption({ ring: ringOf([oldKey]) }).encode([payload('a')]);
    expect(await codeThrownBy(createEncryption({ ring: ringOf(keys) }).decode(sealed))).toBe(code);
  });

  // [I100]
  test('which key encrypts is asked before each time: a process may have slept', async () => {
    const keys = [oldKey, newKey];
    let current = oldKey;
    const announced = async () => void (current = newKey);
    const ring = { ...ringOf(keys), current: () => current, announced };
    const [sealed] = await createEncryption({ ring }).encode([payload('a')]);
    expect(Buffer.from(sealed?.metadata?.['encryption-key-id'] ?? []).toString()).toBe('k2');
  });

  // [I49]
  test('every tampered byte, a cut payload and a swapped key id: history_undecodable', async () => {
    const codec = createEncryption({ ring: ringOf([oldKey, { ...newKey, key: oldKey.key }]) });
    const [sealed] = await codec.encode([payload('abc')]);
    const data = sealed?.data ?? new Uint8Array();
    for (let at = 0; at < data.length; at++) {
      const bent = new Uint8Array(data);
      bent[at] = (bent[at] ?? 0) ^ 1;
      expect(await codeThrownBy(codec.decode([{ ...sealed, data: bent }])), `byte ${at}`).toBe(
        'history_undecodable',
      );
    }
    for (const length of [0, 27, data.length - 1]) {
      expect(await codeThrownBy(codec.decode([{ ...sealed, data: data.slice(0, length) }]))).toBe(
        'history_undecodable',
      );
    }
    const renamed = {
      ...sealed,
      metadata: { ...sealed?.metadata, 'encryption-key-id': Buffer.from('k2') },
    };
    expect(await codeThrownBy(codec.decode([renamed]))).toBe('history_undecodable');
  });

  test('without keys nothing is changed, and no failure is converted otherwise', async () => {
    const plain = payload('a');
    expect(await createEncryption({ ring: ringOf([]) }).encode([plain])).toEqual([plain]);
    expect(Object.keys(dataConverter({ ring: ringOf([]) }))).toEqual(['payloadCodecs']);
    expect(ENCRYPTED_ENCODING).toBe('binary/encrypted');
  });
});

const RUN = { type: 'workflow', namespace: 'default', workflowId: 'run-1' } as const;
const AWAY = new HostError('service_unavailable');
/** A subject with one run, whose database is there, or not. */
function subjectOf(runId: string) {
  const key = sealingKey(newSecret());
  const alive = { kind: 'alive', keyId: 'sk-1', key, mayOpen: () => true } as const;
  let now: KnownKey = alive;
  const state = { isAway: false, asked: 0 };
  const answer = async <Known>(known: Known): Promise<Known> => {
    state.asked++;
    if (state.isAway) throw AWAY;
    return known;
  };
  const subjects: SubjectKeys = {
    ofRun: (asked) => answer(asked === runId ? now : undefined),
    toSeal: async () => now,
    byId: () => answer(now),
    byIds: async (keyIds) => new Map(keyIds.map((keyId) => [keyId, now])),
  };
  const destroy = () => (now = { kind: 'destroyed', keyId: 'sk-1', atMs: 1 });
  return { state, subjects, destroy };
}
const keyIdOf = (sealed: Payload | undefined) =>
  Buffer.from(sealed?.metadata?.['encryption-key-id'] ?? []).toString();

describe('what a worker needs to encrypt comes with what it decrypts', () => {
  const ring = ringOf([oldKey]);

  /** What a run is started with, by who asked the database. */
  async function given(subjects?: SubjectKeys): Promise<Payload[]> {
    return createEncryption({ ring, subjects }).encode([payload('given')], RUN);
  }

  // [I101]
  test('of a run with a subject and of one without, with the database away', async () => {
    for (const [runId, keyId] of [
      [RUN.workflowId, 'subject/sk-1'],
      ['another', 'k1'],
    ] as const) {
      const { state, subjects } = subjectOf(runId);
      const task = await given(subjects);
      const worker = createEncryption({ ring, subjects });
      await worker.decode(task, RUN);
      Object.assign(state, { isAway: true, asked: 0 });
      expect(keyIdOf((await worker.encode([payload('result')], RUN))[0])).toBe(keyId);
      expect(state.asked).toBe(0);
    }
  });

  test('what is not encrypted says nothing of whose run it is', async () => {
    const { subjects } = subjectOf(RUN.workflowId);
    const erased = subjectOf(RUN.workflowId);
    erased.destroy();
    const standIns = await given(erased.subjects);
    const worker = createEncryption({ ring, subjects });
    await worker.decode([payload('plain'), ...standIns], RUN);
    expect(keyIdOf((await worker.encode([payload('result')], RUN))[0])).toBe('subject/sk-1');
  });

  test('what cannot be decoded of a step fails it with its code: whoever waits for it knows an outage', async () => {
    const { state, subjects } = subjectOf(RUN.workflowId);
    const task = await given(subjects);
    state.isAway = true;
    const worker = createEncryption({ ring, subjects });
    const activity = { ...RUN, type: 'activity', isLocal: false, activityId: '1' } as const;
    await expect(worker.decode(task, activity)).rejects.toMatchObject({
      name: 'ApplicationFailure',
      ...{ type: 'service_unavailable', nonRetryable: false },
    });
  });

  test('what was not met yet is asked for, and what cannot be asked for is not encrypted by another key', async () => {
    const { state, subjects } = subjectOf(RUN.workflowId);
    const worker = createEncryption({ ring, subjects });
    expect(keyIdOf((await worker.encode([payload('a')], RUN))[0])).toBe('subject/sk-1');
    state.isAway = true;
    expect(await codeThrownBy(worker.encode([payload('a')], RUN))).toBe('service_unavailable');
  });

  // [I101]
  test('a failure is always encoded, and says nothing of the run where its key is not to be had', async () => {
    const { state, subjects } = subjectOf(RUN.workflowId);
    const task = await given(subjects);
    state.isAway = true;
    const converter = dataConverter({ ring, subjects });
    const loaded = {
      ...loadDataConverter(converter),
      payloadCodecs: converter.payloadCodecs ?? [],
    };
    const cause = ApplicationFailure.create({ message: SECRET, details: [SECRET, 1] });
    const error = ApplicationFailure.create({
      type: 'x',
      message: SECRET,
      details: [SECRET],
      cause,
    });
    const [codec] = loaded.payloadCodecs;
    expect(await codeThrownBy(codec?.decode(task, RUN) ?? Promise.resolve())).toBe(
      'service_unavailable',
    );
    const failure = await encodeErrorToFailure(loaded, error, RUN);
    expect(keyIdOf(failure.encodedAttributes ?? undefined)).toBe('k1');
    const read = await decodeOptionalFailureToOptionalError(loaded, failure, RUN);
    expect(read).toMatchObject({
      type: 'x',
      message: 'The message is withheld: it could not be encrypted (service_unavailable).',
      details: [undefined],
      cause: { details: [undefined, undefined] },
    });
    // Also one that was read and is given on, with what others made of it.
    const timedOut = new TimeoutFailure('late', [SECRET], 'HEARTBEAT');
    timedOut.failure = {
      message: 'late',
      timeoutFailureInfo: { lastHeartbeatDetails: { payloads: [payload(SECRET)] } },
      cause: { canceledFailureInfo: { details: { payloads: [payload(SECRET)] } } },
    };
    const wrapping = ApplicationFailure.create({ message: 'w', cause: read });
    for (const later of [timedOut, read, wrapping, new CancelledFailure('c', [SECRET])]) {
      const encoded = await encodeErrorToFailure(loaded, later, RUN);
      expect(encoded.encodedAttributes?.metadata).toHaveProperty('encryption-stand-in');
    }
    // What stands in says nothing of whose run it is.
    state.isAway = false;
    expect(keyIdOf((await codec?.encode([payload('later')], RUN))?.[0])).toBe('subject/sk-1');
    const told = await encodeErrorToFailure(loaded, error, RUN);
    expect(keyIdOf(told.encodedAttributes ?? undefined)).toBe('subject/sk-1');
    expect(await decodeOptionalFailureToOptionalError(loaded, told, RUN)).toMatchObject({
      message: SECRET,
      details: [SECRET],
    });
  });

  test('nothing takes a subject away from a run', async () => {
    const { state, subjects } = subjectOf(RUN.workflowId);
    const worker = createEncryption({ ring, subjects });
    await worker.decode(await given(subjects), RUN);
    await worker.decode(await given(), RUN);
    await worker.decode([payload('plain')], RUN);
    state.isAway = true;
    expect(keyIdOf((await worker.encode([payload('result')], RUN))[0])).toBe('subject/sk-1');
  });

  test('what does not open says nothing either', async () => {
    const { state, subjects } = subjectOf(RUN.workflowId);
    const worker = createEncryption({ ring, subjects });
    const [sealed] = await given();
    const renamed = {
      ...sealed,
      metadata: { ...sealed?.metadata, 'encryption-stand-in': Buffer.from('1') },
    };
    expect(await codeThrownBy(worker.decode([renamed], RUN))).toBe('history_undecodable');
    state.isAway = true;
    expect(await codeThrownBy(worker.encode([payload('a')], RUN))).toBe('service_unavailable');
  });

  test('of a run whose subject is erased nothing more is kept', async () => {
    const { subjects, destroy } = subjectOf(RUN.workflowId);
    const worker = createEncryption({ ring, subjects });
    await worker.decode(await given(subjects), RUN);
    destroy();
    const [sealed] = await worker.encode([payload(SECRET)], RUN);
    expect(keyIdOf(sealed)).toBe('k1');
    const [opened] = await worker.decode([sealed ?? {}], RUN);
    expect(defaultPayloadConverter.fromPayload(opened ?? {})).toBeUndefined();
  });
});

describe('OPENWOP_ENCRYPTION_KEYS', () => {
  const good = randomBytes(32).toString('base64');

  test('keeps the order: the first key encrypts', () => {
    const keys = parseEncryptionKeys(`2027:${good}, 2026:${good}`);
    expect(keys.map(({ id }) => id)).toEqual(['2027', '2026']);
    expect(keys[0]?.key.length).toBe(32);
  });

  test.each([
    ['', 'key 1'],
    ['k1', 'key 1'],
    [`:${good}`, 'key 1'],
    [`k 1:${good}`, 'key 1'],
    [`k1:${good.slice(4)}`, 'key 1'],
    [`k1:${good},k1:${good}`, 'key 2'],
    [`k1:${good},`, 'key 2'],
  ])('%j is config_invalid, naming the position and never the key', (text, position) => {
    try {
      parseEncryptionKeys(text);
      expect.unreachable();
    } catch (error) {
      expect(codeOf(error)).toBe('config_invalid');
      expect((error as Error).message).toContain(position);
      expect((error as Error).message).not.toContain(good.slice(4, 20));
    }
  });
});
