// What both content stores hold to (architecture §2.6): values are named by the hash of their bytes, and bounded.
import { createHash } from 'node:crypto';
import { HostError } from '../../rules/errors.ts';

const CONTENT_LIMIT_BYTES = 64 * 1024 * 1024;
const HASH = /^sha256:[0-9a-f]{64}$/;

export function hashOfBytes(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Throws HostError payload_too_large above 64 MiB. */
export function checkedHash(bytes: Uint8Array): string {
  if (bytes.byteLength > CONTENT_LIMIT_BYTES) {
    throw new HostError('payload_too_large', {
      bytes: bytes.byteLength,
      limit: CONTENT_LIMIT_BYTES,
    });
  }
  return hashOfBytes(bytes);
}

/** Nothing that is not a hash becomes part of a path or a statement. */
export function requireHash(hash: string): void {
  if (!HASH.test(hash))
    throw new HostError('content_missing', { reason: 'That is not a content hash.' });
}

/** The bytes as stored, if they are what was put. Throws HostError content_missing. */
export function verified(hash: string, bytes: Uint8Array | undefined): Uint8Array {
  if (bytes === undefined) throw new HostError('content_missing', { hash });
  if (hashOfBytes(bytes) !== hash)
    throw new HostError('content_missing', { hash, reason: 'A stored value is damaged.' });
  return bytes;
}
