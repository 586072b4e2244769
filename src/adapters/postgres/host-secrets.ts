// What the host makes once for itself and keeps wrapped by the operator's key: the key that names of subjects
// are hashed with, and the one that receipts are signed with.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign as signBytes,
} from 'node:crypto';
import type { KeyRing } from '../../ports/keys.ts';
import { HostError } from '../../rules/errors.ts';
import { newSecret } from '../../system/sealing.ts';
import type { Db } from './db.ts';
import { unwrapped, wrapped } from './subject-keys.ts';

type Name = 'pseudonyms' | 'receipts';

const MAKE: Readonly<Record<Name, () => Uint8Array>> = {
  pseudonyms: newSecret,
  receipts: () =>
    new Uint8Array(
      generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'der' }),
    ),
};

function placeOf(name: Name): string {
  return `host-secret ${name}`;
}

/** Whether all live processes encrypt with the key that is announced so: one that slept may believe it, and be wrong. */
export function allUse(name: string): string {
  const live = 'SELECT 1 FROM process_keys WHERE expires_at_ms > openwop_now_ms() AND uses';
  return `(${name}::text IS NULL OR (EXISTS (${live} = ${name}) AND NOT EXISTS (${live} IS DISTINCT FROM ${name})))`;
}

export function hostSecrets(db: Db, ring: KeyRing) {
  const known = new Map<Name, Uint8Array>();

  /** Of several that make it at once one does. */
  async function secret(name: Name): Promise<Uint8Array> {
    const held = known.get(name);
    if (held) return held;
    const master = ring.current();
    if (!master) throw new HostError('capability_not_provided', { capability: 'subjects' });
    await db.query(
      'INSERT INTO host_secrets (name, wrapped) VALUES ($1, $2) ON CONFLICT DO NOTHING',
      [name, wrapped(master, placeOf(name), MAKE[name]())],
    );
    const [row] = await db.query<{ wrapped: string }>(
      'SELECT wrapped FROM host_secrets WHERE name = $1',
      [name],
    );
    const found = unwrapped(ring.keys, placeOf(name), row?.wrapped ?? '');
    known.set(name, found);
    return found;
  }

  function rewrapped(place: string, before: string): string {
    const master = ring.current();
    if (!master) throw new HostError('capability_not_provided', { capability: 'subjects' });
    return wrapped(master, place, unwrapped(ring.keys, place, before));
  }

  return {
    rewrapped,
    pseudonyms: () => secret('pseudonyms'),
    /** Ed25519; both in base64, the public key as SPKI. */
    async sign(text: string): Promise<{ signature: string; publicKey: string }> {
      const der = Buffer.from(await secret('receipts'));
      const key = createPrivateKey({ key: der, type: 'pkcs8', format: 'der' });
      const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' });
      return {
        signature: signBytes(null, Buffer.from(text), key).toString('base64'),
        publicKey: publicKey.toString('base64'),
      };
    },
    async rewrap(): Promise<number> {
      const rows = await db.query<{ name: Name; wrapped: string }>(
        'SELECT name, wrapped FROM host_secrets WHERE NOT starts_with(wrapped, $1)',
        [`${ring.current()?.id ?? ''}:`],
      );
      let count = 0;
      for (const { name, wrapped: before } of rows) {
        const wrappedNow = await db.query(
          `UPDATE host_secrets SET wrapped = $2 WHERE name = $1 AND wrapped = $3 AND ${allUse('$4')} RETURNING 1`,
          [...[name, rewrapped(placeOf(name), before), before], ring.announcedAs() ?? null],
        );
        count += wrappedNow.length;
      }
      return count;
    },
  };
}
