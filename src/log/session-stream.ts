// The events of a session (seed 003 §3.3): those of all its runs in the order of the feed, backlog, then live, without
// end. Followers that stand at the same place share a read; of other sessions' runs nothing wakes them.
import type { FedRow } from '../ports/feed.ts';
import type { Stores } from '../ports/stores.ts';
import { Recent } from '../system/recent.ts';
import { Bell } from '../system/time.ts';
import { coalesce } from './coalesce.ts';
import { pagesBehind } from './feed.ts';

/** Rows per page. */
const PAGE_ROWS = 100;
/** Runs whose sessions are remembered, for all followers. */
const RUNS_KNOWN = 10_000;

export interface SessionFollowing {
  readonly tenant: string;
  readonly sessionId: string;
  /** Position in the feed, exclusive; 0 = from the session's first event. */
  readonly after: number;
  readonly signal: AbortSignal;
}

export interface Sessions {
  /** Pages of at most 100 rows; the next is read when the last was taken. Throws what the stores throw. */
  readonly follow: (following: SessionFollowing) => AsyncGenerator<readonly FedRow[], void, void>;
}

type SessionParts = Pick<Stores, 'feed' | 'sessions'> & {
  readonly log: Pick<Stores['log'], 'onChange' | 'onReconnect'>;
};

export function createSessions({ feed, sessions, log }: SessionParts): Sessions {
  const read = coalesce(
    (query: { readonly tenant: string; readonly sessionId: string; readonly after: number }) =>
      feed.events({ ...query, limit: PAGE_ROWS }),
    ({ tenant, sessionId, after }) => JSON.stringify([tenant, sessionId, after]),
  );
  const places = new Recent<string, Promise<string | undefined>>(RUNS_KNOWN);
  /** A run never changes its session: it is asked for once, whoever wakes by it. */
  const sessionOf = (tenant: string, runId: string): Promise<string | undefined> => {
    const key = JSON.stringify([tenant, runId]);
    const known = places.get(key);
    if (known) return known;
    const asked = sessions.sessionOf(tenant, runId);
    places.set(key, asked);
    asked.catch(() => places.delete(key));
    return asked;
  };

  return {
    async *follow({ tenant, sessionId, after, signal }) {
      const changed = new Bell();
      const noted = async (runId: string): Promise<void> => {
        if ((await sessionOf(tenant, runId)) === sessionId) changed.ring();
      };
      const unsubscribe = [
        // Where it cannot be asked whose run that is, a look too many is taken.
        log.onChange(({ runId }) => void noted(runId).catch(() => changed.ring())),
        log.onReconnect(() => changed.ring()),
      ];
      const source = {
        ...{ changed, pageRows: PAGE_ROWS },
        read: (position: number) => read({ tenant, sessionId, after: position }),
      };
      try {
        yield* pagesBehind(source, { after, signal });
      } finally {
        for (const stop of unsubscribe) stop();
      }
    },
  };
}
