// The feed (architecture §3.6): every row of every log in one order, whatever its run, for named consumers.
import type { LogRow } from './log.ts';
import type { RunRef } from './runs.ts';

/** Where a row of a log stands in the feed; the row itself is read from its run's log. */
export interface FeedRow {
  /** Ascending over all runs, from 1; not dense. A rebuild changes none of a row that stays, once it can be read. */
  readonly position: number;
  /** The run's session (`RunHeader.sessionId`). */
  readonly sessionId: string;
  readonly run: RunRef;
  readonly sequence: number;
}

export interface FeedQuery {
  readonly tenant: string;
  /** Absent: all sessions of the tenant. */
  readonly sessionId?: string;
  /** Exclusive; 0 = from the first. */
  readonly after: number;
  /** Rows at most. */
  readonly limit: number;
}

export interface FeedPage {
  /** Ascending by position. Nothing will ever come between them or before the first of them. */
  readonly rows: readonly FeedRow[];
  /**
   * The page ends where a transaction still writes: later rows may be there already, and no change tells when that is
   * over. Ask again soon.
   */
  readonly heldBack: boolean;
}

/** A row of a log with its place in the feed. One that cannot be read says so in its place. */
export interface FedRow {
  readonly position: number;
  readonly run: RunRef;
  readonly row: LogRow;
}

/** Where an event of a session stands. */
export interface FeedPlace {
  readonly position: number;
  readonly eventId: string;
  readonly runId: string;
}

export interface FeedStore {
  /**
   * A transaction of ours holds reads back for as long as it lasts; one of anybody else never does. This and the next two throw
   * HostError service_unavailable where `after` is a position that was never given: a failover of the database has lost it.
   */
  read(query: FeedQuery): Promise<FeedPage>;
  /** As `read`, of one session, with the rows themselves. */
  events(
    query: FeedQuery & { readonly sessionId: string },
  ): Promise<{ readonly rows: readonly FedRow[] } & Pick<FeedPage, 'heldBack'>>;
  /**
   * Of the next `limit` rows of one session those of these types, with the rows themselves. `readTo`: on from there the
   * next call reads; undefined: nothing more is there to be read now.
   */
  eventsOf(
    query: FeedQuery & { readonly sessionId: string; readonly types: readonly string[] },
  ): Promise<{ readonly rows: readonly FedRow[]; readonly readTo?: number }>;
  /** Where the event stands that has this id, if it is one of the session's. */
  positionOf(tenant: string, sessionId: string, eventId: string): Promise<number | undefined>;
  /**
   * After which event a stream goes on whose client was given the one with this id: that one, or, where it may have moved since
   * because its run's log was made again (`RunRow.retoldFrom`), the last of the run that did not; `first`: none did not.
   * Undefined: no event of the session has the id.
   */
  resumeAfter(
    tenant: string,
    sessionId: string,
    eventId: string,
  ): Promise<FeedPlace | 'first' | undefined>;
  /** Behind this position comes what comes; nothing before it will. For who wants no row that is there. */
  end(): Promise<number>;
  /** How far the named consumer of this tenant came; 0 before its first `advance`. */
  cursor(tenant: string, consumer: string): Promise<number>;
  /**
   * Never goes back: returns where the consumer stands now. Processes that share a name share the cursor and exclude
   * each other from nothing: each row reaches at least one of them, and may reach each.
   */
  advance(tenant: string, consumer: string, position: number): Promise<number>;
}
