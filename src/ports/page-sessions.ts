// Who may see pages (architecture §10): links and sessions of one run, and those of the whole host, which are a tenant's.
// How long they live is counted by the clock that all processes share: the database's.
import type { RunRef } from './runs.ts';

export interface NewSession {
  readonly sessionHash: string;
  readonly lifeMs: number;
}

/** What was revoked: links and sessions that were valid. */
export interface Revocation {
  readonly links: number;
  readonly sessions: number;
  /** Also of those that have expired: a stream of one may still be open. */
  readonly sessionHashes: readonly string[];
}

export interface PageSessionStore {
  /** Stores the hash of a one-time link for a run; returns when it expires, in ms since the epoch. */
  createLink(run: RunRef, linkHash: string, lifeMs: number): Promise<number>;
  /** Consumes it, once, in one step with the session that it opens. False: there is none. */
  consumeLink(
    link: { readonly runId: string; readonly linkHash: string },
    session: NewSession,
  ): Promise<boolean>;
  findSession(sessionHash: string): Promise<{ tenant: string; runId: string } | undefined>;
  /** Ends the links of a run and the sessions that they opened, also by one that is being consumed. */
  revoke(run: RunRef): Promise<Revocation>;
  /** Stores the hash of a one-time link that signs in; returns when it expires, in ms since the epoch. */
  createHostLink(tenant: string, linkHash: string, lifeMs: number): Promise<number>;
  /** Consumes it, once, in one step with the session that it opens: nothing else uses a link up. */
  consumeHostLink(linkHash: string, session: NewSession): Promise<{ tenant: string } | undefined>;
  createHostSession(tenant: string, session: NewSession): Promise<void>;
  findHostSession(sessionHash: string): Promise<{ tenant: string } | undefined>;
  /** Of one that is not there nothing is ended. */
  endHostSession(sessionHash: string): Promise<void>;
}
