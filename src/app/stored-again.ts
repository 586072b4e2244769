// Manifests of the catalog are stored when it is loaded, and runs pin them by hash. A failover of the database may lose
// them: they are stored again whenever it is back (architecture §4.1).
import type { LoadedCatalog } from '../adapters/catalog/index.ts';
import type { Log } from '../log/log.ts';
import type { Logger } from '../ports/logger.ts';
import { BackOff, rest } from '../system/time.ts';

/** Pauses between tries in ms, and tries after one return of the database. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const TRIES = 20;

interface StoredAgainParts {
  readonly catalog: Pick<LoadedCatalog, 'store'>;
  readonly log: Pick<Log, 'onReconnect'>;
  readonly logger: Logger;
}

/** Returns what ends it. */
export function storeAgain({ catalog, log, logger }: StoredAgainParts): () => Promise<void> {
  const ended = new AbortController();
  let isWanted = false;
  let working: Promise<void> | undefined;
  const round = async (): Promise<void> => {
    const backOff = new BackOff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    for (let tries = 0; isWanted && tries < TRIES && !ended.signal.aborted; tries++) {
      isWanted = false;
      try {
        await catalog.store();
      } catch (error) {
        isWanted = true;
        logger.warn('the agents of the catalog could not be stored again', { error });
        await rest(backOff.next(), ended.signal);
      }
    }
  };
  const unsubscribe = log.onReconnect(() => {
    isWanted = true;
    working ??= round().finally(() => {
      working = undefined;
    });
  });
  return async () => {
    unsubscribe();
    ended.abort();
    await working;
  };
}
