// Followers of runs (architecture §3.3, §3.4): backlog, then live, by one reader per run and process. Each follower has
// its own position and reads from the store, so a slow one holds nothing up and fills no buffer; those at the same
// position share one query. While a run is followed it is watched, so that its projector does not wait.
import { HostError } from '../rules/errors.ts';
import { isTerminalEvent } from '../rules/status.ts';
import { Waiters } from '../system/time.ts';
import type { LogRow, LogStore } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';

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
  readonly catchUp: (run: RunRef) => Promise<unknown>;
}

export interface FollowOptions {
  /** Sequence after which to begin; -1 = from the first row. */
  readonly after: number;
  readonly signal: AbortSignal;
}

export interface Followers {
  follow(run: RunRef, options: FollowOptions): AsyncIterable<readonly LogRow[]>;
  close(): void;
}

/** The last question and what it came to, for all who ask the same. One that failed is asked again by who comes then. */
class LastAnswer<Value> {
  #last: { readonly key: string; readonly value: Promise<Value> } | undefined;

  of(key: string, ask: () => Promise<Value>): Promise<Value> {
    if (this.#last?.key === key) return this.#last.value;
    const last = { key, value: ask() };
    this.#last = last;
    last.value.catch(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return last.value;
  }
}

/** What the followers of one run share. */
class Channel {
  followers = 0;
  version = 0;
  readonly #waiters = new Waiters();
  readonly #rows = new LastAnswer<readonly LogRow[]>();
  readonly #tail = new LastAnswer<Awaited<ReturnType<LogStore['tail']>>>();
  readonly #log: Pick<LogStore, 'read' | 'tail' | 'links'>;
  readonly run: RunRef;

  constructor(log: Pick<LogStore, 'read' | 'tail' | 'links'>, run: RunRef) {
    this.#log = log;
    this.run = run;
  }

  wake(): void {
    this.version += 1;
    this.#waiters.wakeAll();
  }

  read(after: number): Promise<readonly LogRow[]> {
    const key = `${this.version}:${after}`;
    return this.#rows.of(key, () => this.#log.read(this.run, { after, limit: READ_ROWS }));
  }

  /** Of the row at the position, as it is now; undefined: none stands there. */
  async eventIdAt(position: number): Promise<string | undefined> {
    if (position < 0) return undefined;
    const [row] = await this.#log.links(this.run, { after: position - 1, limit: 1 });
    return row?.sequence === position ? row.eventId : undefined;
  }

  /** Nothing comes behind the position any more. */
  async isOver(position: number): Promise<boolean> {
    const key = String(this.version);
    const tail = await this.#tail.of(key, () => this.#log.tail(this.run));
    // A run that expired is not told to its end: who reads must see that.
    if (!tail) throw new HostError('run_not_found', { runId: this.run.runId });
    return tail.closed && tail.nextSequence - 1 <= position;
  }

  /** Another row stands at the position now, or none. Throws HostError run_not_found, and service_unavailable: who follows asks again. */
  async begunAgain(position: number): Promise<never> {
    await this.isOver(position);
    const reason = 'The log of the run was made again.';
    throw new HostError('service_unavailable', { reason, runId: this.run.runId });
  }

  /** Resolves when something changed since `version`, or on abort. */
  changed(version: number, signal: AbortSignal): Promise<void> {
    return this.version === version ? this.#waiters.wait(signal) : Promise.resolve();
  }
}

/** Of the last row that a follower has: no more than its place, since each of many readers would keep what it says. */
interface Place {
  readonly sequence: number;
  /** Absent: nobody has looked yet which row stands there. */
  readonly eventId?: string;
  /** It was read here. Where a follower only begins after it, what it says is not opened: it may be damaged. */
  readonly isRead: boolean;
}

class RunFollowers implements Followers {
  readonly #parts: FollowerParts;
  readonly #channels = new Map<string, Channel>();
  readonly #unsubscribe: readonly (() => void)[];
  #ticker: NodeJS.Timeout | undefined;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
    const { log } = parts.stores;
    this.#unsubscribe = [
      log.onChange(({ runId }) => this.#channels.get(runId)?.wake()),
      log.onReconnect(() => this.#wakeAll()),
    ];
  }

  async *follow(run: RunRef, { after, signal }: FollowOptions) {
    const channel = this.#join(run);
    channel.followers += 1;
    try {
      let seen: Place = { sequence: after, isRead: false };
      while (!signal.aborted) {
        const { version } = channel;
        const { sequence, isRead } = seen;
        const found = await channel.read(isRead ? sequence - 1 : sequence);
        // After the rows: whatever came in the place of others meanwhile is seen.
        const eventId = isRead ? found[0]?.eventId : await channel.eventIdAt(sequence);
        if (sequence >= 0 && (eventId === undefined || eventId !== (seen.eventId ?? eventId))) {
          if (seen.eventId === undefined && (await channel.isOver(sequence))) return;
          await channel.begunAgain(sequence);
        }
        const rows = isRead ? found.slice(1) : found;
        const last = rows.at(-1);
        seen = last
          ? { sequence: last.sequence, eventId: last.eventId, isRead: true }
          : { ...seen, ...(eventId === undefined ? {} : { eventId }) };
        if (last) {
          yield rows;
          if (isTerminalEvent(last.type)) return;
        } else if (await channel.isOver(seen.sequence)) return;
        if (found.length < READ_ROWS) await channel.changed(version, signal);
      }
    } finally {
      this.#leave(channel);
    }
  }

  close(): void {
    this.#unsubscribe.forEach((stop) => stop());
    clearInterval(this.#ticker);
  }

  #wakeAll(): void {
    this.#channels.forEach((channel) => channel.wake());
  }

  #tick(): void {
    for (const { run } of this.#channels.values()) void this.#watch(run);
    this.#wakeAll();
  }

  #watch(run: RunRef): Promise<void> {
    const { stores, processId } = this.#parts;
    return stores.projection
      .watch(run, processId, WATCH_TTL_MS)
      .catch((error: unknown) => this.#note('watch failed', run, error));
  }

  #note(what: string, { runId }: RunRef, error: unknown): void {
    this.#parts.logger.debug(what, { runId, reason: String(error) });
  }

  #join(run: RunRef): Channel {
    const found = this.#channels.get(run.runId);
    if (found) return found;
    const channel = new Channel(this.#parts.stores.log, run);
    this.#channels.set(run.runId, channel);
    this.#ticker ??= setInterval(() => this.#tick(), SAFETY_TICK_MS).unref();
    void this.#watchAndCatchUp(run);
    return channel;
  }

  /** The watch first: what the projector lets rest until then is caught up here, what comes later is pushed. */
  async #watchAndCatchUp(run: RunRef): Promise<void> {
    await this.#watch(run);
    try {
      await this.#parts.catchUp(run);
    } catch (error) {
      this.#note('catch-up of a followed run failed', run, error);
    }
  }

  #leave(channel: Channel): void {
    const { run } = channel;
    channel.followers -= 1;
    if (channel.followers > 0 || this.#channels.get(run.runId) !== channel) return;
    this.#channels.delete(run.runId);
    const { stores, processId } = this.#parts;
    stores.projection
      .unwatch(run, processId)
      .catch((error: unknown) => this.#note('unwatch failed', run, error));
    if (this.#channels.size > 0) return;
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }
}

export function createFollowers(parts: FollowerParts): Followers {
  return new RunFollowers(parts);
}
