// Who may see pages (architecture §10): links and sessions of one run, and those of the whole host, which are a tenant's.
import type { RunRef } from './runs.ts';

export interface NewSession {
  readonly sessionHash: string;
  readonly expiresAtMs: number;
}

/** What was revoked: links and sessions that were valid. */
export interface Revocation {
  readonly links: number;
  readonly sessions: number;
  /** Also of those that have expired by the database's clock: a process whose clock is late still takes them. */
  readonly sessionHashes: readonly string[];
}

export interface PageSessionStore {
  /** Stores the hash of a one-time link for a run. */
  createLink(tenant: string, runId: string, linkHash: string, expiresAtMs: number): Promise<void>;
  /** Consumes it, once, in one step with the session that it opens. False: there is none. */
  consumeLink(
    link: { readonly runId: string; readonly linkHash: string },
    nowMs: number,
    session: NewSession,
  ): Promise<boolean>;
  findSession(
    sessionHash: string,
    nowMs: number,
  ): Promise<{ tenant: string; runId: string } | undefined>;
  /** Ends the links of a run and the sessions that they opened, also by one that is being consumed. */
  revoke(run: RunRef): Promise<Revocation>;
  /** Stores the hash of a one-time link that signs in. */
  createHostLink(tenant: string, linkHash: string, expiresAtMs: number): Promise<void>;
  /** Consumes it, once, in one step with the session that it opens: nothing else uses a link up. */
  consumeHostLink(
    linkHash: string,
    nowMs: number,
    session: NewSession,
  ): Promise<{ tenant: string } | undefined>;
  createHostSession(tenant: string, sessionHash: string, expiresAtMs: number): Promise<void>;
  findHostSession(sessionHash: string, nowMs: number): Promise<{ tenant: string } | undefined>;
  /** Of one that is not there nothing is ended. */
  endHostSession(sessionHash: string): Promise<void>;
}
