// Readers of the feed (architecture §3.6): pages behind a position, woken by changes of logs in any process. Nothing is
// asked while nothing changes, except soon again behind a page that ended where somebody still wrote.
import type { FeedPage, FeedQuery, FeedRow } from '../ports/feed.ts';
import type { Stores } from '../ports/stores.ts';
import { rest } from '../system/time.ts';

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

/** Remembers that something changed until it is asked. */
class Changes {
  #changed = false;
  #wake: (() => void) | undefined;

  note(): void {
    this.#changed = true;
    this.#wake?.();
  }

  /** Resolves at once after a change since the last call, else with the next one, after `limitMs` or on abort. */
  async next(signal: AbortSignal, limitMs: number | undefined): Promise<void> {
    const ended = new AbortController();
    if (!this.#changed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener('abort', () => resolve(), { signal: ended.signal });
        const timer = limitMs === undefined ? undefined : setTimeout(resolve, limitMs);
        ended.signal.addEventListener('abort', () => clearTimeout(timer));
      });
      ended.abort();
      this.#wake = undefined;
    }
    this.#changed = false;
  }
}

/**
 * Pages of at most 500 rows, in the order of their positions, without end until `signal`. The next one is read when the
 * last was taken: a slow reader holds up nobody and fills no buffer. Throws what the store throws.
 */
export async function* readFeed(
  { feed, log }: FeedParts,
  { tenant, sessionId, after, signal }: FeedReading,
): AsyncGenerator<readonly FeedRow[], void, void> {
  const changes = new Changes();
  const unsubscribe = [log.onChange(() => changes.note()), log.onReconnect(() => changes.note())];
  try {
    let position = after;
    let heldMs = FIRST_HELD_MS;
    while (!signal.aborted) {
      const page: FeedPage = await feed.read({
        tenant,
        sessionId,
        after: position,
        limit: PAGE_ROWS,
      });
      const last = page.rows.at(-1);
      if (last) {
        position = last.position;
        heldMs = FIRST_HELD_MS;
        yield page.rows;
        if (page.rows.length === PAGE_ROWS) continue;
      }
      await rest(REST_MS, signal);
      await changes.next(signal, page.heldBack ? heldMs : undefined);
      heldMs = page.heldBack ? Math.min(MAX_HELD_MS, heldMs * 2) : FIRST_HELD_MS;
    }
  } finally {
    for (const stop of unsubscribe) stop();
  }
}

export interface Consuming extends Omit<FeedReading, 'after'> {
  /** Names the durable cursor, among the tenant's consumers. */
  readonly consumer: string;
}

/**
 * Does `work` for every page behind the consumer's cursor, one after the other, and moves the cursor behind it: at least
 * once for each row, also over a crash. Resolves on abort; throws what the store or `work` throws, and the page comes
 * again with the next call.
 */
export async function consumeFeed(
  parts: FeedParts,
  { consumer, ...reading }: Consuming,
  work: (rows: readonly FeedRow[]) => Promise<void>,
): Promise<void> {
  const { feed } = parts;
  const after = await feed.cursor(reading.tenant, consumer);
  for await (const rows of readFeed(parts, { ...reading, after })) {
    await work(rows);
    const last = rows.at(-1);
    if (last) await feed.advance(reading.tenant, consumer, last.position);
  }
}
