// What waits while a record is played (architecture §6): conditions and timers as the SDK has them, over as many promises, so
// that what one task wakes goes on in the order in which it did. The record has when a timer ended.
import { CancellationScope } from '@temporalio/workflow';

/** What waited begins to wait again, until then. */
export interface GoOn {
  readonly deadlineMs: number | undefined;
}
interface Wait {
  /** A segment of the source that begins does not drop it. */
  readonly isLasting: boolean;
  readonly deadlineMs: number | undefined;
  readonly ready: () => boolean;
  /** Takes the wait off. */
  settle(as: true | GoOn): void;
}

interface Timer {
  readonly deadlineMs: number;
  /** Takes the timer off. */
  fire(): void;
}

interface WaitOptions {
  readonly deadlineMs?: number | undefined;
  readonly isLasting?: boolean;
}

export class RecordedWaits {
  readonly #waits = new Set<Wait>();
  readonly #timers = new Set<Timer>();

  /** As the SDK's condition, so that what continues does so in the same order (live-steps.ts). */
  async condition(ready: () => boolean, deadlineMs?: number): Promise<boolean | GoOn> {
    if (deadlineMs === undefined) return this.until(ready);
    return CancellationScope.cancellable(async () => {
      try {
        return await Promise.race([
          this.sleep(deadlineMs).then(() => false),
          this.until(ready, { deadlineMs }).then((as) => as),
        ]);
      } finally {
        CancellationScope.current().cancel();
      }
    });
  }

  /** Rejects when the scope is cancelled. */
  until(
    ready: () => boolean,
    { deadlineMs, isLasting = false }: WaitOptions = {},
  ): Promise<true | GoOn> {
    return new Promise((resolve, reject) => {
      const wait: Wait = {
        ...{ isLasting, deadlineMs, ready },
        settle: (as) => {
          if (this.#waits.delete(wait)) resolve(as);
        },
      };
      const isOpen = whileUncancelled((cause) => {
        if (!isOpen || this.#waits.delete(wait)) reject(cause);
      });
      if (!isOpen) return;
      this.#waits.add(wait);
      if (ready()) wait.settle(true);
    });
  }

  /** As the SDK's sleep: the record has when it ended. */
  sleep(deadlineMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer: Timer = {
        deadlineMs,
        fire: () => {
          if (this.#timers.delete(timer)) resolve();
        },
      };
      const isOpen = whileUncancelled((cause) => {
        if (!isOpen || this.#timers.delete(timer)) reject(cause);
      });
      if (isOpen) this.#timers.add(timer);
    });
  }

  /** False: nothing was. */
  settleReady(): boolean {
    const ready = [...this.#waits].filter((wait) => wait.ready());
    for (const wait of ready) wait.settle(true);
    return ready.length > 0;
  }

  /** One timer that ends then. */
  fire(deadlineMs: number): void {
    [...this.#timers].find((it) => it.deadlineMs === deadlineMs)?.fire();
  }

  /** What waits in a segment of the source that has ended never goes on. */
  leaveSegment(): void {
    for (const wait of this.#waits) if (!wait.isLasting) this.#waits.delete(wait);
    this.#timers.clear();
  }

  /** Each begins anew, so much later where it ends at a time. */
  again(laterMs: number): void {
    for (const wait of [...this.#waits]) {
      const { deadlineMs } = wait;
      wait.settle({ deadlineMs: deadlineMs === undefined ? undefined : deadlineMs + laterMs });
    }
  }
}

/** Calls `end` once the scope is cancelled. False: it is so already. */
export function whileUncancelled(end: (cause: Error) => void): boolean {
  const scope = CancellationScope.current();
  if (scope.consideredCancelled || scope.cancellable) scope.cancelRequested.catch(end);
  return !scope.consideredCancelled;
}
