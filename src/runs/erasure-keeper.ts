// Goes on with erasures that a crash, or an open run, left under way, and wraps keys anew when the operator's key changed.
import { codeOf } from '../rules/errors.ts';
import { advanceErasure, type EraseDeps, type Patience } from './erase.ts';

/** Time between two rounds in ms, and what a round takes on. */
const ROUND_MS = 5_000;
const ROUND_ERASURES = 10;
const ROUND_KEYS = 100;

export interface ErasureKeeper {
  start(): void;
  /** Waits for the round that runs. */
  stop(): Promise<void>;
}

/** One try each: the next round comes soon. */
const ONCE: Patience = { isOver: () => true, rest: async () => {} };

export function createErasureKeeper(deps: EraseDeps): ErasureKeeper {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isBusy = false;
  const round = async (): Promise<void> => {
    const { subjects } = deps.stores;
    isBusy = true;
    try {
      for (const erasure of await subjects.unfinished(ROUND_ERASURES))
        await advanceErasure(deps, erasure, twice());
      await subjects.rewrap(ROUND_KEYS);
    } catch (error) {
      deps.logger.warn('an erasure did not go on', { code: codeOf(error) ?? 'internal_error' });
    } finally {
      isBusy = false;
    }
  };
  const next = (): void => {
    if (!isBusy) running = round();
  };
  return {
    start() {
      if (!deps.stores.subjects.isAvailable) return;
      timer ??= setInterval(next, ROUND_MS).unref();
      next();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await running;
    },
  };
}

/** Open runs are asked to end once in a round. */
function twice(): Patience {
  let asked = 0;
  return { ...ONCE, isOver: () => asked++ > 0 };
}
