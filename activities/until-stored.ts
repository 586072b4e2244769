// An answer from outside that is stored nowhere yet (architecture §4.1). While the host's own store is away, the try that has
// the answer keeps it and stores it later: to get it again would ask, or pay, a second time. A worker that is told to stop
// keeps it for its grace alone.
import { Context } from '@temporalio/activity';
import { codeOf, isOutage } from '../src/rules/errors.ts';
import { BackOff, rest } from '../src/system/time.ts';
import { msLeft } from './tries.ts';

/** ms between two tries to store. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** `store` may run any number of times. Throws what it throws, of an outage when the try's time is nearly over. */
export async function untilStored<Result>(store: () => Promise<Result>): Promise<Result> {
  const { cancellationSignal } = Context.current();
  const pauses = new BackOff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  for (;;) {
    try {
      return await store();
    } catch (error) {
      const code = codeOf(error);
      const isAway = code !== undefined && isOutage(code);
      const pauseMs = pauses.next();
      if (!isAway || cancellationSignal.aborted || msLeft() < pauseMs) throw error;
      await rest(pauseMs, cancellationSignal);
    }
  }
}
