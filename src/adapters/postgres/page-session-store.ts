// One-time links of pages, a run's or the whole host's, and the sessions they open, by hash only (architecture §10).
import type { PageSessionStore, Revocation } from '../../ports/page-sessions.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { Db, Queries } from './db.ts';
import { deleteExpired } from './free-rows.ts';

interface Found {
  readonly tenant: string;
  readonly runId: string;
}

export function createPageSessionStore(db: Db): PageSessionStore {
  return { ...createRunSessionStore(db), ...createHostSessionStore(db) };
}

type HostPart = Extract<keyof PageSessionStore, `${string}Host${string}`>;

function createRunSessionStore(db: Db): Omit<PageSessionStore, HostPart> {
  return {
    async createLink(tenant, runId, linkHash, expiresAtMs) {
      await db.query(
        `WITH gone AS (${deleteExpired('page_links')})
         INSERT INTO page_links (link_hash, tenant_id, run_id, expires_at_ms) VALUES ($3, $1, $2, $4)`,
        [tenant, runId, linkHash, expiresAtMs],
      );
    },
    async consumeLink({ runId, linkHash }, nowMs, { sessionHash, expiresAtMs }) {
      const opened = await db.query(
        `WITH link AS (
           DELETE FROM page_links WHERE link_hash = $1 AND run_id = $2 AND expires_at_ms > $3
           RETURNING tenant_id, run_id
         ), gone AS (${deleteExpired('page_sessions')})
         INSERT INTO page_sessions (session_hash, tenant_id, run_id, expires_at_ms)
         SELECT $4::text, tenant_id, run_id, $5::bigint FROM link RETURNING 1`,
        [linkHash, runId, nowMs, sessionHash, expiresAtMs],
      );
      return opened.length > 0;
    },
    revoke: (run) => db.transaction((tx) => revoke(tx, run)),
    async findSession(sessionHash, nowMs) {
      const [found] = await db.query<Found>(
        `SELECT tenant_id AS tenant, run_id AS "runId" FROM page_sessions
         WHERE session_hash = $1 AND expires_at_ms > $2`,
        [sessionHash, nowMs],
      );
      return found;
    },
  };
}

/** Links first: whoever consumes one meanwhile has a session, which the second statement sees, or finds no link. */
async function revoke(tx: Queries, { tenant, runId }: RunRef): Promise<Revocation> {
  const run = [tenant, runId];
  const links = await tx.query<{ valid: boolean }>(
    `DELETE FROM page_links WHERE tenant_id = $1 AND run_id = $2
     RETURNING expires_at_ms > openwop_now_ms() AS valid`,
    run,
  );
  const sessions = await tx.query<{ hash: string; valid: boolean }>(
    `DELETE FROM page_sessions WHERE tenant_id = $1 AND run_id = $2
     RETURNING session_hash AS hash, expires_at_ms > openwop_now_ms() AS valid`,
    run,
  );
  return {
    links: links.filter(({ valid }) => valid).length,
    sessions: sessions.filter(({ valid }) => valid).length,
    sessionHashes: sessions.map(({ hash }) => hash),
  };
}

function createHostSessionStore(db: Db): Pick<PageSessionStore, HostPart> {
  return {
    async createHostLink(tenant, linkHash, expiresAtMs) {
      await db.query(
        `WITH gone AS (${deleteExpired('host_links')})
         INSERT INTO host_links (link_hash, tenant_id, expires_at_ms) VALUES ($2, $1, $3)`,
        [tenant, linkHash, expiresAtMs],
      );
    },
    async consumeHostLink(linkHash, nowMs, { sessionHash, expiresAtMs }) {
      const [found] = await db.query<{ tenant: string }>(
        `WITH link AS (
           DELETE FROM host_links WHERE link_hash = $1 AND expires_at_ms > $2 RETURNING tenant_id
         ), gone AS (${deleteExpired('host_sessions')})
         INSERT INTO host_sessions (session_hash, tenant_id, expires_at_ms)
         SELECT $3::text, tenant_id, $4::bigint FROM link RETURNING tenant_id AS tenant`,
        [linkHash, nowMs, sessionHash, expiresAtMs],
      );
      return found;
    },
    async createHostSession(tenant, sessionHash, expiresAtMs) {
      await db.query(
        `WITH gone AS (${deleteExpired('host_sessions')})
         INSERT INTO host_sessions (session_hash, tenant_id, expires_at_ms) VALUES ($2, $1, $3)`,
        [tenant, sessionHash, expiresAtMs],
      );
    },
    async findHostSession(sessionHash, nowMs) {
      const [found] = await db.query<{ tenant: string }>(
        `SELECT tenant_id AS tenant FROM host_sessions
         WHERE session_hash = $1 AND expires_at_ms > $2`,
        [sessionHash, nowMs],
      );
      return found;
    },
    async endHostSession(sessionHash) {
      await db.query('DELETE FROM host_sessions WHERE session_hash = $1', [sessionHash]);
    },
  };
}
