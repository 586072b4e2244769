// Hints from workflow code (design §3.4): which run's history grew. One pending hint per run; a watched run is caught
// up at once, any other after a short rest that gathers what follows. A hint is kept until its work succeeded.
import { codeOf } from '../core/errors.ts';
import type { Logger } from '../ports.ts';
import type { Advanced, Goal } from './advance.ts';

/** Rest of an unwatched run between hint and catch-up, in ms. */
const DEBOUNCE_MS = 250;
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
  readonly runId: string;
}

interface Pending {
  readonly goal: Goal;
  readonly failures: number;
  readonly unreached: number;
  timer?: NodeJS.Timeout;
}

export interface HintParts {
  readonly advance: (runId: string, goal: Goal) => Promise<Advanced>;
  /** Which of these runs somebody watches now. */
  readonly watched: (runIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Called after each catch-up that reached its goal. */
  readonly onReached: (advanced: Advanced) => void;
  readonly logger: Logger;
}

export interface HintQueue {
  /** Returns at once, never throws. */
  add(hint: Hint): void;
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

export function createHintQueue({ advance, watched, onReached, logger }: HintParts): HintQueue {
  const pending = new Map<string, Pending>();
  const running = new Map<string, Promise<void>>();
  const ready = new Set<string>();
  let unclassified: string[] = [];
  let stopped = false;

  function add({ runId, temporalRunId, historyLength }: Hint): void {
    if (stopped) return;
    const known = pending.get(runId);
    const goal = furthest(known?.goal, { temporalRunId, historyLength });
    pending.set(runId, { goal, failures: 0, unreached: 0, timer: known?.timer });
    if (!known && !running.has(runId)) classify(runId);
  }

  /** Hints that come in one turn of the event loop cost one question to the database. */
  function classify(runId: string): void {
    unclassified.push(runId);
    if (unclassified.length === 1) setImmediate(() => void schedule());
  }

  async function schedule(): Promise<void> {
    const runIds = unclassified;
    unclassified = [];
    const now = await watched(runIds).catch(() => new Set<string>());
    for (const runId of runIds) wakeAfter(runId, now.has(runId) ? 0 : DEBOUNCE_MS);
  }

  function wakeAfter(runId: string, delayMs: number): void {
    const hint = pending.get(runId);
    if (!hint) return;
    if (delayMs === 0 || stopped) makeReady(runId);
    else hint.timer = setTimeout(() => makeReady(runId), delayMs).unref();
  }

  function makeReady(runId: string): void {
    if (running.has(runId)) return;
    ready.add(runId);
    pump();
  }

  function pump(): void {
    for (const runId of ready) {
      if (running.size >= CONCURRENCY) return;
      ready.delete(runId);
      const hint = pending.get(runId);
      if (!hint) continue;
      clearTimeout(hint.timer);
      pending.delete(runId);
      const work = run(runId, hint).finally(() => finish(runId));
      running.set(runId, work);
    }
  }

  async function run(runId: string, hint: Pending): Promise<void> {
    try {
      const advanced = await advance(runId, hint.goal);
      if (advanced.reached) onReached(advanced);
      else if (hint.unreached < MAX_UNREACHED) {
        keep(runId, { ...hint, unreached: hint.unreached + 1 });
      }
    } catch (error) {
      if (hint.failures === 0) {
        logger.warn('catch-up failed, trying again', {
          runId,
          code: codeOf(error),
          reason: String(error),
        });
      }
      keep(runId, { ...hint, failures: hint.failures + 1 });
    }
  }

  /** Puts a hint back, unless a newer one came meanwhile: that one counts from the start. */
  function keep(runId: string, hint: Pending): void {
    const newer = pending.get(runId);
    const goal = furthest(newer?.goal, hint.goal);
    pending.set(runId, newer ? { ...newer, goal } : { ...hint, timer: undefined });
  }

  function finish(runId: string): void {
    running.delete(runId);
    const hint = pending.get(runId);
    if (hint && !stopped) {
      const tries = hint.failures + hint.unreached;
      if (tries === 0) classify(runId);
      else wakeAfter(runId, Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1)));
    }
    pump();
  }

  async function stop(): Promise<void> {
    stopped = true;
    for (const [runId, { timer }] of [...pending]) {
      clearTimeout(timer);
      makeReady(runId);
    }
    while (running.size > 0) await Promise.all(running.values());
  }

  return { add, size: () => pending.size + running.size, stop };
}
