// Slots for steps, while the stores are there (architecture §4.1): a worker that lost one takes no more steps, instead of failing
// each at once and so taking more than its share from the workers that could perform them. What it has taken goes on.
import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';
import { Waiters } from '../../system/time.ts';
import type { Watch } from '../../system/watch.ts';

/** At most `places` steps at once. Polls that are under way when the store goes may still bring one each. */
export function gatedSlots(
  places: number,
  store: Pick<Watch, 'isThere' | 'whenThere'>,
): CustomSlotSupplier<ActivitySlotInfo> {
  let taken = 0;
  const waiters = new Waiters();

  function take(): SlotPermit | null {
    if (taken >= places || !store.isThere()) return null;
    taken++;
    return {};
  }

  /** Resolves when a place may be free; on abort at the latest. */
  function mayBeFree(signal: AbortSignal): Promise<void> {
    return taken < places ? store.whenThere(signal) : waiters.wait(signal);
  }

  return {
    type: 'custom',
    async reserveSlot(_context, signal) {
      for (;;) {
        if (signal.aborted) {
          // Who was woken for a place that it does not take any more wakes the next.
          waiters.wakeNext();
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
      waiters.wakeNext();
    },
  };
}
