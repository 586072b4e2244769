// Payload encryption (architecture §7): AES-256-GCM over the whole payload, metadata included, so that raw history
// shows neither content nor which payloads are carriers. The first key encrypts, every key decrypts: that is rotation.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import proto from '@temporalio/proto';
import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common';
import { HostError } from '../../rules/errors.ts';

export interface EncryptionKey {
  /** Stands readable beside every payload; never derived from the key. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

export const ENCRYPTED_ENCODING = 'binary/encrypted';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_FIELD = 'encryption-key-id';
const CIPHER_FIELD = 'encryption-cipher';
const KEY_ID = /^[A-Za-z0-9._-]{1,64}$/;
const PayloadProto = proto.temporal.api.common.v1.Payload;
const FAILURE_CONVERTER_PATH = fileURLToPath(new URL('./failure-converter.cjs', import.meta.url));

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array | null | undefined) =>
  bytes ? Buffer.from(bytes).toString('utf8') : '';

/**
 * Reads `OPENWOP_ENCRYPTION_KEYS`: `<id>:<base64 of 32 bytes>`, separated by commas, the encrypting key first. Throws
 * HostError config_invalid whose `faults` name the position and never the key.
 */
export function parseEncryptionKeys(value: string): readonly EncryptionKey[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  const keys = value.split(',').map((part, index): EncryptionKey => {
    const [id = '', encoded = ''] = part.trim().split(':');
    const key = Buffer.from(encoded, 'base64');
    const at = `key ${index + 1}`;
    if (!KEY_ID.test(id)) faults.push(`${at}: the id must be 1 to 64 of A-Z a-z 0-9 . _ -`);
    if (seen.has(id)) faults.push(`${at}: the id ${id} occurs twice`);
    if (key.length !== KEY_BYTES)
      faults.push(`${at}: expected <id>:<base64 of ${KEY_BYTES} bytes>`);
    seen.add(id);
    return { id, key };
  });
  if (faults.length > 0)
    throw new HostError('config_invalid', { reason: faults.join('; '), faults });
  return keys;
}

function encrypt(payload: Payload, { id, key }: EncryptionKey): Payload {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(utf8.encode(id));
  const sealed = [cipher.update(PayloadProto.encode(payload).finish()), cipher.final()];
  return {
    metadata: {
      encoding: utf8.encode(ENCRYPTED_ENCODING),
      [CIPHER_FIELD]: utf8.encode('AES-256-GCM'),
      [KEY_ID_FIELD]: utf8.encode(id),
    },
    data: new Uint8Array(Buffer.concat([nonce, ...sealed, cipher.getAuthTag()])),
  };
}

function decrypt(payload: Payload, keys: ReadonlyMap<string, Uint8Array>): Payload {
  const id = text(payload.metadata?.[KEY_ID_FIELD]);
  const key = keys.get(id);
  if (!key)
    throw new HostError('history_undecodable', {
      reason: `No encryption key with the id "${id}".`,
    });
  const data = payload.data ?? new Uint8Array();
  if (data.length < NONCE_BYTES + TAG_BYTES)
    throw new HostError('history_undecodable', { reason: 'Payload too short.' });
  try {
    const nonce = data.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(utf8.encode(id));
    decipher.setAuthTag(data.subarray(data.length - TAG_BYTES));
    const opened = [
      decipher.update(data.subarray(NONCE_BYTES, data.length - TAG_BYTES)),
      decipher.final(),
    ];
    const { metadata, data: content } = PayloadProto.decode(new Uint8Array(Buffer.concat(opened)));
    return { metadata, data: content };
  } catch (error) {
    throw new HostError(
      'history_undecodable',
      { reason: `Payload does not open with key "${id}".` },
      error,
    );
  }
}

/**
 * The codec for client, worker and history reader. Payloads from before encryption was switched on pass decoding as
 * they are; encrypted ones without their key throw HostError history_undecodable. Without keys nothing is encrypted.
 */
export function createEncryption(keys: readonly EncryptionKey[]): PayloadCodec {
  const [first] = keys;
  const byId = new Map(keys.map(({ id, key }) => [id, key]));
  return {
    encode: async (payloads) =>
      first ? payloads.map((payload) => encrypt(payload, first)) : payloads,
    decode: async (payloads) =>
      payloads.map((payload) =>
        text(payload.metadata?.encoding) === ENCRYPTED_ENCODING ? decrypt(payload, byId) : payload,
      ),
  };
}

/** For client, worker, bundle (its `failureConverterPath`) and replay alike. Without keys: the SDK's own. */
export function dataConverter({
  encryptionKeys,
}: {
  encryptionKeys: readonly EncryptionKey[];
}): DataConverter {
  if (encryptionKeys.length === 0) return {};
  return {
    failureConverterPath: FAILURE_CONVERTER_PATH,
    payloadCodecs: [createEncryption(encryptionKeys)],
  };
}
