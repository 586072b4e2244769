// Who may see pages (architecture §10): links and sessions of one run, and those of the whole host, which are a tenant's.

export interface PageSessionStore {
  /** Stores the hash of a one-time link for a run. */
  createLink(tenant: string, runId: string, linkHash: string, expiresAtMs: number): Promise<void>;
  /** Consumes it, once. */
  consumeLink(
    linkHash: string,
    nowMs: number,
  ): Promise<{ tenant: string; runId: string } | undefined>;
  createSession(
    tenant: string,
    runId: string,
    sessionHash: string,
    expiresAtMs: number,
  ): Promise<void>;
  findSession(
    sessionHash: string,
    nowMs: number,
  ): Promise<{ tenant: string; runId: string } | undefined>;
  /** Stores the hash of a one-time link that signs in. */
  createHostLink(tenant: string, linkHash: string, expiresAtMs: number): Promise<void>;
  /** Consumes it, once, in one step with the session that it opens: nothing else uses a link up. */
  consumeHostLink(
    linkHash: string,
    nowMs: number,
    session: { readonly sessionHash: string; readonly expiresAtMs: number },
  ): Promise<{ tenant: string } | undefined>;
  createHostSession(tenant: string, sessionHash: string, expiresAtMs: number): Promise<void>;
  findHostSession(sessionHash: string, nowMs: number): Promise<{ tenant: string } | undefined>;
  /** Of one that is not there nothing is ended. */
  endHostSession(sessionHash: string): Promise<void>;
}
