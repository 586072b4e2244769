// Slots for steps, while the stores are there (architecture §4.1): a worker that lost one takes no more steps, instead of failing
// each at once and so taking more than its share from the workers that could perform them. What it has taken goes on.
import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';
import type { Watch } from '../../system/watch.ts';

/** At most `places` steps at once. Polls that are under way when the store goes may still bring one each. */
export function gatedSlots(
  places: number,
  store: Pick<Watch, 'isThere' | 'whenThere'>,
): CustomSlotSupplier<ActivitySlotInfo> {
  let taken = 0;
  const waiting = new Set<() => void>();

  function take(): SlotPermit | null {
    if (taken >= places || !store.isThere()) return null;
    taken++;
    return {};
  }

  function wakeNext(): void {
    const [wake] = waiting;
    wake?.();
  }

  /** Resolves when a place may be free; on abort at the latest. */
  function mayBeFree(signal: AbortSignal): Promise<void> {
    if (taken < places) return store.whenThere(signal);
    return new Promise((resolve) => {
      const wake = () => {
        waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  return {
    type: 'custom',
    async reserveSlot(_context, signal) {
      for (;;) {
        if (signal.aborted) {
          // Who was woken for a place that it does not take any more wakes the next.
          wakeNext();
          // The SDK takes the signal's own reason alone for its answer.
          throw signal.reason;
        }
        const permit = take();
        if (permit) return permit;
        await mayBeFree(signal);
      }
    },
    tryReserveSlot: take,
    markSlotUsed: () => undefined,
    releaseSlot() {
      taken--;
      wakeNext();
    },
  };
}
