// The keys of subjects as this process knows them (architecture §10.1). What it holds in memory it asks the database for
// again after KEY_HELD_MS, and at once when it hears that a key was destroyed: after that time nobody begins to open anything
// with a destroyed key, whatever it missed.
import { HostError } from '../../rules/errors.ts';
import type { HostKey } from '../../ports/keys.ts';
import type { KnownKey, SealingKey, SubjectKeys } from '../../ports/subjects.ts';
import { unreadableFor } from '../../rules/unreadable.ts';
import { Recent } from '../../system/recent.ts';
import { Moment } from '../../system/time.ts';
import { sealingKey, unseal, wrap } from '../../system/sealing.ts';
import type { Db } from './db.ts';

/** How long, in ms, a key is used to open with before the database is asked again. */
export const KEY_HELD_MS = 5_000;
/** A question for keys may take so long, in ms, that what it says is asked again; so often at most. */
const ANSWER_LIMIT_MS = 1_000;
const MAX_QUESTIONS = 3;
/** A key that was given out is opened with for a tenth longer than it is held: half of what an erasure waits for more. */
const OPENS_SHARE = 1.1;
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
  /** From before the database was asked; undefined: nothing is opened with it unasked. */
  readonly asked: Moment | undefined;
}

class HeldKeys implements SubjectKeys {
  readonly #db: Db;
  readonly #masters: readonly HostKey[];
  readonly #heldMs: number;
  readonly #keys = new Recent<string, Held>(REMEMBERED_KEYS);
  readonly #runs = new Recent<string, string | undefined>(REMEMBERED_RUNS);
  #subjects: { readonly are: boolean; readonly asked: Moment } | undefined;

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
      return { known, asked: undefined };
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
    const known = (await this.byIds([keyId])).get(keyId);
    if (!known || 'code' in known) throw known ?? new HostError('internal_error');
    return known;
  }

  async byIds(keyIds: readonly string[]): Promise<ReadonlyMap<string, KnownKey | HostError>> {
    for (let questions = 0; questions < MAX_QUESTIONS; questions++) {
      const found = new Map<string, KnownKey | HostError>();
      const unknown: string[] = [];
      for (const keyId of keyIds) {
        const known = this.#fresh(keyId);
        if (known) found.set(keyId, known);
        else unknown.push(keyId);
      }
      if (unknown.length === 0) return found;
      const asked = new Moment();
      for (const [keyId, known] of await this.#read(unknown, asked)) {
        found.set(keyId, known);
        if (!('code' in known)) this.#keys.set(keyId, { known, asked });
      }
      // What was fresh before the question may be none after it.
      if (asked.agoMs() <= ANSWER_LIMIT_MS) return found;
    }
    throw new HostError('service_unavailable', { part: 'database' });
  }

  #fresh(keyId: string): KnownKey | undefined {
    const held = this.#keys.get(keyId);
    const isFresh = held?.asked !== undefined && held.asked.agoMs() < this.#heldMs;
    return held && (held.known.kind === 'destroyed' || isFresh) ? held.known : undefined;
  }

  /** A process without a key of the operator's knows of no subject until there is one. */
  async #hasSubjects(): Promise<boolean> {
    const known = this.#subjects;
    if (known && (known.are || known.asked.agoMs() < this.#heldMs)) return known.are;
    const asked = new Moment();
    const found = await this.#db.query('SELECT 1 FROM subject_keys LIMIT 1');
    const are = found.length > 0;
    this.#subjects = { are, asked };
    return are;
  }

  /** A run has its key, or none, from its acceptance on. */
  async #keyOfRun(runId: string): Promise<string | undefined> {
    if (this.#runs.has(runId)) return this.#runs.get(runId);
    const [row] = await this.#db.query<{ subject_key: string | null }>(
      'SELECT subject_key FROM runs WHERE run_id = $1',
      [runId],
    );
    // Whose data it holds nobody knows: nothing of it is written by another key, or in the clear.
    if (!row) throw new HostError('run_not_found', { runId });
    const keyId = row.subject_key ?? undefined;
    this.#runs.set(runId, keyId);
    return keyId;
  }

  async #read(
    keyIds: readonly string[],
    asked: Moment,
  ): Promise<ReadonlyMap<string, KnownKey | HostError>> {
    const rows = await this.#db.query<KeyRecord>(
      'SELECT key_id, wrapped, destroyed_at_ms FROM subject_keys WHERE key_id = ANY($1::text[])',
      [keyIds],
    );
    const byId = new Map(rows.map((row) => [row.key_id, row]));
    // A moment more: it was fresh when it was given out.
    const opensMs = Math.max(this.#heldMs, ANSWER_LIMIT_MS) * OPENS_SHARE;
    const mayOpen = () => asked.agoMs() < opensMs;
    const known = { masters: this.#masters, mayOpen };
    return new Map(keyIds.map((keyId) => [keyId, knownOf(known, keyId, byId.get(keyId))]));
  }
}

interface KeyRecord {
  readonly key_id: string;
  readonly wrapped: string | null;
  readonly destroyed_at_ms: number | null;
}

function knownOf(
  { masters, mayOpen }: { readonly masters: readonly HostKey[]; readonly mayOpen: () => boolean },
  keyId: string,
  row: KeyRecord | undefined,
): KnownKey | HostError {
  if (!row)
    return new HostError('history_undecodable', {
      reason: ID.test(keyId) ? `No subject key "${keyId}".` : 'A sealed text names no key.',
    });
  if (row.wrapped === null) return { kind: 'destroyed', keyId, atMs: row.destroyed_at_ms ?? 0 };
  try {
    const key: SealingKey = sealingKey(unwrapped(masters, placeOfKey(keyId), row.wrapped));
    return { kind: 'alive', keyId, key, mayOpen };
  } catch (error) {
    // It is the fault of this key alone.
    if (error instanceof HostError && unreadableFor(error)) return error;
    throw error;
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
