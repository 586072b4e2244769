// Sessions (seed 003): what groups the runs of one conversation, made by the first run that names it.
import type { Unreadable } from '../rules/unreadable.ts';
import type { FedRow } from './feed.ts';
import type { RunListItem } from './runs.ts';

export interface SessionRow {
  readonly sessionId: string;
  /** The first that a run gave. */
  readonly title?: string;
  /** Of its runs, each once, the earliest first; at most 100. */
  readonly tags: readonly string[];
  /** The title, or a tag, cannot be read now: it is not among them. */
  readonly unreadable?: Unreadable;
  readonly createdAtMs: number;
  /** When a run was last accepted, or a log last grew: told to the second. */
  readonly lastActivityMs: number;
}

/** A run of a session, with what places it among the others. */
export interface SessionRun extends RunListItem {
  readonly parentRunId?: string;
  /** callId of the call that spawned it. */
  readonly causationId?: string;
}

/** `cursor` is opaque and of the list it came from (throws validation_error); limit 1..200. */
export interface PageQuery {
  readonly cursor?: string;
  readonly limit: number;
}

/** A message of a session, and where in the feed a row says it. */
export interface SaidAt {
  /** Absent: the row says none, or cannot be read now and may say one. */
  readonly messageId?: string;
  readonly position: number;
}

export type NotedRow = FedRow & {
  /** It could not be read when it was noted. */
  readonly isUnread?: true;
};

/** A session belongs to one tenant: one of the same name elsewhere is another one. */
export interface SessionStore {
  find(tenant: string, sessionId: string): Promise<SessionRow | undefined>;
  /** The last active first. One that is active meanwhile may come again, or move before the first page. */
  list(
    tenant: string,
    query: PageQuery,
  ): Promise<{ readonly sessions: readonly SessionRow[]; readonly nextCursor?: string }>;
  /** The session that a run belongs to; it stays so. */
  sessionOf(tenant: string, runId: string): Promise<string | undefined>;
  /** Newest first; none of a session that is not there. */
  runs(
    tenant: string,
    sessionId: string,
    query: PageQuery,
  ): Promise<{ readonly runs: readonly SessionRun[]; readonly nextCursor?: string }>;
  /**
   * Notes what was said, or may have been, in the order of the feed. Of an id that is noted the first place stays, while a
   * row is there.
   */
  noteMessages(tenant: string, sessionId: string, said: readonly SaidAt[]): Promise<void>;
  /** The rows that say what was noted, ascending, behind a position of the feed. */
  messages(
    tenant: string,
    sessionId: string,
    query: { readonly after: number; readonly limit: number },
  ): Promise<readonly NotedRow[]>;
  /** Of rows that could not be read when they were noted, and can be now: what they say is noted in the place of that. */
  noteRead(tenant: string, sessionId: string, read: readonly SaidAt[]): Promise<void>;
}
