// Payload encryption (architecture §7): AES-256-GCM over the whole payload, metadata included, so that raw history
// shows neither content nor which payloads are carriers. The key ring's current key encrypts, every key decrypts: that is
// rotation. What belongs to a run of a subject is encrypted with that subject's key (architecture §10.1): the SDK says whose a
// payload is. What a worker needs to encrypt comes with what it decrypts: it asks the database only about runs and keys that it
// has not met, and no failure to encrypt ends it.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import proto from '@temporalio/proto';
import {
  ApplicationFailure,
  type DataConverter,
  type Payload,
  type PayloadCodec,
  type SerializationContext,
} from '@temporalio/common';
import type { HostKey, KeyRing } from '../../ports/keys.ts';
import type { SubjectKeys } from '../../ports/subjects.ts';
import { codeOf, HostError } from '../../rules/errors.ts';
import { isCohortId } from '../../rules/ids.ts';
import { Recent } from '../../system/recent.ts';

export const ENCRYPTED_ENCODING = 'binary/encrypted';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_FIELD = 'encryption-key-id';
const CIPHER_FIELD = 'encryption-cipher';
/** Marks what the operator's key encrypts although the run may have a subject: nothing of the run is concluded from it. */
const STAND_IN_FIELD = 'encryption-stand-in';
/** Set by failure-converter.cjs on the parts of a failure: which of them the payload is. */
const FAILURE_FIELD = 'openwop-failure';
const FAILURE_ATTRIBUTES = 'attributes';
/** Before the id of a subject's key, where that of a configured one stands else: none of those can have it. */
const SUBJECT_PREFIX = 'subject/';
const KEY_ID = /^[A-Za-z0-9._-]{1,64}$/;
const PayloadProto = proto.temporal.api.common.v1.Payload;
/** Runs of which it is remembered with which key they are encrypted: more than a worker has at work, and keeps in memory. */
const REMEMBERED_RUNS = 50_000;
const FAILURE_CONVERTER_PATH = fileURLToPath(new URL('./failure-converter.cjs', import.meta.url));

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array | null | undefined) =>
  bytes ? Buffer.from(bytes).toString('utf8') : '';

/**
 * Reads `OPENWOP_ENCRYPTION_KEYS`: `<id>:<base64 of 32 bytes>`, separated by commas, the newest first. Throws
 * HostError config_invalid whose `faults` name the position and never the key.
 */
export function parseEncryptionKeys(value: string): readonly HostKey[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  const keys = value.split(',').map((part, index): HostKey => {
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

/** The additional authenticated data: the key's id, and whether it stands in for another key. */
function namesOf(id: string, isStandIn: boolean): Uint8Array {
  return utf8.encode(isStandIn ? `${id} ${STAND_IN_FIELD}` : id);
}

function encrypt(payload: Payload, { id, key }: HostKey, isStandIn = false): Payload {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(namesOf(id, isStandIn));
  const sealed = [cipher.update(PayloadProto.encode(payload).finish()), cipher.final()];
  return {
    metadata: {
      encoding: utf8.encode(ENCRYPTED_ENCODING),
      [CIPHER_FIELD]: utf8.encode('AES-256-GCM'),
      [KEY_ID_FIELD]: utf8.encode(id),
      ...(isStandIn ? { [STAND_IN_FIELD]: utf8.encode('1') } : {}),
    },
    data: new Uint8Array(Buffer.concat([nonce, ...sealed, cipher.getAuthTag()])),
  };
}

function isEncrypted({ metadata }: Payload): boolean {
  return text(metadata?.encoding) === ENCRYPTED_ENCODING;
}

function isStandIn({ metadata }: Payload): boolean {
  return metadata?.[STAND_IN_FIELD] !== undefined;
}

function decrypt(payload: Payload, { id, key }: HostKey): Payload {
  const data = payload.data ?? new Uint8Array();
  if (data.length < NONCE_BYTES + TAG_BYTES)
    throw new HostError('history_undecodable', { reason: 'Payload too short.' });
  try {
    const nonce = data.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(namesOf(id, isStandIn(payload)));
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
  /** Without a current key nothing is encrypted. */
  readonly ring: KeyRing;
  /** Absent: there are no subjects, and what was encrypted for one cannot be read. */
  readonly subjects?: SubjectKeys | undefined;
}

/** In the place of what nobody may read any more: a run of an erased subject has ended, and what still comes is lost. */
const NOTHING: Payload = {
  metadata: { encoding: utf8.encode('binary/null') },
};

/** In the place of a part of a failure while its run's key is not to be had: its own words may be those of a subject. */
function standIn(part: Payload, error: unknown): Payload {
  if (text(part.metadata?.[FAILURE_FIELD]) !== FAILURE_ATTRIBUTES) return NOTHING;
  const message = `The message is withheld: it could not be encrypted (${codeOf(error) ?? 'internal_error'}).`;
  return {
    metadata: { encoding: utf8.encode('json/plain') },
    data: utf8.encode(JSON.stringify({ message, stack_trace: '' })),
  };
}

/** The id of the subject's key that encrypts a payload; null: none does. */
function subjectKeyOf({ metadata }: Payload): string | null {
  const id = text(metadata?.[KEY_ID_FIELD]);
  return id.startsWith(SUBJECT_PREFIX) ? id.slice(SUBJECT_PREFIX.length) : null;
}

class Encryption implements PayloadCodec {
  readonly #ring: KeyRing;
  readonly #subjects: SubjectKeys | undefined;
  /**
   * The subject's key of each run, null where it names no subject: what was decrypted of a run says it, so that a worker can
   * encrypt whatever it was given to do, also while the database is away.
   */
  readonly #keyIds = new Recent<string, string | null>(REMEMBERED_RUNS);

  constructor({ ring, subjects }: CodecKeys) {
    this.#ring = ring;
    this.#subjects = subjects;
  }

  /**
   * A failure is always encoded: the SDK's worker ends where even that throws. Everything else of a subject whose key is not
   * to be had throws HostError service_unavailable, key_unavailable or history_undecodable; of a run that this process has
   * not met and that is not there, run_not_found.
   */
  async encode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    if (this.#ring.keys.length === 0 || payloads.length === 0) return payloads;
    await this.#ring.announced();
    const host = this.#ring.current();
    if (!host) return payloads;
    const runId = context?.workflowId;
    try {
      const encrypter = await this.#encrypter(host, runId);
      if (encrypter === 'destroyed') return payloads.map(() => encrypt(NOTHING, host, true));
      return payloads.map((payload) => encrypt(payload, encrypter));
    } catch (error) {
      if (!payloads.every(({ metadata }) => metadata?.[FAILURE_FIELD])) throw error;
      return payloads.map((part) => encrypt(standIn(part, error), host, true));
    }
  }

  /** Throws HostError; of what an activity is given an ApplicationFailure that has its code as its type. */
  async decode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    if (!payloads.some(isEncrypted)) return payloads;
    try {
      const decoded: Payload[] = [];
      for (const payload of payloads)
        decoded.push(await this.#opened(payload, context?.workflowId));
      return decoded;
    } catch (error) {
      const code = codeOf(error);
      if (context?.type !== 'activity' || code === undefined) throw error;
      // The worker fails the step with it: whoever waits for the step knows an outage by its code.
      const { message } = error as Error;
      throw ApplicationFailure.create({ type: code, message, cause: error as Error });
    }
  }

  async #opened(payload: Payload, runId: string | undefined): Promise<Payload> {
    if (!isEncrypted(payload)) return payload;
    const opened = decrypt(payload, await this.#keyOf(payload));
    if (runId !== undefined && !isStandIn(payload)) this.#noteKey(runId, payload);
    return opened;
  }

  /** Of a payload that opened. A run has its subject from its start on: nothing that comes later takes it away. */
  #noteKey(runId: string, payload: Payload): void {
    const keyId = subjectKeyOf(payload);
    if (keyId !== null || !this.#keyIds.has(runId)) this.#keyIds.set(runId, keyId);
  }

  async #encrypter(host: HostKey, runId: string | undefined): Promise<HostKey | 'destroyed'> {
    // A cohort holds ids and counts, and takes no run of a subject.
    if (!this.#subjects || runId === undefined || isCohortId(runId)) return host;
    const keyId = this.#keyIds.get(runId);
    if (keyId === null) return host;
    const known = await (keyId === undefined
      ? this.#subjects.ofRun(runId)
      : this.#subjects.toSeal(keyId));
    if (!known) return host;
    if (known.kind === 'destroyed') return 'destroyed';
    return { id: `${SUBJECT_PREFIX}${known.keyId}`, key: known.key.history };
  }

  /** Throws HostError key_unavailable, history_undecodable, service_unavailable, and subject_erased: it is destroyed. */
  async #keyOf(payload: Payload): Promise<HostKey> {
    const id = text(payload.metadata?.[KEY_ID_FIELD]);
    const keyId = subjectKeyOf(payload);
    if (this.#subjects && keyId !== null) {
      const known = await this.#subjects.byId(keyId);
      if (known.kind === 'destroyed') throw new HostError('subject_erased', { keyId: known.keyId });
      return { id, key: known.key.history };
    }
    const key = this.#ring.keys.find((configured) => configured.id === id);
    if (!key)
      throw new HostError('key_unavailable', { reason: `No encryption key with the id "${id}".` });
    return key;
  }
}

/**
 * The codec for client, worker and history reader. Payloads from before encryption was switched on pass decoding as
 * they are; encrypted ones that do not open throw HostError. Without keys nothing is encrypted.
 */
export function createEncryption(keys: CodecKeys): PayloadCodec {
  return new Encryption(keys);
}

/**
 * For client, worker, bundle (its `failureConverterPath`) and replay alike. Without keys it encrypts nothing, and recognises what
 * it cannot read.
 */
export function dataConverter(keys: CodecKeys): DataConverter {
  const payloadCodecs = [createEncryption(keys)];
  if (keys.ring.keys.length === 0) return { payloadCodecs };
  return { failureConverterPath: FAILURE_CONVERTER_PATH, payloadCodecs };
}
