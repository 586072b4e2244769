// Hints from workflow code (architecture §3.4): which run's history grew. One pending hint per run; a watched run is
// caught up at once; the others rest and are caught up together, so that they share reads and transactions, and a short
// run is read once, when it has ended. A hint is kept until its work succeeded.
import { codeOf } from '../rules/errors.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import { BackOff } from '../system/time.ts';
import type { Advanced, Goal } from './advance.ts';

/** Runs that rest are looked at so often, in ms: what has ended meanwhile is caught up, and what rested long enough. */
const GATHER_MS = 250;
/** An unwatched run that goes on rests one GATHER_MS, and one more for each so many that are hinted, up to a limit. */
const RUNS_PER_REST = 6;
const MAX_REST_MS = 1_000;
/** Runs caught up at once. */
const CONCURRENCY = 16;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 15_000;
/**
 * Times that a goal may stay out of reach without any error. The hinted workflow task was never recorded then; the
 * one that takes its place gives a hint of its own.
 */
const MAX_UNREACHED = 10;

export interface Hint extends Goal {
  readonly run: RunRef;
  /** Nothing follows in this segment. */
  readonly terminal: boolean;
}

interface Pending {
  readonly run: RunRef;
  readonly goal: Goal;
  readonly terminal: boolean;
  /** When it was hinted first, on the clock of `performance`. */
  readonly sinceMs: number;
  readonly failures: number;
  readonly unreached: number;
  /** Of its tries again; absent before the first. */
  readonly backOff?: BackOff;
  timer?: NodeJS.Timeout;
}

export interface HintParts {
  readonly advance: (run: RunRef, goal: Goal) => Promise<Advanced>;
  /** The runIds of those that somebody watches now. */
  readonly watched: (runs: readonly RunRef[]) => Promise<ReadonlySet<string>>;
  /** Called after each catch-up that reached its goal. */
  readonly onReached: (advanced: Advanced) => void;
  readonly logger: Logger;
}

export interface HintQueue {
  /** Returns at once, never throws. */
  add(hint: Hint): void;
  /** Somebody begins to watch: a hint that rests is done at once. */
  wanted(runId: string): void;
  /** Runs with a hint that is not done. */
  size(): number;
  /** Takes nothing more, does at once what is pending and resolves when work under way has ended. */
  stop(): Promise<void>;
}

function furthest(known: Goal | undefined, goal: Goal): Goal {
  const further =
    known?.temporalRunId === goal.temporalRunId && known.historyLength > goal.historyLength;
  return further ? known : goal;
}

class PendingHints implements HintQueue {
  readonly #parts: HintParts;
  readonly #pending = new Map<string, Pending>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #ready = new Set<string>();
  readonly #resting = new Set<string>();
  /** Of those whose watchers are looked up: whether somebody began to watch meanwhile. */
  readonly #asking = new Map<string, boolean>();
  #gathering: NodeJS.Timeout | undefined;
  #unclassified: RunRef[] = [];
  #stopped = false;

  constructor(parts: HintParts) {
    this.#parts = parts;
  }

  add({ run, temporalRunId, historyLength, terminal }: Hint): void {
    if (this.#stopped) return;
    const { runId } = run;
    const known = this.#pending.get(runId);
    this.#pending.set(runId, {
      run,
      goal: furthest(known?.goal, { temporalRunId, historyLength }),
      terminal: terminal || (known?.terminal ?? false),
      sinceMs: known?.sinceMs ?? performance.now(),
      failures: 0,
      unreached: 0,
      timer: known?.timer,
    });
    if (!known && !this.#running.has(runId)) this.#classify(run);
  }

  wanted(runId: string): void {
    if (this.#resting.delete(runId)) this.#makeReady(runId);
    else if (this.#asking.has(runId)) this.#asking.set(runId, true);
  }

  size(): number {
    return this.#pending.size + this.#running.size;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#gathering);
    for (const [runId, { timer }] of [...this.#pending]) {
      clearTimeout(timer);
      this.#makeReady(runId);
    }
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Hints that come in one turn of the event loop cost one question to the database. */
  #classify(run: RunRef): void {
    this.#unclassified.push(run);
    this.#asking.set(run.runId, false);
    if (this.#unclassified.length === 1) setImmediate(() => void this.#schedule());
  }

  async #schedule(): Promise<void> {
    const runs = this.#unclassified;
    this.#unclassified = [];
    const now = await this.#parts.watched(runs).catch(() => new Set<string>());
    for (const { runId } of runs) {
      const isWanted = this.#asking.get(runId);
      this.#asking.delete(runId);
      if (isWanted || now.has(runId) || this.#stopped) this.#makeReady(runId);
      else this.#resting.add(runId);
    }
    this.#gatherSoon();
  }

  /** No rest: a stop calls it off. */
  #gatherSoon(): void {
    if (this.#gathering || this.#stopped || this.#resting.size === 0) return;
    this.#gathering = setTimeout(() => this.#gather(), GATHER_MS).unref();
  }

  #gather(): void {
    this.#gathering = undefined;
    const rests = 1 + Math.floor(this.#pending.size / RUNS_PER_REST);
    const restMs = Math.min(MAX_REST_MS, rests * GATHER_MS);
    const restedBeforeMs = performance.now() - restMs;
    for (const runId of this.#resting) {
      const hint = this.#pending.get(runId);
      if (hint && !hint.terminal && hint.sinceMs > restedBeforeMs) continue;
      this.#resting.delete(runId);
      this.#makeReady(runId);
    }
    this.#gatherSoon();
  }

  #wakeAfter(runId: string, delayMs: number): void {
    const hint = this.#pending.get(runId);
    // No rest: a stop, or room for its work, calls it off.
    if (hint) hint.timer = setTimeout(() => this.#makeReady(runId), delayMs).unref();
  }

  #makeReady(runId: string): void {
    if (this.#running.has(runId)) return;
    this.#ready.add(runId);
    this.#pump();
  }

  #pump(): void {
    for (const runId of this.#ready) {
      if (this.#running.size >= CONCURRENCY) return;
      this.#ready.delete(runId);
      const hint = this.#pending.get(runId);
      if (!hint) continue;
      clearTimeout(hint.timer);
      this.#pending.delete(runId);
      const work = this.#run(runId, hint).finally(() => this.#finish(runId));
      this.#running.set(runId, work);
    }
  }

  async #run(runId: string, hint: Pending): Promise<void> {
    const { advance, onReached, logger } = this.#parts;
    try {
      const advanced = await advance(hint.run, hint.goal);
      if (advanced.reached) onReached(advanced);
      else if (hint.unreached < MAX_UNREACHED) {
        this.#keep(runId, { ...hint, unreached: hint.unreached + 1 });
      }
    } catch (error) {
      if (hint.failures === 0) {
        const fields = { runId, code: codeOf(error), reason: String(error) };
        logger.warn('catch-up failed, trying again', fields);
      }
      this.#keep(runId, { ...hint, failures: hint.failures + 1 });
    }
  }

  /** Puts a hint back, unless a newer one came meanwhile: that one counts from the start. */
  #keep(runId: string, hint: Pending): void {
    const newer = this.#pending.get(runId);
    const kept = newer
      ? {
          ...newer,
          goal: furthest(hint.goal, newer.goal),
          terminal: newer.terminal || hint.terminal,
        }
      : {
          ...hint,
          backOff: hint.backOff ?? new BackOff(FIRST_BACKOFF_MS, MAX_BACKOFF_MS),
          timer: undefined,
        };
    this.#pending.set(runId, kept);
  }

  #finish(runId: string): void {
    this.#running.delete(runId);
    const hint = this.#pending.get(runId);
    if (hint && !this.#stopped) {
      if (hint.backOff) this.#wakeAfter(runId, hint.backOff.next());
      else this.#classify(hint.run);
    }
    this.#pump();
  }
}

export function createHintQueue(parts: HintParts): HintQueue {
  return new PendingHints(parts);
}
