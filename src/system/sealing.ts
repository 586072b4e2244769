// Sealing at rest (architecture §10.1): AES-256-GCM whose nonce is a keyed hash of place and content, so that the same thing
// sealed again in the same place is the same bytes, and a rebuilt log equals the one before. Place is bound in: a sealed
// text opens where it was sealed, and nowhere else.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

interface RestKeys {
  readonly rest: Uint8Array;
  readonly nonces: Uint8Array;
}

export function newSecret(): Uint8Array {
  return new Uint8Array(randomBytes(SECRET_BYTES));
}

function derived(secret: Uint8Array, use: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', `openwop-temporal ${use}`, SECRET_BYTES));
}

/** One secret, a key for each use. */
export function sealingKey(secret: Uint8Array) {
  return {
    history: derived(secret, 'history'),
    rest: derived(secret, 'rest'),
    nonces: derived(secret, 'nonces'),
    digests: derived(secret, 'digests'),
  };
}

function sealedWith(key: Uint8Array, nonce: Uint8Array, { place, bytes }: Sealable): Uint8Array {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(place));
  const parts = [nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()];
  return new Uint8Array(Buffer.concat(parts));
}

interface Sealable {
  /** Where it stands: bound in. */
  readonly place: string;
  readonly bytes: Uint8Array;
}

/** Deterministic. */
export function seal({ rest, nonces }: RestKeys, what: Sealable): Uint8Array {
  const nonce = createHmac('sha256', nonces)
    .update(`${Buffer.byteLength(what.place)}:${what.place}`)
    .update(what.bytes)
    .digest()
    .subarray(0, NONCE_BYTES);
  return sealedWith(rest, nonce, what);
}

/** Undefined: not sealed with this key in this place, or changed since. */
export function unseal(key: Uint8Array, { place, bytes }: Sealable): Uint8Array | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(place));
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
    const opened = decipher.update(bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES));
    return new Uint8Array(Buffer.concat([opened, decipher.final()]));
  } catch {
    return undefined;
  }
}

/** A secret under a master key, with a fresh nonce. */
export function wrap(master: Uint8Array, what: Sealable): Uint8Array {
  return sealedWith(master, new Uint8Array(randomBytes(NONCE_BYTES)), what);
}

/** Hex. Nobody without the key can try what it is the digest of. */
export function keyedDigest(key: Uint8Array, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex');
}

/** Tells keys apart, and nothing of any of them. */
export function fingerprint(key: Uint8Array): string {
  return keyedDigest(key, 'openwop-temporal fingerprint').slice(0, 16);
}
