// Payload encryption (architecture §7): AES-256-GCM over the whole payload, metadata included, so that raw history
// shows neither content nor which payloads are carriers. The first key encrypts, every key decrypts: that is rotation. What
// belongs to a run of a subject is encrypted with that subject's key (architecture §10.1): the SDK says whose a payload is.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import proto from '@temporalio/proto';
import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common';
import type { SubjectKeys } from '../../ports/subjects.ts';
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
/** Before the id of a subject's key, where that of a configured one stands else: none of those can have it. */
const SUBJECT_PREFIX = 'subject/';
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

function decrypt(payload: Payload, { id, key }: EncryptionKey): Payload {
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

/** What a codec knows keys from. */
export interface CodecKeys {
  /** First one encrypts, all decrypt; none: no encryption. */
  readonly encryptionKeys: readonly EncryptionKey[];
  /** Absent: there are no subjects, and what was encrypted for one cannot be read. */
  readonly subjects?: SubjectKeys | undefined;
}

/** In the place of what nobody may read any more: a run of an erased subject has ended, and what still comes is lost. */
const NOTHING: Payload = {
  metadata: { encoding: utf8.encode('binary/null') },
};

/** Of the run that the payload is of: its subject's, else the first of the host's. */
async function encrypter(
  { subjects }: CodecKeys,
  first: EncryptionKey,
  runId: string | undefined,
): Promise<(payload: Payload) => Payload> {
  const known = runId === undefined ? undefined : await subjects?.ofRun(runId);
  if (!known) return (payload) => encrypt(payload, first);
  if (known.kind === 'destroyed') return () => encrypt(NOTHING, first);
  const key = { id: `${SUBJECT_PREFIX}${known.keyId}`, key: known.key.history };
  return (payload) => encrypt(payload, key);
}

/** Throws HostError history_undecodable, and subject_erased: its key is destroyed. */
async function keyOf(payload: Payload, { encryptionKeys, subjects }: CodecKeys) {
  const id = text(payload.metadata?.[KEY_ID_FIELD]);
  if (subjects && id.startsWith(SUBJECT_PREFIX)) {
    const known = await subjects.byId(id.slice(SUBJECT_PREFIX.length));
    if (known.kind === 'destroyed') throw new HostError('subject_erased', { keyId: known.keyId });
    return { id, key: known.key.history };
  }
  const key = encryptionKeys.find((configured) => configured.id === id);
  if (!key)
    throw new HostError('history_undecodable', {
      reason: `No encryption key with the id "${id}".`,
    });
  return key;
}

/**
 * The codec for client, worker and history reader. Payloads from before encryption was switched on pass decoding as
 * they are; encrypted ones without their key throw HostError history_undecodable. Without keys nothing is encrypted.
 */
export function createEncryption(
  encryptionKeys: readonly EncryptionKey[],
  subjects?: SubjectKeys,
): PayloadCodec {
  const [first] = encryptionKeys;
  const keys = { encryptionKeys, subjects };
  return {
    async encode(payloads, context) {
      if (!first || payloads.length === 0) return payloads;
      return payloads.map(await encrypter(keys, first, context?.workflowId));
    },
    async decode(payloads) {
      const decoded: Payload[] = [];
      for (const payload of payloads) {
        const isEncrypted = text(payload.metadata?.encoding) === ENCRYPTED_ENCODING;
        decoded.push(isEncrypted ? decrypt(payload, await keyOf(payload, keys)) : payload);
      }
      return decoded;
    },
  };
}

/** For client, worker, bundle (its `failureConverterPath`) and replay alike. Without keys: the SDK's own. */
export function dataConverter(keys: CodecKeys): DataConverter {
  if (keys.encryptionKeys.length === 0) return {};
  return {
    failureConverterPath: FAILURE_CONVERTER_PATH,
    payloadCodecs: [createEncryption(keys.encryptionKeys, keys.subjects)],
  };
}
