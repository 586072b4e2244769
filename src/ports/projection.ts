// Who wants which run now, which process lives, and how far each came (architecture §3.4).
import type { RunRef } from './runs.ts';

/** The lease of a process that did not renew it, as whoever took it holds it. */
export interface TakenLease {
  readonly holder: string;
  /** By it the taker's lease is told from one that its holder has renewed, or another taker has won. */
  readonly expiresAtMs: number;
}

/** Who wants which run now, who is alive, and how far the sweep got (architecture §3.4). */
export interface ProjectionStore {
  watch(run: RunRef, watcher: string, ttlMs: number): Promise<void>;
  unwatch(run: RunRef, watcher: string): Promise<void>;
  /** The runIds of those that somebody watches now. */
  watched(runs: readonly RunRef[]): Promise<ReadonlySet<string>>;
  /** Calls back with the runId when somebody begins to watch a run, in whatever process. */
  onWatch(listener: (runId: string) => void): () => void;
  /** Renews this process's lease. */
  renewLease(holder: string, ttlMs: number): Promise<void>;
  /**
   * Claims one expired lease for `ttlMs`: the caller won it. Until the caller releases it, it expires again, unless it is
   * renewed.
   */
  takeExpiredLease(ttlMs: number): Promise<TakenLease | undefined>;
  /** Undefined: its holder is back, or another taker has won it. */
  renewTaken(lease: TakenLease, ttlMs: number): Promise<TakenLease | undefined>;
  /** Changes nothing where its holder is back, or another taker has won it. */
  releaseTaken(lease: TakenLease): Promise<void>;
  /** Of this process itself. */
  releaseLease(holder: string): Promise<void>;
  /** Above the runId `after`, ascending by runId. */
  openRuns(after: string, limit: number): Promise<readonly RunRef[]>;
  /** Those of these runs whose log is not closed, whosever they are: Temporal names no tenant. */
  stillOpen(runIds: readonly string[]): Promise<readonly RunRef[]>;
  /** Undefined, too, where it is far ahead of now: it would hide all that closes until then. */
  sweepWatermark(): Promise<number | undefined>;
  /** Goes forward alone; one that is more than a minute ahead of now is replaced. */
  setSweepWatermark(ms: number): Promise<void>;
}
