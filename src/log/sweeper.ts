// The sweep (architecture §3.4): ends that no worker saw. Again and again it asks which executions closed behind a
// watermark, with an overlap, and has the logs caught up that are still open.
import type { HistoryReader } from '../ports/history.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import { Recent } from '../system/recent.ts';
import { rest } from '../system/time.ts';

const SWEEP_EVERY_MS = 10_000;
/** Visibility is late: each sweep looks back so far behind the newest end that it has seen, in ms. */
const SWEEP_OVERLAP_MS = 60_000;
/** Windows of closed runs that one sweep reads at most; the watermark moves with each. */
const MAX_WINDOWS = 1_000;
/** Ended runs that the sweep need not look at again. */
const MAX_KNOWN_ENDED = 5_000;

export interface SweeperParts {
  readonly stores: Pick<Stores, 'projection'> & {
    readonly log: Pick<Stores['log'], 'onReconnect'>;
  };
  readonly history: Pick<HistoryReader, 'closedSince'>;
  /** Never throws: a run that fails is tried again by whom this belongs to, and the sweep goes on to the next. */
  readonly catchUp: (run: RunRef) => Promise<unknown>;
  readonly logger: Logger;
  /** For tests; SWEEP_EVERY_MS when absent. */
  readonly everyMs?: number;
}

export interface Sweeper {
  /** Sweeps at once, then again and again. */
  start(): void;
  /** Ends behind the run at which the sweep is; the watermark has not passed what was not looked at. */
  stop(): Promise<void>;
}

class WatermarkSweeper implements Sweeper {
  readonly #parts: SweeperParts;
  readonly #stopping = new AbortController();
  readonly #signal = this.#stopping.signal;
  #knownEnded = new Recent<string, true>(MAX_KNOWN_ENDED);
  #unsubscribe = () => {};
  #running: Promise<void> | undefined;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
  }

  start(): void {
    // A database that failed over may have lost ends that it had.
    const forget = () => void (this.#knownEnded = new Recent(MAX_KNOWN_ENDED));
    if (!this.#running) this.#unsubscribe = this.#parts.stores.log.onReconnect(forget);
    // As Temporal tells when executions closed: by the wall clock.
    this.#running ??= this.#run(Date.now());
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#unsubscribe();
    await this.#running;
  }

  async #run(startedAtMs: number): Promise<void> {
    const { logger, everyMs = SWEEP_EVERY_MS } = this.#parts;
    while (!this.#signal.aborted) {
      try {
        await this.#sweep(startedAtMs);
      } catch (error) {
        logger.debug('the sweep failed, trying again', { reason: String(error) });
      }
      await rest(everyMs, this.#signal);
    }
  }

  async #sweep(startedAtMs: number): Promise<void> {
    const { history } = this.#parts;
    const { projection } = this.#parts.stores;
    const watermark = (await projection.sweepWatermark()) ?? startedAtMs;
    let since: number | undefined = watermark - SWEEP_OVERLAP_MS;
    for (let windows = 0; since !== undefined && windows < MAX_WINDOWS; windows++) {
      const { runIds, newestMs, moreAfterMs } = await history.closedSince(since);
      await this.#sweepRuns(runIds.filter((runId) => !this.#knownEnded.has(runId)));
      if (this.#signal.aborted) return;
      if (newestMs > watermark) await projection.setSweepWatermark(newestMs);
      since = moreAfterMs;
    }
  }

  async #sweepRuns(runIds: readonly string[]): Promise<void> {
    if (runIds.length === 0) return;
    const { stores, catchUp } = this.#parts;
    const knownEnded = this.#knownEnded;
    const open = await stores.projection.stillOpen(runIds);
    const openIds = new Set(open.map(({ runId }) => runId));
    for (const runId of runIds) if (!openIds.has(runId)) knownEnded.set(runId, true);
    for (const run of open) {
      if (this.#signal.aborted) return;
      await catchUp(run);
    }
  }
}

export function createSweeper(parts: SweeperParts): Sweeper {
  return new WatermarkSweeper(parts);
}
