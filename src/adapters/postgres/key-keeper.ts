// The operator's keys while they are rotated (architecture §10.2). Each process announces which keys it knows and which one
// it encrypts with, and looks what the others announced: src/rules/key-ring.ts decides by that.
import type { HostKey, KeyRing } from '../../ports/keys.ts';
import type { Logger } from '../../ports/logger.ts';
import { HostError } from '../../rules/errors.ts';
import { isShared, keyToUse, missingKeys, type KeyView } from '../../rules/key-ring.ts';
import { fingerprint } from '../../system/sealing.ts';
import { rest } from '../../system/time.ts';
import type { Db } from './db.ts';

/** A process that did not announce itself for so long, in ms, is taken for dead; it does so three times in that time. */
export const ANNOUNCED_MS = 15_000;
const BEATS = 3;
const SEPARATOR = ',';

export interface KeyKeeperOptions {
  readonly keys: readonly HostKey[];
  /** Names the process. */
  readonly holder: string;
  /** No other process can have this database open. */
  readonly isAlone: boolean;
  readonly logger: Logger;
  /** For tests; ANNOUNCED_MS when absent. */
  readonly announcedMs?: number | undefined;
}

export interface KeyKeeper extends KeyRing {
  /** Resolves when this process is announced no more. */
  stop(): Promise<void>;
}

class AnnouncedKeys implements KeyKeeper {
  readonly keys: readonly HostKey[];
  readonly #db: Db;
  readonly #options: KeyKeeperOptions;
  readonly #announcedMs: number;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #uses: string | undefined;
  #isShared = false;
  #missing: readonly string[] = [];
  #heldBack: string | undefined;

  constructor(db: Db, options: KeyKeeperOptions) {
    this.keys = options.keys;
    this.#db = db;
    this.#options = options;
    this.#announcedMs = options.announcedMs ?? ANNOUNCED_MS;
  }

  current(): HostKey | undefined {
    return this.keys.find(({ id }) => id === this.#uses);
  }

  isShared(): boolean {
    return this.#isShared;
  }

  missing(): readonly string[] {
    return this.#missing;
  }

  async start(): Promise<void> {
    if (this.#options.isAlone) await this.#db.query('DELETE FROM process_keys');
    try {
      await this.#beat(refusal);
    } catch (error) {
      await this.#withdraw().catch(() => undefined);
      throw error;
    }
    this.#running = this.#keepOn();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    // Without the database the row goes by itself.
    await this.#withdraw().catch(() => undefined);
  }

  async #keepOn(): Promise<void> {
    const { signal } = this.#stopping;
    const { logger } = this.#options;
    for (;;) {
      await rest(this.#announcedMs / BEATS, signal);
      if (signal.aborted) return;
      await this.#beat(() => undefined).catch((error: unknown) =>
        logger.debug('the keys of this process were not announced', { reason: String(error) }),
      );
    }
  }

  /** `refuse` may throw what keeps this process from starting. */
  async #beat(refuse: (missing: readonly string[]) => void): Promise<void> {
    const view = await this.#announce(this.#uses);
    const missing = missingKeys(view);
    refuse(missing);
    const uses = keyToUse(view);
    if (uses !== this.#uses) {
      await this.#markUsed(uses);
      await this.#announce(uses);
    }
    this.#report(view, uses, missing);
    this.#uses = uses;
    this.#isShared = isShared(view, uses);
    this.#missing = missing;
  }

  /** Its own row stands before the others' are read: of two that start at once, one at least sees the other. */
  async #announce(uses: string | undefined): Promise<KeyView> {
    const { holder, isAlone } = this.#options;
    const own = this.keys.map(({ id }) => id);
    await this.#db.query(
      `DELETE FROM process_keys WHERE holder IN (SELECT holder FROM process_keys
         WHERE expires_at_ms <= openwop_now_ms() FOR UPDATE SKIP LOCKED)`,
    );
    const [row] = await this.#db.query<{ for_ms: number }>(
      `INSERT INTO process_keys (holder, knows, uses, since_ms, expires_at_ms)
       VALUES ($1, $2, $3, openwop_now_ms(), openwop_now_ms() + $4::bigint)
       ON CONFLICT (holder) DO UPDATE SET uses = excluded.uses, expires_at_ms = excluded.expires_at_ms
       RETURNING openwop_now_ms() - since_ms AS for_ms`,
      [holder, own.join(SEPARATOR), uses ?? null, this.#announcedMs],
    );
    const others = await this.#db.query<{ knows: string; uses: string | null }>(
      'SELECT knows, uses FROM process_keys WHERE holder <> $1 AND expires_at_ms > openwop_now_ms()',
      [holder],
    );
    return {
      own,
      used: await this.#usedKeys(),
      others: others.map((other) => ({
        knows: new Set(other.knows.split(SEPARATOR)),
        uses: other.uses ?? undefined,
      })),
      isComplete: isAlone || (row?.for_ms ?? 0) >= this.#announcedMs,
    };
  }

  /** Throws HostError config_invalid: a key of this process has the id of another one. */
  async #usedKeys(): Promise<ReadonlySet<string>> {
    const rows = await this.#db.query<{ key_id: string; fingerprint: string }>(
      'SELECT key_id, fingerprint FROM encryption_keys',
    );
    for (const row of rows) this.#compare(row.key_id, row.fingerprint);
    return new Set(rows.map((row) => row.key_id));
  }

  async #markUsed(id: string | undefined): Promise<void> {
    const key = this.keys.find((known) => known.id === id);
    if (!key) return;
    const [row] = await this.#db.query<{ fingerprint: string }>(
      `INSERT INTO encryption_keys (key_id, fingerprint, first_used_at_ms) VALUES ($1, $2, openwop_now_ms())
       ON CONFLICT (key_id) DO UPDATE SET fingerprint = encryption_keys.fingerprint RETURNING fingerprint`,
      [key.id, fingerprint(key.key)],
    );
    if (row) this.#compare(key.id, row.fingerprint);
  }

  #compare(keyId: string, stored: string): void {
    const key = this.keys.find(({ id }) => id === keyId);
    if (!key || fingerprint(key.key) === stored) return;
    throw invalidKeys(
      `The key "${keyId}" is another one than the key with this id that this host used before. ` +
        'Give a new key an id of its own.',
    );
  }

  async #withdraw(): Promise<void> {
    await this.#db.query('DELETE FROM process_keys WHERE holder = $1', [this.#options.holder]);
  }

  /** Once for each change. */
  #report({ others }: KeyView, uses: string | undefined, missing: readonly string[]): void {
    const { logger } = this.#options;
    const [first] = this.keys;
    const heldBack = first && uses !== first.id ? first.id : undefined;
    if (heldBack !== this.#heldBack && heldBack !== undefined)
      logger.info('a new encryption key waits until every process knows it', {
        ...{ key: heldBack, uses },
        processesWithout: others.filter(({ knows }) => !knows.has(heldBack)).length,
      });
    if (uses !== this.#uses && this.#uses !== undefined)
      logger.info('another encryption key is used from now on', { key: uses });
    if (missing.join() !== this.#missing.join() && missing.length > 0)
      logger.error('other processes encrypt with keys that this one does not have', { missing });
    this.#heldBack = heldBack;
  }
}

/** Of a process that starts. */
function refusal(missing: readonly string[]): void {
  const [id] = missing;
  if (id === undefined) return;
  throw invalidKeys(
    `It lacks the key "${id}", with which another process of this host encrypts now. ` +
      `If that process was killed, start again in ${ANNOUNCED_MS / 1000} s.`,
  );
}

function invalidKeys(reason: string): HostError {
  const told = `OPENWOP_ENCRYPTION_KEYS: ${reason}`;
  return new HostError('config_invalid', { reason: told, faults: [told] });
}

/**
 * Announces this process. Throws HostError config_invalid: it lacks a key that others encrypt with, or has another one under
 * the id of one that was used before.
 */
export async function startKeyKeeper(db: Db, options: KeyKeeperOptions): Promise<KeyKeeper> {
  const keeper = new AnnouncedKeys(db, options);
  await keeper.start();
  return keeper;
}
