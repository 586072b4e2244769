// Readers of the feed (architecture §3.6): pages behind a position, woken by changes of logs in any process. Nothing is
// asked while nothing changes, except soon again behind a page that ended where somebody still wrote.
import type { FeedPage, FeedQuery, FeedRow } from '../ports/feed.ts';
import type { Stores } from '../ports/stores.ts';
import { BackOff, Bell, rest } from '../system/time.ts';

/** Rows per page. */
const PAGE_ROWS = 500;
/** Rest after a read in ms: what changes meanwhile, be it of others, costs one read more. */
const REST_MS = 20;
/** Rest in ms behind a page that was held back, doubled each time; longest for a writer that lasts. */
const FIRST_HELD_MS = 20;
const MAX_HELD_MS = 1_000;

export interface FeedReading extends Omit<FeedQuery, 'limit'> {
  readonly signal: AbortSignal;
}

type FeedParts = Pick<Stores, 'feed'> & {
  readonly log: Pick<Stores['log'], 'onChange' | 'onReconnect'>;
};

/**
 * Pages of at most 500 rows, in the order of their positions, without end until `signal`. The next one is read when the
 * last was taken: a slow reader holds up nobody and fills no buffer. Throws what the store throws: service_unavailable also where
 * the database has lost the position, so that the reader begins again.
 */
export async function* readFeed(
  { feed, log }: FeedParts,
  { tenant, sessionId, after, signal }: FeedReading,
): AsyncGenerator<readonly FeedRow[], void, void> {
  const changed = new Bell();
  const unsubscribe = [log.onChange(() => changed.ring()), log.onReconnect(() => changed.ring())];
  let position = after;
  const read = async (): Promise<FeedPage> => {
    const page = await feed.read({ tenant, sessionId, after: position, limit: PAGE_ROWS });
    position = page.rows.at(-1)?.position ?? position;
    return page;
  };
  try {
    yield* pagesBehind({ read, pageRows: PAGE_ROWS, changed }, signal);
  } finally {
    for (const stop of unsubscribe) stop();
  }
}

export interface PageSource<Row> {
  /** What follows the last page. */
  readonly read: () => Promise<{ readonly rows: readonly Row[]; readonly heldBack: boolean }>;
  /** What a page holds that ends before the last row there is. */
  readonly pageRows: number;
  /** Rings when there may be more. */
  readonly changed: Bell;
}

/** Page after page, each read when the one before was taken and something may have come behind it. */
export async function* pagesBehind<Row>(
  { read, pageRows, changed }: PageSource<Row>,
  signal: AbortSignal,
): AsyncGenerator<readonly Row[], void, void> {
  const held = new BackOff(FIRST_HELD_MS, MAX_HELD_MS);
  while (!signal.aborted) {
    const page = await read();
    if (page.rows.length > 0) {
      held.reset();
      yield page.rows;
      if (page.rows.length === pageRows) continue;
    }
    await rest(REST_MS, signal);
    if (!page.heldBack) held.reset();
    await changed.rung(signal, page.heldBack ? held.next() : undefined);
  }
}
