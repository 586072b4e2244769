// The operator's keys while they are rotated (architecture §10.2). Each process announces which keys it knows and which one
// it encrypts with, and reads what the others announced: src/rules/key-ring.ts decides by that.
import type { HostKey, KeyRing } from '../../ports/keys.ts';
import type { Logger } from '../../ports/logger.ts';
import { codeOf, HostError } from '../../rules/errors.ts';
import { isShared, keyToUse, missingKeys, type KeyView } from '../../rules/key-ring.ts';
import { fingerprint } from '../../system/sealing.ts';
import { Moment, rest, within } from '../../system/time.ts';
import type { Db } from './db.ts';
import { deleteExpired } from './free-rows.ts';

/** A process that did not announce itself for so long, in ms, is taken for dead. It does so BEATS times in that time. */
export const ANNOUNCED_MS = 15_000;
const BEATS = 3;
/** Longest wait in ms for an announcement before something is encrypted. */
const ANNOUNCING_MS = 2_000;
const SEPARATOR = ',';
/** Between the id of a key and its fingerprint; no id has it. */
const OF = '=';

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

/** Tells a key from every other one, also from one with the same id. */
function nameOf({ id, key }: HostKey): string {
  return `${id}${OF}${fingerprint(key)}`;
}

function idOf(name: string): string {
  return name.split(OF, 1)[0] ?? '';
}

export interface KeyKeeper extends KeyRing {
  /** Resolves when this process is announced no more. */
  stop(): Promise<void>;
}

class AnnouncedKeys implements KeyKeeper {
  readonly keys: readonly HostKey[];
  /** Names of the keys, in their order. */
  readonly #own: readonly string[];
  readonly #db: Db;
  readonly #options: KeyKeeperOptions;
  readonly #announcedMs: number;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #uses: string | undefined;
  /** When the last announcement that was stored began: it is not believed for longer than the others believe it. */
  #announcedAt: Moment | undefined;
  #isShared = false;
  /** Under way, of whoever asked for it first. */
  #beating: Promise<KeyView> | undefined;
  /** Of who encrypts after a sleep: what all of them wait for, and when it was begun. */
  #late: Promise<void> | undefined;
  #lateTriedAt: Moment | undefined;
  #missing: readonly string[] = [];
  #heldBack: string | undefined;

  constructor(db: Db, options: KeyKeeperOptions) {
    this.keys = options.keys;
    this.#own = options.keys.map(nameOf);
    this.#db = db;
    this.#options = options;
    this.#announcedMs = options.announcedMs ?? ANNOUNCED_MS;
  }

  current(): HostKey | undefined {
    const { [this.#own.indexOf(this.#uses ?? '')]: key } = this.keys;
    return key;
  }

  isShared(): boolean {
    return this.#isShared && this.#isAnnounced();
  }

  /** By the clock that shows more: one of them may stop while the machine sleeps. */
  #isAnnounced(): boolean {
    return (this.#announcedAt?.agoMs() ?? Infinity) < this.#announcedMs;
  }

  async announced(): Promise<void> {
    if (this.#isAnnounced()) return;
    // Where the database is away, nobody waits for it each time.
    const triedMs = this.#lateTriedAt?.agoMs() ?? Infinity;
    if (this.#late || triedMs < this.#announcedMs / BEATS) return this.#late;
    this.#lateTriedAt = new Moment();
    const again = this.#beatSinceNow().catch((error: unknown) => this.#failed(error));
    this.#late = within(ANNOUNCING_MS, again, () => undefined).finally(
      () => (this.#late = undefined),
    );
    await this.#late;
  }

  /** One that was under way may have begun before the sleep, and the first statement after one may meet a dead connection. */
  async #beatSinceNow(): Promise<void> {
    await this.#beat().catch(() => undefined);
    if (!this.#isAnnounced()) await this.#beat();
  }

  announcedAs(): string | undefined {
    return this.#uses;
  }

  missing(): readonly string[] {
    return this.#missing.map(idOf);
  }

  async start(): Promise<void> {
    if (this.#options.isAlone) await this.#db.query('DELETE FROM process_keys');
    try {
      const view = await this.#beat((seen) => this.#refuse(seen));
      this.#warnOfOthers(view.used);
    } catch (error) {
      await this.#withdraw().catch(() => undefined);
      throw error;
    }
    this.#running = this.#keepOn();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    // One that ended later would bring the row back.
    if (this.#beating)
      await within<unknown>(ANNOUNCING_MS, this.#beating, () => undefined).catch(() => undefined);
    // Without the database the row goes by itself.
    await this.#withdraw().catch(() => undefined);
  }

  async #keepOn(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await rest(this.#announcedMs / BEATS, signal);
      if (signal.aborted) return;
      await this.#beat().catch((error: unknown) => this.#failed(error));
    }
  }

  #failed(error: unknown): void {
    // An outage is reported by the watch of the stores.
    const at = codeOf(error) === 'service_unavailable' ? 'debug' : 'error';
    this.#options.logger[at]('the keys of this process were not looked after', {
      reason: String(error),
    });
  }

  /** One at a time. `check` sees what each announcement found, and may throw. */
  #beat(check?: (view: KeyView) => void): Promise<KeyView> {
    this.#beating ??= this.#beatAgain(check).finally(() => (this.#beating = undefined));
    return this.#beating;
  }

  async #beatAgain(check: (view: KeyView) => void = () => undefined): Promise<KeyView> {
    const beganAt = new Moment();
    let view = await this.#announce(this.#uses);
    check(view);
    let uses = keyToUse(view);
    if (uses !== this.#uses) {
      await this.#markUsed(uses);
      // Of two that change at once one at least learns what the other uses now.
      view = await this.#announce(uses);
      check(view);
      if (this.#uses !== undefined && keyToUse(view) !== uses) {
        uses = this.#uses;
        view = await this.#announce(uses);
      }
    }
    this.#adopt(view, uses, beganAt);
    return view;
  }

  /** Its own row is stored before the others' are read: of two that do so at once one at least sees the other. */
  async #announce(uses: string | undefined): Promise<KeyView> {
    await this.#db.query(deleteExpired('process_keys'));
    const [row] = await this.#db.query<{ for_ms: number }>(
      `INSERT INTO process_keys (holder, knows, uses, since_ms, expires_at_ms)
       VALUES ($1, $2, $3, openwop_now_ms(), openwop_now_ms() + $4::bigint)
       ON CONFLICT (holder) DO UPDATE SET uses = excluded.uses, expires_at_ms = excluded.expires_at_ms,
         since_ms = CASE WHEN process_keys.expires_at_ms > openwop_now_ms() THEN process_keys.since_ms
           ELSE excluded.since_ms END
       RETURNING openwop_now_ms() - since_ms AS for_ms`,
      [this.#options.holder, this.#own.join(SEPARATOR), uses ?? null, this.#announcedMs],
    );
    return this.#look(row?.for_ms);
  }

  /** `announcedForMs`: without a gap. */
  async #look(announcedForMs = 0): Promise<KeyView> {
    const { holder, isAlone } = this.#options;
    const others = await this.#db.query<{ knows: string; uses: string | null }>(
      'SELECT knows, uses FROM process_keys WHERE holder <> $1 AND expires_at_ms > openwop_now_ms()',
      [holder],
    );
    const used = await this.#db.query<{ key_id: string; fingerprint: string }>(
      'SELECT key_id, fingerprint FROM encryption_keys',
    );
    return {
      own: this.#own,
      used: new Set(used.map((one) => `${one.key_id}${OF}${one.fingerprint}`)),
      others: others.map((other) => ({
        knows: new Set(other.knows.split(SEPARATOR)),
        uses: other.uses ?? undefined,
      })),
      isComplete: isAlone || announcedForMs >= this.#announcedMs,
    };
  }

  /** Throws HostError config_invalid: another key with this id was used meanwhile. */
  async #markUsed(name: string | undefined): Promise<void> {
    if (name === undefined) return;
    const id = idOf(name);
    const [row] = await this.#db.query<{ fingerprint: string }>(
      `INSERT INTO encryption_keys (key_id, fingerprint, first_used_at_ms) VALUES ($1, $2, openwop_now_ms())
       ON CONFLICT (key_id) DO UPDATE SET fingerprint = encryption_keys.fingerprint RETURNING fingerprint`,
      [id, name.slice(id.length + OF.length)],
    );
    if (row && `${id}${OF}${row.fingerprint}` !== name) throw anotherKey(id);
  }

  /** Of a process that starts. Throws HostError config_invalid. */
  #refuse(view: KeyView): void {
    const ids = this.keys.map(({ id }) => id);
    const isOther = (name: string) => ids.includes(idOf(name)) && !this.#own.includes(name);
    const used = [...view.used].find(isOther);
    if (used !== undefined) throw anotherKey(idOf(used));
    const announced = view.others.flatMap(({ knows }) => [...knows]).find(isOther);
    if (announced !== undefined)
      throw invalidKeys(`Another process has another key "${idOf(announced)}". ${IF_KILLED}`);
    const [name] = missingKeys(view);
    if (name !== undefined)
      throw invalidKeys(
        `It lacks the key "${idOf(name)}", with which another process of this host encrypts now. ${IF_KILLED}`,
      );
  }

  async #withdraw(): Promise<void> {
    await this.#db.query('DELETE FROM process_keys WHERE holder = $1', [this.#options.holder]);
  }

  #warnOfOthers(used: ReadonlySet<string>): void {
    const keys = [...used].filter((name) => !this.#own.includes(name)).map(idOf);
    if (keys.length > 0)
      this.#options.logger.warn(
        'keys that were used before are not among OPENWOP_ENCRYPTION_KEYS: what they encrypted cannot be read here',
        { keys: keys.sort() },
      );
  }

  /** Each change is logged once. */
  #adopt(view: KeyView, uses: string | undefined, seenAt: Moment): void {
    const { logger } = this.#options;
    const [first] = this.#own;
    const heldBack = uses === first ? undefined : first;
    const shared = isShared(view, uses);
    const missing = missingKeys(view);
    if (uses !== undefined && uses !== this.#uses)
      logger.info('an encryption key is used from now on', { key: idOf(uses) });
    if (heldBack !== undefined && heldBack !== this.#heldBack)
      logger.info('a new encryption key waits until every process knows it', {
        ...{ key: idOf(heldBack), uses: idOf(uses ?? '') },
        processesWithout: view.others.filter(({ knows }) => !knows.has(heldBack)).length,
      });
    if (shared && !this.#isShared && uses !== undefined)
      logger.info('all processes encrypt with the same key', { key: idOf(uses) });
    if (missing.length > 0 && missing.join() !== this.#missing.join())
      logger.error('other processes encrypt with keys that this one does not have', {
        missing: missing.map(idOf),
      });
    this.#uses = uses;
    this.#heldBack = heldBack;
    this.#isShared = shared;
    this.#announcedAt = seenAt;
    this.#missing = missing;
  }
}

const IF_KILLED = `If that process was killed, start again in ${ANNOUNCED_MS / 1000} s.`;

function anotherKey(id: string): HostError {
  return invalidKeys(
    `The key "${id}" is another one than the key with this id that this host has used. ` +
      'Give a new key an id of its own.',
  );
}

function invalidKeys(reason: string): HostError {
  const fault = `OPENWOP_ENCRYPTION_KEYS: ${reason}`;
  return new HostError('config_invalid', { reason: fault, faults: [fault] });
}

/**
 * Announces this process. Throws HostError config_invalid: it lacks a key that others encrypt with, or has another one under
 * the id of one that was used.
 */
export async function startKeyKeeper(db: Db, options: KeyKeeperOptions): Promise<KeyKeeper> {
  const keeper = new AnnouncedKeys(db, options);
  await keeper.start();
  return keeper;
}
