// Whose data a run holds, and the key that it is sealed with (architecture §10.1). A subject is known by a pseudonym; what
// it is called stands nowhere.
import type { DigestedRow } from '../rules/log-digest.ts';
import type { HostError } from '../rules/errors.ts';
import type { Unreadable } from '../rules/unreadable.ts';
import type { NewRow } from './log.ts';
import type { RunRef } from './runs.ts';

/** Keys for each use, derived from the subject's one secret. */
export interface SealingKey {
  /** Payloads in Temporal's histories. */
  readonly history: Uint8Array;
  /** Everything at rest with this host, with nonces made by the second. */
  readonly rest: Uint8Array;
  readonly nonces: Uint8Array;
  /** Digests by which equal things are known, and nothing can be guessed. */
  readonly digests: Uint8Array;
}

export type KnownKey =
  | {
      readonly kind: 'alive';
      readonly keyId: string;
      readonly key: SealingKey;
      /** False: it was asked for too long ago to open anything with. */
      readonly mayOpen: () => boolean;
    }
  | { readonly kind: 'destroyed'; readonly keyId: string; readonly atMs: number };

/** Keys by name. Nothing is opened with one later than a moment after KEY_HELD_MS since the database was asked for it. */
export interface SubjectKeys {
  /**
   * Of the run, to seal with: undefined when it names no subject. Throws as byId does, and HostError run_not_found.
   */
  ofRun(runId: string): Promise<KnownKey | undefined>;
  /**
   * To seal with, as it was last known: the database is asked only for a key that this process has not met. What a destroyed
   * key seals nobody opens. Throws as byId does.
   */
  toSeal(keyId: string): Promise<KnownKey>;
  /**
   * To open with. Throws HostError history_undecodable (there is no such key, or it is damaged), key_unavailable (this process
   * lacks the operator's key that opens it) and service_unavailable.
   */
  byId(keyId: string): Promise<KnownKey>;
  /**
   * The same of several, by one question: each, or what byId would throw of it. None was asked for longer ago than KEY_HELD_MS. Throws HostError service_unavailable.
   */
  byIds(keyIds: readonly string[]): Promise<ReadonlyMap<string, KnownKey | HostError>>;
}

export type ErasureState = 'closing' | 'destroyed' | 'erased';

/** One that has no receipt yet. */
export type LeftErasure = Pick<ErasureRow, 'tenant' | 'erasureId' | 'askedAtMs'>;

/** Who asked, and why, as they say. Stands in the receipt. */
export interface AskedErasure {
  readonly by: string;
  readonly reason?: string;
}

/** What an erasure without a receipt waits for, and why, with names of the database's: for who operates the host. */
export interface ErasureWait {
  readonly kind: 'open-runs' | 'processes' | 'logs' | 'database' | 'failed';
  readonly reason: string;
}

export interface ErasureRow {
  readonly erasureId: string;
  readonly tenant: string;
  /** The pseudonym. */
  readonly subject: string;
  readonly keyId: string;
  readonly state: ErasureState;
  readonly cancelsOpen: boolean;
  readonly asked: AskedErasure;
  readonly askedAtMs: number;
  readonly destroyedAtMs?: number;
  /** No process opens anything with the key any more. */
  readonly isForgotten: boolean;
  /** Signed JSON text, once `erased`. */
  readonly receipt?: string;
  /** As it was when a process went on with it last. */
  readonly waitsFor?: ErasureWait;
  /** Its receipt, or what it waits for, which is absent then; in lists also who asked, and when. */
  readonly unreadable?: Unreadable;
}

export interface ErasedRun {
  readonly runId: string;
  readonly erasureId: string;
  readonly events: number;
  readonly root: string;
  /** Content hashes of the log's pages, in order. None: it is not kept, and the digest is over what was left of it. */
  readonly pages: readonly string[];
  /** They are damaged, and none are given. */
  readonly unreadable?: Unreadable;
}

/** A row of a log as it is stored, sealed or not. */
export type StoredRow = DigestedRow;

export type BegunErasure =
  | { readonly kind: 'begun' | 'known'; readonly erasure: ErasureRow }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'open'; readonly runIds: readonly string[] };

export interface SubjectStore {
  /** False without master keys: no run may name a subject. */
  readonly isAvailable: boolean;
  /**
   * The key that a run is sealed with: of the subject that it names, else of its session's. Made where the subject has none.
   * Undefined: neither names one. Throws HostError capability_not_provided (not available), validation_error (the
   * session is another subject's) and subject_erasing.
   */
  keyFor(
    tenant: string,
    asked: { readonly subject?: string; readonly sessionId?: string },
  ): Promise<string | undefined>;
  /** What the subject is known by, here and in receipts. Throws HostError capability_not_provided. */
  pseudonym(tenant: string, subject: string): Promise<string>;
  /**
   * One transaction: closes the subject's key for new runs and notes the request. `open`: nothing is changed, since there are
   * open runs and the request does not end them. `known`: it was asked for before, and is under way or done.
   */
  beginErasure(
    tenant: string,
    subject: string,
    request: { readonly asked: AskedErasure; readonly cancelsOpen: boolean },
  ): Promise<BegunErasure>;
  erasure(tenant: string, erasureId: string): Promise<ErasureRow | undefined>;
  erasures(tenant: string, limit: number): Promise<readonly ErasureRow[]>;
  /** Of all tenants, the oldest first, behind the one that is named. */
  unfinished(page: {
    readonly after?: LeftErasure | undefined;
    readonly limit: number;
  }): Promise<readonly LeftErasure[]>;
  openRuns(
    keyId: string,
    page: { readonly after: string; readonly limit: number },
  ): Promise<readonly RunRef[]>;
  /**
   * Ends the log of a run that nobody can read by an entry that is stored as it is, unless an entry says how the run ended; what
   * is stored stays. A head that is not there is made. Nothing where the log has ended, or where the run has neither head nor row.
   */
  closeUnread(run: RunRef, end: NewRow): Promise<void>;
  /** Destroys the key unless a run of it is open: false then. Idempotent. */
  destroy(erasure: ErasureRow): Promise<boolean>;
  /**
   * Time in ms until no process begins to open anything with the destroyed key any more; 0: none does. Counted by this process,
   * from when it saw the key destroyed: the transaction that does so may take long to be seen.
   */
  forgottenInMs(erasure: ErasureRow): Promise<number>;
  /**
   * Rewrites the table of keys, without what it held before, unless that was done since the key was destroyed. Undefined: no
   * session, no standby that is directly connected and no slot of the database can give out the key any more. Throws HostError
   * service_unavailable, and internal_error: its key is not destroyed.
   */
  overwrite(erasure: ErasureRow): Promise<ErasureWait | undefined>;
  /** Stores what the erasure waits for, if its state is still that one. Returns the row as it is then. */
  noteWait(erasure: ErasureRow, wait: ErasureWait): Promise<ErasureRow>;
  /** Runs of the key behind a run id, without their log's digest yet, or whose digest is damaged; also those without a row. */
  runsToDigest(
    keyId: string,
    page: { readonly after: string; readonly limit: number },
  ): Promise<readonly RunRef[]>;
  /** The first note stays unless it is damaged. Nothing where the run has expired meanwhile. */
  noteErased(run: RunRef, erased: ErasedRun): Promise<void>;
  erasedRuns(
    erasureId: string,
    page: { after: string; limit: number },
  ): Promise<readonly ErasedRun[]>;
  erasedRun(run: RunRef): Promise<ErasedRun | undefined>;
  /** Rows as they are stored. */
  storedRows(run: RunRef, query: { after: number; limit: number }): Promise<readonly StoredRow[]>;
  /** The head as it is stored, as JSON text, for the log that is kept of an erased run. */
  storedHead(run: RunRef): Promise<string | undefined>;
  /** Puts rows and head back as they were kept, byte for byte. */
  restoreStored(run: RunRef, kept: { head: string; rows: readonly StoredRow[] }): Promise<void>;
  /** Signs with the host's own key; the public half stands in what is returned. */
  sign(text: string): Promise<{ readonly signature: string; readonly publicKey: string }>;
  /** The first receipt stays. */
  finish(erasure: ErasureRow, receipt: string): Promise<ErasureRow>;
  /**
   * Wraps again, with the operator's current key, up to `limit` keys that another one wraps; none while a live process
   * encrypts with another key. Of those that are not wrapped each is named, with why: HostError history_undecodable or
   * key_unavailable where it does not open.
   */
  rewrap(limit: number): Promise<Rewrapped>;
}

export interface Rewrapped {
  readonly count: number;
  /** `keyId`: also the place of a secret of the host's own. */
  readonly failed: readonly { readonly keyId: string; readonly error: unknown }[];
}
