// Sessions of the runs' pages (architecture §10).

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
}
