// Who wants which run now, which process lives, and how far each came (design §3.4).

/** Who wants which run now, who is alive, and how far the sweep got (design §3.4). */
export interface ProjectionStore {
  watch(runId: string, watcher: string, ttlMs: number): Promise<void>;
  unwatch(runId: string, watcher: string): Promise<void>;
  watched(runIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Renews this process's lease. */
  renewLease(holder: string, ttlMs: number): Promise<void>;
  /** Deletes one expired lease of another and returns its holder: the caller won it. */
  takeExpiredLease(): Promise<string | undefined>;
  releaseLease(holder: string): Promise<void>;
  openRuns(after: string, limit: number): Promise<readonly string[]>;
  sweepWatermark(): Promise<number | undefined>;
  setSweepWatermark(ms: number): Promise<void>;
}
