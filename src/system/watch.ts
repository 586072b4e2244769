// Whether somebody without whom this process can do nothing is there: asked at a pace, and at once where somebody had no
// answer. What waits for it begins again by itself.
import { Bell, Waiters } from './time.ts';

/** ms between two questions, while it is there, and while it is away. */
const PACE_MS = 1_000;
const PACE_AWAY_MS = 250;
/** Questions in a row without an answer after which it counts as away: one that is busy answers the next. */
const MISSES = 2;

export interface Watch {
  isThere(): boolean;
  /** Resolves while it is there; on abort at the latest. */
  whenThere(signal: AbortSignal): Promise<void>;
  /** Somebody had no answer: it is asked now. */
  doubt(): void;
  /** Resolves when the last question is answered, or given up by its own limit. */
  stop(): Promise<void>;
}

export interface WatchParts {
  /** Rejects where it is away; within a limit of its own. */
  readonly ask: () => Promise<unknown>;
  /** `error`: why it is taken to be away. */
  readonly onChange: (isThere: boolean, error?: unknown) => void;
}

/** It is there until a question says otherwise: who watches has just met it. */
export function startWatch({ ask, onChange }: WatchParts): Watch {
  const stopping = new AbortController();
  const { signal } = stopping;
  const doubted = new Bell();
  const waiters = new Waiters();
  let isThere = true;
  let missed = 0;

  function note(error: unknown): void {
    const was = isThere;
    missed = error === undefined ? 0 : missed + 1;
    isThere = missed === 0 || (was && missed < MISSES);
    // One who did not answer is asked once more at once.
    if (isThere && missed > 0) doubted.ring();
    if (was !== isThere) onChange(isThere, error);
    if (isThere) waiters.wakeAll();
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await doubted.rung(signal, isThere ? PACE_MS : PACE_AWAY_MS);
      if (signal.aborted) return;
      note(
        await ask().then(
          () => undefined,
          (error: unknown) => error ?? new Error('no answer'),
        ),
      );
    }
  }

  const running = run();
  return {
    isThere: () => isThere,
    async whenThere(until) {
      while (!isThere && !until.aborted) await waiters.wait(until);
    },
    // While it is away it is asked often enough.
    doubt: () => void (isThere && doubted.ring()),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
