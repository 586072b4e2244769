// One-time links of pages, a run's or the whole host's, and the sessions they open, by hash only (architecture §10).
import type { PageSessionStore, Revocation } from '../../ports/page-sessions.ts';
import type { RunRef } from '../../ports/runs.ts';
import { HostError } from '../../rules/errors.ts';
import { inMs, NOW_MS, type Db, type Queries } from './db.ts';
import { deleteExpired } from './free-rows.ts';

interface Found {
  readonly tenant: string;
  readonly runId: string;
}

interface Made {
  readonly expiresAtMs: number;
}

function expiryOf([made]: readonly Made[]): number {
  if (!made) throw new HostError('internal_error');
  return made.expiresAtMs;
}

export function createPageSessionStore(db: Db): PageSessionStore {
  return { ...createRunSessionStore(db), ...createHostSessionStore(db) };
}

type HostPart = Extract<keyof PageSessionStore, `${string}Host${string}`>;

function createRunSessionStore(db: Db): Omit<PageSessionStore, HostPart> {
  return {
    async createLink({ tenant, runId }, linkHash, lifeMs) {
      const made = await db.query<Made>(
        `WITH gone AS (${deleteExpired('page_links')})
         INSERT INTO page_links (link_hash, tenant_id, run_id, expires_at_ms) VALUES ($3, $1, $2, ${inMs('$4')})
         RETURNING expires_at_ms AS "expiresAtMs"`,
        [tenant, runId, linkHash, lifeMs],
      );
      return expiryOf(made);
    },
    async consumeLink({ runId, linkHash }, { sessionHash, lifeMs }) {
      const opened = await db.query(
        `WITH link AS (
           DELETE FROM page_links WHERE link_hash = $1 AND run_id = $2 AND expires_at_ms > ${NOW_MS}
           RETURNING tenant_id, run_id
         ), gone AS (${deleteExpired('page_sessions')})
         INSERT INTO page_sessions (session_hash, tenant_id, run_id, expires_at_ms)
         SELECT $3::text, tenant_id, run_id, ${inMs('$4')} FROM link RETURNING 1`,
        [linkHash, runId, sessionHash, lifeMs],
      );
      return opened.length > 0;
    },
    revoke: (run) => db.transaction((tx) => revoke(tx, run)),
    async findSession(sessionHash) {
      const [found] = await db.query<Found>(
        `SELECT tenant_id AS tenant, run_id AS "runId" FROM page_sessions
         WHERE session_hash = $1 AND expires_at_ms > ${NOW_MS}`,
        [sessionHash],
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
    async createHostLink(tenant, linkHash, lifeMs) {
      const made = await db.query<Made>(
        `WITH gone AS (${deleteExpired('host_links')})
         INSERT INTO host_links (link_hash, tenant_id, expires_at_ms) VALUES ($2, $1, ${inMs('$3')})
         RETURNING expires_at_ms AS "expiresAtMs"`,
        [tenant, linkHash, lifeMs],
      );
      return expiryOf(made);
    },
    async consumeHostLink(linkHash, { sessionHash, lifeMs }) {
      const [found] = await db.query<{ tenant: string }>(
        `WITH link AS (
           DELETE FROM host_links WHERE link_hash = $1 AND expires_at_ms > ${NOW_MS} RETURNING tenant_id
         ), gone AS (${deleteExpired('host_sessions')})
         INSERT INTO host_sessions (session_hash, tenant_id, expires_at_ms)
         SELECT $2::text, tenant_id, ${inMs('$3')} FROM link RETURNING tenant_id AS tenant`,
        [linkHash, sessionHash, lifeMs],
      );
      return found;
    },
    async createHostSession(tenant, { sessionHash, lifeMs }) {
      await db.query(
        `WITH gone AS (${deleteExpired('host_sessions')})
         INSERT INTO host_sessions (session_hash, tenant_id, expires_at_ms) VALUES ($2, $1, ${inMs('$3')})`,
        [tenant, sessionHash, lifeMs],
      );
    },
    async findHostSession(sessionHash) {
      const [found] = await db.query<{ tenant: string }>(
        `SELECT tenant_id AS tenant FROM host_sessions
         WHERE session_hash = $1 AND expires_at_ms > ${NOW_MS}`,
        [sessionHash],
      );
      return found;
    },
    async endHostSession(sessionHash) {
      await db.query('DELETE FROM host_sessions WHERE session_hash = $1', [sessionHash]);
    },
  };
}
