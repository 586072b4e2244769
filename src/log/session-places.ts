// Where a follower of a session stands in the feed (architecture §3.6): the last event that it was given, and earlier ones
// to go back to. A failover of the database may lose the latest events, and give their positions to others. [I118]
import type { FeedPlace, FedRow, FeedStore } from '../ports/feed.ts';
import type { RunStore } from '../ports/runs.ts';

/** Two places that are kept lie at least so far apart, in ms of their events, but for the last. */
const APART_MS = 1_000;
/** Places that are kept: a failover loses some seconds at most. */
const MAX_PLACES = 32;

export interface PlaceStores {
  readonly feed: Pick<FeedStore, 'positionOf'>;
  readonly runs: Pick<RunStore, 'expiredAt'>;
}

interface Whose {
  readonly tenant: string;
  readonly sessionId: string;
}

type Place = FeedPlace & { readonly timestampMs: number };

export class SessionPlaces {
  readonly #stores: PlaceStores;
  readonly #whose: Whose;
  /** Ascending; APART_MS or more between each two but the last two. */
  readonly #kept: Place[] = [];

  constructor(stores: PlaceStores, whose: Whose, first: FeedPlace | undefined) {
    this.#stores = stores;
    this.#whose = whose;
    if (first) this.#kept.push({ ...first, timestampMs: -Infinity });
  }

  /** Undefined: before the session's first event. */
  get last(): FeedPlace | undefined {
    return this.#kept.at(-1);
  }

  isLast({ position, row }: FedRow): boolean {
    return position === this.last?.position && row.eventId === this.last.eventId;
  }

  note({ position, run: { runId }, row: { eventId, timestampMs } }: FedRow): void {
    const [before, last] = this.#kept.slice(-2);
    if (before && last && Math.abs(last.timestampMs - before.timestampMs) < APART_MS)
      this.#kept.pop();
    this.#kept.push({ position, runId, eventId, timestampMs });
    if (this.#kept.length > MAX_PLACES) this.#kept.shift();
  }

  /** To the latest place where its event still is; else before the session's first event. What follows is given again. */
  async goBack(): Promise<void> {
    const { tenant, sessionId } = this.#whose;
    for (let place = this.last; place; place = this.last) {
      const { position, eventId, runId } = place;
      const now = await this.#stores.feed.positionOf(tenant, sessionId, eventId);
      if (now === position) return;
      // It was not lost: what is left of an expired run is deleted.
      const isGone = now === undefined;
      if (isGone && (await this.#stores.runs.expiredAt(tenant, runId)) !== undefined) return;
      this.#kept.pop();
    }
  }
}
