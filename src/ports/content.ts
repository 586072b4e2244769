// What is too large to be carried, by its hash (architecture §2.6), and who needs it (architecture §3.7).
import type { RunRef } from './runs.ts';

/** Who needs a value: it is kept until all of them have expired. */
export interface ContentHolder {
  readonly tenant: string;
  /** A run that is there, as its RunRef names it; absent: the host itself, for good. */
  readonly runId?: string;
}

export interface NewContent {
  readonly holder: ContentHolder;
  readonly bytes: Uint8Array;
  /** A raw history, or the log of an erased run: its run's alone, so that no fork takes it over. */
  readonly isArchive?: true;
}

export interface ContentStore {
  /**
   * Returns `sha256:<hex>` of the bytes as they are stored: sealed, where the run that needs them has a subject. Idempotent.
   * Throws HostError payload_too_large above 64 MiB, and run_not_found for a run that is not there, or not any more.
   */
  put(holder: ContentHolder, bytes: Uint8Array): Promise<string>;
  /**
   * Several values as they are (payloads of histories are sealed already), their hashes in their order. When it throws,
   * any of them may be stored.
   */
  putAll(values: readonly NewContent[]): Promise<readonly string[]>;
  /** Throws HostError content_missing, and subject_erased: nobody can open it any more. */
  get(tenant: string, hash: string): Promise<Uint8Array>;
  /** Whatever one run needs, but for its archive, another one needs from now on: a fork has its source's record. */
  share(from: RunRef, to: RunRef): Promise<void>;
  /**
   * Deletes values that nobody needs any more, at most `limit` of them; returns how many were looked at, without those that
   * cannot be removed now: they come again behind all others.
   */
  sweep(limit: number): Promise<number>;
}
