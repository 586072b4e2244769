// The keys of subjects as this process knows them (architecture §10.1). What it holds in memory it asks the database for
// again after KEY_HELD_MS, and at once when it hears that a key was destroyed: behind that time nobody opens anything with
// a destroyed key, whatever it missed.
import { HostError } from '../../rules/errors.ts';
import type { HostKey } from '../../ports/keys.ts';
import type { KnownKey, SealingKey, SubjectKeys } from '../../ports/subjects.ts';
import { Recent } from '../../system/recent.ts';
import { sealingKey, unseal, wrap } from '../../system/sealing.ts';
import type { Db } from './db.ts';

/** How long, in ms, a key is used to open with before the database is asked again. */
export const KEY_HELD_MS = 5_000;
/** Runs whose key is remembered, or that they have none. */
const REMEMBERED_RUNS = 10_000;
/** Keys held at once. */
const REMEMBERED_KEYS = 10_000;
export const KEY_CHANNEL = 'openwop_subject_keys';

/** What a wrapped key and a sealed text are named by. */
const ID = /^[\w.-]{1,64}$/;

export function wrapped({ id, key }: HostKey, place: string, secret: Uint8Array): string {
  const bytes = wrap(key, { place, bytes: secret });
  return `${id}:${Buffer.from(bytes).toString('base64')}`;
}

/** Throws HostError key_unavailable, and history_undecodable: it is damaged. */
export function unwrapped(masters: readonly HostKey[], place: string, text: string): Uint8Array {
  const [id = '', encoded = ''] = text.split(':');
  const master = masters.find((known) => known.id === id);
  const bytes = new Uint8Array(Buffer.from(encoded, 'base64'));
  const secret = master && unseal(master.key, { place, bytes });
  if (!secret) throw notOpened(masters, id);
  return secret;
}

/** Of a text that may be damaged, and may then hold anything: what is no id is not repeated. */
function notOpened(masters: readonly HostKey[], id: string): HostError {
  if (!ID.test(id) || masters.some((known) => known.id === id))
    return new HostError('history_undecodable', {
      reason: `A key of the host does not open with ${ID.test(id) ? `the encryption key "${id}"` : 'its encryption key'}.`,
    });
  const reason = `A key of the host does not open: the encryption key "${id}" is not among those configured.`;
  return new HostError('key_unavailable', { reason });
}

export function placeOfKey(keyId: string): string {
  return `subject-key ${keyId}`;
}

interface Held {
  readonly known: KnownKey;
  /** By the process' own clock, from before the database was asked; -Infinity: nothing is opened with it unasked. */
  readonly sinceMs: number;
}

class HeldKeys implements SubjectKeys {
  readonly #db: Db;
  readonly #masters: readonly HostKey[];
  readonly #heldMs: number;
  readonly #keys = new Recent<string, Held>(REMEMBERED_KEYS);
  readonly #runs = new Recent<string, string | undefined>(REMEMBERED_RUNS);
  #subjects: { readonly are: boolean; readonly sinceMs: number } | undefined;

  constructor(db: Db, masters: readonly HostKey[], heldMs: number) {
    this.#db = db;
    this.#masters = masters;
    this.#heldMs = heldMs;
  }

  forget(keyId: string): void {
    this.#keys.delete(keyId);
  }

  /**
   * A word of one that was destroyed may have been missed: nothing is opened before the database is asked again, and it is asked
   * at once which of them are destroyed.
   */
  async doubtAll(): Promise<void> {
    const keyIds: string[] = [];
    this.#keys.update((keyId, { known }) => {
      if (known.kind === 'alive') keyIds.push(keyId);
      return { known, sinceMs: -Infinity };
    });
    if (keyIds.length === 0) return;
    const destroyed = await this.#db.query<{ key_id: string }>(
      'SELECT key_id FROM subject_keys WHERE key_id = ANY($1::text[]) AND wrapped IS NULL',
      [keyIds],
    );
    for (const { key_id: keyId } of destroyed) this.forget(keyId);
  }

  async ofRun(runId: string): Promise<KnownKey | undefined> {
    if (this.#masters.length === 0 && !(await this.#hasSubjects())) return undefined;
    const keyId = await this.#keyOfRun(runId);
    return keyId === undefined ? undefined : this.byId(keyId);
  }

  async toSeal(keyId: string): Promise<KnownKey> {
    return this.#keys.get(keyId)?.known ?? this.byId(keyId);
  }

  async byId(keyId: string): Promise<KnownKey> {
    const held = this.#keys.get(keyId);
    const sinceMs = performance.now();
    if (held && (held.known.kind === 'destroyed' || sinceMs - held.sinceMs < this.#heldMs))
      return held.known;
    const known = await this.#read(keyId);
    this.#keys.set(keyId, { known, sinceMs });
    return known;
  }

  /** A process without a key of the operator's knows of no subject until there is one. */
  async #hasSubjects(): Promise<boolean> {
    const sinceMs = performance.now();
    const known = this.#subjects;
    if (known && (known.are || sinceMs < known.sinceMs + this.#heldMs)) return known.are;
    const found = await this.#db.query('SELECT 1 FROM subject_keys LIMIT 1');
    const are = found.length > 0;
    this.#subjects = { are, sinceMs };
    return are;
  }

  /** A run has its key, or none, from its acceptance on. */
  async #keyOfRun(runId: string): Promise<string | undefined> {
    if (this.#runs.has(runId)) return this.#runs.get(runId);
    const [row] = await this.#db.query<{ subject_key: string | null }>(
      'SELECT subject_key FROM runs WHERE run_id = $1',
      [runId],
    );
    // Of a run that is not there yet nothing is known.
    if (!row) return undefined;
    const keyId = row.subject_key ?? undefined;
    this.#runs.set(runId, keyId);
    return keyId;
  }

  async #read(keyId: string): Promise<KnownKey> {
    const [row] = await this.#db.query<{ wrapped: string | null; destroyed_at_ms: number | null }>(
      'SELECT wrapped, destroyed_at_ms FROM subject_keys WHERE key_id = $1',
      [keyId],
    );
    if (!row)
      throw new HostError('history_undecodable', {
        reason: ID.test(keyId) ? `No subject key "${keyId}".` : 'A sealed text names no key.',
      });
    if (row.wrapped === null) return { kind: 'destroyed', keyId, atMs: row.destroyed_at_ms ?? 0 };
    const secret = unwrapped(this.#masters, placeOfKey(keyId), row.wrapped);
    const key: SealingKey = sealingKey(secret);
    return { kind: 'alive', keyId, key };
  }
}

/** Resolves when it hears of keys that are destroyed. Only tests name `heldMs`. */
export async function createSubjectKeys(
  db: Db,
  masters: readonly HostKey[],
  heldMs = KEY_HELD_MS,
): Promise<SubjectKeys> {
  const keys = new HeldKeys(db, masters, heldMs);
  await db.listen(KEY_CHANNEL, (keyId) => keys.forget(keyId));
  // Where the database goes again it is asked when it is back.
  db.onReconnect(() => void keys.doubtAll().catch(() => undefined));
  return keys;
}
