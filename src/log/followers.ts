// Followers of runs (design §3.3, §3.4): backlog, then live, by one reader per run and process. Each follower has its
// own position and reads from the store, so a slow one holds nothing up and fills no buffer; those at the same
// position share one query. While a run is followed it is watched, so that its projector does not wait.
import { isTerminalEvent } from '../core/status.ts';
import type { Logger, LogRow, Stores } from '../ports.ts';

/** Rows per read. */
const READ_ROWS = 500;
/** A watch expires after this, in ms, unless renewed; it is renewed at every safety tick. */
const WATCH_TTL_MS = 30_000;
/** Followed runs are read again this often, in ms, whatever notifications said. */
const SAFETY_TICK_MS = 10_000;

export interface FollowerParts {
  readonly stores: Stores;
  readonly logger: Logger;
  readonly processId: string;
  readonly catchUp: (runId: string) => Promise<unknown>;
}

export interface FollowOptions {
  /** Sequence after which to begin; -1 = from the first row. */
  readonly after: number;
  readonly signal: AbortSignal;
}

export interface Followers {
  follow(runId: string, options: FollowOptions): AsyncIterable<readonly LogRow[]>;
  close(): void;
}

/** What the followers of one run share. */
class Channel {
  followers = 0;
  version = 0;
  private readonly wakers = new Set<() => void>();
  private last: { key: string; rows: Promise<readonly LogRow[]> } | undefined;
  private readonly query: (after: number) => Promise<readonly LogRow[]>;

  constructor(query: (after: number) => Promise<readonly LogRow[]>) {
    this.query = query;
  }

  wake(): void {
    this.version += 1;
    for (const waker of this.wakers) waker();
  }

  read(after: number): Promise<readonly LogRow[]> {
    const key = `${this.version}:${after}`;
    if (this.last?.key !== key) this.last = { key, rows: this.query(after) };
    return this.last.rows;
  }

  /** Resolves when something changed since `version`, or on abort. */
  changed(version: number, signal: AbortSignal): Promise<void> {
    if (this.version !== version || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this.wakers.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.wakers.add(done);
      signal.addEventListener('abort', done);
    });
  }
}

export function createFollowers(parts: FollowerParts): Followers {
  const { stores, logger, processId, catchUp } = parts;
  const channels = new Map<string, Channel>();
  let ticker: NodeJS.Timeout | undefined;

  const note = (what: string, runId: string) => (error: unknown) =>
    logger.debug(what, { runId, reason: String(error) });
  const watch = (runId: string) =>
    stores.projection.watch(runId, processId, WATCH_TTL_MS).catch(note('watch failed', runId));
  const wakeAll = () => channels.forEach((channel) => channel.wake());
  const tick = () => {
    for (const runId of channels.keys()) void watch(runId);
    wakeAll();
  };
  const unsubscribe = [
    stores.log.onChange(({ runId }) => channels.get(runId)?.wake()),
    stores.log.onReconnect(wakeAll),
  ];

  function join(runId: string): Channel {
    const found = channels.get(runId);
    if (found) return found;
    const channel = new Channel((after) => stores.log.read(runId, { after, limit: READ_ROWS }));
    channels.set(runId, channel);
    ticker ??= setInterval(tick, SAFETY_TICK_MS).unref();
    // The watch first: what the projector lets rest until then is caught up here, what comes later is pushed.
    void watch(runId).then(() =>
      catchUp(runId).catch(note('catch-up of a followed run failed', runId)),
    );
    return channel;
  }

  function leave(runId: string, channel: Channel): void {
    channel.followers -= 1;
    if (channel.followers > 0 || channels.get(runId) !== channel) return;
    channels.delete(runId);
    void stores.projection.unwatch(runId, processId).catch(note('unwatch failed', runId));
    if (channels.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  }

  async function isOver(runId: string, position: number): Promise<boolean> {
    const head = await stores.log.head(runId);
    return head === undefined || (head.closed && head.nextSequence - 1 <= position);
  }

  async function* follow(runId: string, { after, signal }: FollowOptions) {
    const channel = join(runId);
    channel.followers += 1;
    try {
      let position = after;
      while (!signal.aborted) {
        const { version } = channel;
        const rows = await channel.read(position);
        const last = rows.at(-1);
        if (last) {
          position = last.sequence;
          yield rows;
          if (isTerminalEvent(last.type)) return;
        } else if (await isOver(runId, position)) return;
        if (rows.length < READ_ROWS) await channel.changed(version, signal);
      }
    } finally {
      leave(runId, channel);
    }
  }

  return {
    follow,
    close() {
      unsubscribe.forEach((stop) => stop());
      clearInterval(ticker);
    },
  };
}
