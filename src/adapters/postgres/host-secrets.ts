// What the host makes once for itself and keeps wrapped by the operator's key: the key that names of subjects
// are hashed with, and the one that receipts are signed with.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign as signBytes,
} from 'node:crypto';
import type { KeyRing } from '../../ports/keys.ts';
import type { Rewrapped } from '../../ports/subjects.ts';
import { HostError } from '../../rules/errors.ts';
import { newSecret } from '../../system/sealing.ts';
import { eachByItself, type Db } from './db.ts';
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

/** A row of a table with wrapped keys, and what is stored there. */
interface Wrapped {
  readonly table: 'host_secrets' | 'subject_keys';
  readonly column: 'name' | 'key_id';
  readonly id: string;
  readonly before: string;
}

/** Whether all live processes encrypt with the key that is announced as $4: one that slept may believe it, and be wrong. */
const LIVE = 'SELECT 1 FROM process_keys WHERE expires_at_ms > openwop_now_ms() AND uses';
const ALL_USE_IT = `($4::text IS NULL OR (EXISTS (${LIVE} = $4) AND NOT EXISTS (${LIVE} IS DISTINCT FROM $4)))`;

export function hostSecrets(db: Db, ring: KeyRing) {
  const known = new Map<Name, Uint8Array>();

  /** Of several that make it at once one does. */
  async function secret(name: Name): Promise<Uint8Array> {
    const held = known.get(name);
    if (held) return held;
    await ring.announced();
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

  /** By compare-and-set: a key that is destroyed meanwhile stays so, and one that somebody locked waits. Returns how many rows it wrapped: 1 or 0. */
  async function wrapAgain(place: string, { table, column, id, before }: Wrapped): Promise<number> {
    const master = ring.current();
    if (!master) throw new HostError('capability_not_provided', { capability: 'subjects' });
    const after = wrapped(master, place, unwrapped(ring.keys, place, before));
    const rows = await db.query(
      `UPDATE ${table} SET wrapped = $2 WHERE ${column} = (
         SELECT ${column} FROM ${table} WHERE ${column} = $1 AND wrapped = $3 FOR UPDATE SKIP LOCKED
       ) AND wrapped = $3 AND ${ALL_USE_IT} RETURNING 1`,
      [id, after, before, ring.announcedAs() ?? null],
    );
    return rows.length;
  }

  return {
    wrapAgain,
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
    /** How many it wrapped, and why it did not wrap others: one that does not open keeps no other. */
    async rewrap(): Promise<Rewrapped> {
      const rows = await db.query<{ name: Name; wrapped: string }>(
        'SELECT name, wrapped FROM host_secrets WHERE NOT starts_with(wrapped, $1)',
        [`${ring.current()?.id ?? ''}:`],
      );
      let count = 0;
      const failed = await eachByItself(db, rows, async ({ name: id, wrapped: before }) => {
        const row = { table: 'host_secrets', column: 'name', id, before } as const;
        count += await wrapAgain(placeOf(id), row);
      });
      return {
        count,
        failed: failed.map(({ item, error }) => ({ keyId: placeOf(item.name), error })),
      };
    },
  };
}
