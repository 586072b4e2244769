// Goes on with erasures that have no receipt yet, and wraps keys of subjects again after the operator's key changed.
import type { LeftErasure } from '../ports/subjects.ts';
import { createRounds } from '../log/rounds.ts';
import { HostError } from '../rules/errors.ts';
import { advanceErasure, type EraseDeps, type Patience } from './erase.ts';
import { UnreadRuns } from '../log/unread-runs.ts';

/** Time between two rounds in ms, the erasures that are read at once, and the keys that a round wraps again. */
const ROUND_MS = 5_000;
/** Rounds in which a run cannot be read, before its log ends without what is unread. */
const MIN_UNREAD_ROUNDS = 4;
const PAGE_ERASURES = 10;
const ROUND_KEYS = 500;

export interface ErasureKeeper {
  start(): void;
  /** Waits for the round that runs. */
  stop(): Promise<void>;
}

export type ErasureKeeperDeps = EraseDeps & {
  /** For tests; ROUND_MS when absent. */
  readonly roundMs?: number;
};

export function createErasureKeeper(given: ErasureKeeperDeps): ErasureKeeper {
  const { roundMs = ROUND_MS } = given;
  const deps = { ...given, unread: new UnreadRuns(MIN_UNREAD_ROUNDS) };
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
          const { waitsFor } = (erasure && (await advanceErasure(deps, erasure, twice()))) ?? {};
          // It stands at the erasure; what fails again and again has its turn less often.
          if (waitsFor?.kind === 'failed')
            throw new HostError('internal_error', { reason: waitsFor.reason });
        };
        await guarded('an erasure', goOn, { erasureId });
      }
      if (page.length < PAGE_ERASURES) return;
      after = page.at(-1);
    }
  };
  const rewrap = async (): Promise<void> => {
    const { count: keys, failed } = await subjects.rewrap(ROUND_KEYS);
    if (keys > 0)
      deps.logger.info('keys were wrapped again by the current encryption key', { keys });
    // Each by itself: one that does not open is named, and delays no batch.
    for (const { keyId, error } of failed) {
      const turn = { message: 'a key is not wrapped again, trying again', fields: { keyId } };
      await rounds.turn(turn, async () => {
        throw error as Error;
      });
    }
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

/** Two tries in a round: open runs are asked to end once. */
function twice(): Patience {
  let asked = 0;
  return { isOver: () => asked++ > 0, isLate: () => false, rest: async () => {} };
}
