// One-time links of run pages and the sessions they open, by hash only (architecture §10).
import type { PageSessionStore } from '../../ports/page-sessions.ts';
import type { Db } from './db.ts';

interface Found {
  readonly tenant: string;
  readonly runId: string;
}

export function createPageSessionStore(db: Db): PageSessionStore {
  return {
    async createLink(tenant, runId, linkHash, expiresAtMs) {
      await db.query(
        `WITH gone AS (DELETE FROM page_links WHERE expires_at_ms <= openwop_now_ms())
         INSERT INTO page_links (link_hash, tenant_id, run_id, expires_at_ms) VALUES ($3, $1, $2, $4)`,
        [tenant, runId, linkHash, expiresAtMs],
      );
    },
    async consumeLink(linkHash, nowMs) {
      const [found] = await db.query<Found>(
        `DELETE FROM page_links WHERE link_hash = $1 AND expires_at_ms > $2
         RETURNING tenant_id AS tenant, run_id AS "runId"`,
        [linkHash, nowMs],
      );
      return found;
    },
    async createSession(tenant, runId, sessionHash, expiresAtMs) {
      await db.query(
        `WITH gone AS (DELETE FROM page_sessions WHERE expires_at_ms <= openwop_now_ms())
         INSERT INTO page_sessions (session_hash, tenant_id, run_id, expires_at_ms) VALUES ($3, $1, $2, $4)`,
        [tenant, runId, sessionHash, expiresAtMs],
      );
    },
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
