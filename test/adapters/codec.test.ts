// Payload encryption (architecture §7), pure: what goes in, what can be read, what comes back.
import { randomBytes } from 'node:crypto';
import { defaultPayloadConverter } from '@temporalio/common';
import { describe, expect, test } from 'vitest';
import {
  createEncryption,
  dataConverter,
  ENCRYPTED_ENCODING,
  parseEncryptionKeys,
} from '../../src/adapters/temporal/codec.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { CARRIER_METADATA_KEY } from '../../src/rules/journal.ts';

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

async function codeThrownBy(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => 'nothing thrown',
    (error: unknown) => codeOf(error),
  );
}

describe('architecture §7: AES-256-GCM over the whole payload', () => {
  test('a payload comes back with content and metadata, and neither is readable in between', async () => {
    const codec = createEncryption([oldKey]);
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
    const codec = createEncryption([oldKey]);
    const [one, two] = await codec.encode([payload(1), payload(1)]);
    expect(Buffer.from(one?.data ?? []).equals(Buffer.from(two?.data ?? []))).toBe(false);
  });

  test('rotation: the first key encrypts, every key decrypts, and a plain payload from before passes', async () => {
    const before = await createEncryption([oldKey]).encode([payload('a')]);
    const rotated = createEncryption([newKey, oldKey]);
    const after = await rotated.encode([payload('b')]);
    expect(Buffer.from(after[0]?.metadata?.['encryption-key-id'] ?? []).toString()).toBe('k2');
    const opened = await rotated.decode([...before, ...after, payload('c')]);
    expect(opened.map((each) => defaultPayloadConverter.fromPayload(each))).toEqual([
      'a',
      'b',
      'c',
    ]);
  });

  test('the same id with another key, an unknown id, no key at all: history_undecodable', async () => {
    const sealed = await createEncryption([oldKey]).encode([payload('a')]);
    for (const keys of [[{ ...oldKey, key: randomBytes(32) }], [newKey], []]) {
      expect(await codeThrownBy(createEncryption(keys).decode(sealed))).toBe('history_undecodable');
    }
  });

  // [I49]
  test('every tampered byte, a cut payload and a swapped key id: history_undecodable', async () => {
    const codec = createEncryption([oldKey, { ...newKey, key: oldKey.key }]);
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

  test('without keys nothing is changed and no converter is set', async () => {
    const plain = payload('a');
    expect(await createEncryption([]).encode([plain])).toEqual([plain]);
    expect(dataConverter({ encryptionKeys: [] })).toEqual({});
    expect(ENCRYPTED_ENCODING).toBe('binary/encrypted');
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
