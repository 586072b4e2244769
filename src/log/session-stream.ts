// The events of a session (seed 003 §3.3): those of all its runs in the order of the feed, backlog, then live, without
// end. Followers that stand at the same place share a read; of other sessions' runs nothing wakes them.
import { codeOf } from '../rules/errors.ts';
import type { FedRow, FeedPlace } from '../ports/feed.ts';
import type { Stores } from '../ports/stores.ts';
import { Recent } from '../system/recent.ts';
import { Bell } from '../system/time.ts';
import { coalesce } from './coalesce.ts';
import { pagesBehind, type PageSource } from './feed.ts';
import { SessionPlaces } from './session-places.ts';

/** Rows per page. */
const PAGE_ROWS = 100;
/** Runs whose sessions are remembered, for all followers. */
const RUNS_KNOWN = 10_000;

export interface SessionFollowing {
  readonly tenant: string;
  readonly sessionId: string;
  /** Exclusive; absent: from the session's first event. */
  readonly after?: FeedPlace | undefined;
  readonly signal: AbortSignal;
}

export interface Sessions {
  /**
   * Pages of at most 100 rows; the next is read when the last was taken. Where a failover of the database has lost the last row
   * that was given, or a log was made again, rows from the last that still is in its place come again: their events have the
   * same ids. Throws what the stores throw.
   */
  readonly follow: (following: SessionFollowing) => AsyncGenerator<readonly FedRow[], void, void>;
}

type SessionParts = Pick<Stores, 'feed' | 'sessions' | 'runs'> & {
  readonly log: Pick<Stores['log'], 'onChange' | 'onReconnect'>;
};

interface Reading {
  readonly tenant: string;
  readonly sessionId: string;
  readonly after: number;
  readonly limit: number;
}

export function createSessions({ feed, sessions, runs, log }: SessionParts): Sessions {
  const read = coalesce(
    (query: Reading) => feed.events(query),
    ({ tenant, sessionId, after, limit }) => JSON.stringify([tenant, sessionId, after, limit]),
  );
  const sessionsKnown = new Recent<string, Promise<string | undefined>>(RUNS_KNOWN);
  /** A run never changes its session: it is asked for once, whoever wakes by it. */
  const sessionOf = (tenant: string, runId: string): Promise<string | undefined> => {
    const key = JSON.stringify([tenant, runId]);
    const known = sessionsKnown.get(key);
    if (known) return known;
    const asked = sessions.sessionOf(tenant, runId);
    sessionsKnown.set(key, asked);
    asked.catch(() => sessionsKnown.delete(key));
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
      const places = new SessionPlaces({ feed, runs }, { tenant, sessionId }, after);
      const readNext = () => nextPage(places, (page) => read({ tenant, sessionId, ...page }));
      const source = { changed, pageRows: PAGE_ROWS, read: readNext };
      try {
        yield* pagesBehind(source, signal);
      } finally {
        for (const stop of unsubscribe) stop();
      }
    },
  };
}

type Page = Awaited<ReturnType<PageSource<FedRow>['read']>>;

/** What follows the last place. Its own row is read with it: whatever came in the place of others meanwhile is seen. */
async function nextPage(
  places: SessionPlaces,
  read: (query: Pick<Reading, 'after' | 'limit'>) => Promise<Page>,
): Promise<Page> {
  const first = { after: 0, limit: PAGE_ROWS };
  const page = places.last ? await pageFrom(places, places.last, read) : await read(first);
  const last = page.rows.at(-1);
  if (last) places.note(last);
  return page;
}

async function pageFrom(
  places: SessionPlaces,
  { position }: FeedPlace,
  read: (query: Pick<Reading, 'after' | 'limit'>) => Promise<Page>,
): Promise<Page> {
  const found = await read({ after: position - 1, limit: PAGE_ROWS + 1 }).catch(lostPosition);
  const [own, ...rows] = found?.rows ?? [];
  if (found && own && places.isLast(own)) return { ...found, rows };
  await places.goBack();
  return read({ after: places.last?.position ?? 0, limit: PAGE_ROWS });
}

/** Where the database is away, what is asked next fails as well. */
function lostPosition(error: unknown): undefined {
  if (codeOf(error) !== 'service_unavailable') throw error;
}
