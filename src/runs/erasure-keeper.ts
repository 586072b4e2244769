// Goes on with erasures that a crash, or an open run, left under way, and wraps keys of
// subjects again after the operator's key changed.
import type { LeftErasure } from '../ports/subjects.ts';
import { createRounds } from '../log/rounds.ts';
import { advanceErasure, type EraseDeps, type Patience } from './erase.ts';

/** Time between two rounds in ms, the erasures that are read at once, and the keys that a round wraps again. */
const ROUND_MS = 5_000;
const PAGE_ERASURES = 10;
const ROUND_KEYS = 500;

export interface ErasureKeeper {
  start(): void;
  /** Waits for the round that runs. */
  stop(): Promise<void>;
}

/** One try each: the next round comes soon. */
const ONCE: Patience = { isOver: () => true, isLate: () => false, rest: async () => {} };

export type ErasureKeeperDeps = EraseDeps & {
  /** For tests; ROUND_MS when absent. */
  readonly roundMs?: number;
};

export function createErasureKeeper(deps: ErasureKeeperDeps): ErasureKeeper {
  const { roundMs = ROUND_MS } = deps;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isBusy = false;
  let isStopped = false;
  const { subjects } = deps.stores;
  const rounds = createRounds({ logger: deps.logger, answers: () => deps.stores.ping() });
  const guarded = async (
    what: string,
    work: () => Promise<unknown>,
    fields: Readonly<Record<string, string>> = {},
  ): Promise<void> =>
    void (await rounds.turn({ message: `${what} did not go on, trying again`, fields }, work));
  const advanceAll = async (): Promise<void> => {
    for (let after: LeftErasure | undefined; !isStopped;) {
      const page = await subjects.unfinished({ after, limit: PAGE_ERASURES });
      for (const { tenant, erasureId } of page) {
        if (isStopped) return;
        const goOn = async () => {
          const erasure = await subjects.erasure(tenant, erasureId);
          if (erasure) await advanceErasure(deps, erasure, twice());
        };
        await guarded('an erasure', goOn, { erasureId });
      }
      if (page.length < PAGE_ERASURES) return;
      after = page.at(-1);
    }
  };
  const rewrap = async (): Promise<void> => {
    const keys = await subjects.rewrap(ROUND_KEYS);
    if (keys > 0)
      deps.logger.info('keys were wrapped again by the current encryption key', { keys });
  };
  const round = async (): Promise<void> => {
    isBusy = true;
    await guarded('erasures', advanceAll);
    await guarded('wrapping keys of subjects again', rewrap);
    isBusy = false;
  };
  const next = (): void => {
    if (!isBusy) running = round();
  };
  return {
    start() {
      if (!subjects.isAvailable) return;
      timer ??= setInterval(next, roundMs).unref();
      next();
    },
    async stop() {
      isStopped = true;
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
