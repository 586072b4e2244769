// Who needs which content (architecture §3.7). A value goes when nobody needs it, and comes back whenever
// somebody puts it: what holds that together is the order of three statements. Who puts notes first that it needs the
// value, and commits that; then takes it off the list of the unused, behind whoever is at work on it there; and stores its
// bytes last. Who removes looks for needs when the value is its own on that list. A need that ended before its bytes were
// stored leaves them on the list, or unstored.
import { HostError } from '../../rules/errors.ts';
import type { ContentHolder } from '../../ports/content.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { Queries, SqlValue } from './db.ts';

export interface Need {
  readonly holder: ContentHolder;
  readonly hash: string;
  readonly isArchive?: true;
}

export interface ContentName {
  readonly tenant: string;
  readonly hash: string;
}

/** A value whose need is noted. */
export type NotedValue = Need & ContentName & { readonly bytes: Uint8Array };

/** The host itself, in the place of a run. */
const HOST = '';

/**
 * A run's row is locked against its expiry meanwhile: what needs a run that goes would be needed by nobody. Throws
 * run_not_found.
 */
export async function noteNeeds(db: Queries, needs: readonly Need[]): Promise<void> {
  const [missing] = await db.query<{ run_id: string }>(
    `WITH ${ASKED}, held AS MATERIALIZED (
       SELECT run_id, tenant_id FROM runs WHERE run_id IN (SELECT run_id FROM asked) FOR KEY SHARE
     ), noted AS (
       INSERT INTO content_refs (run_id, tenant_id, hash, of_archive)
       SELECT * FROM asked WHERE run_id = '${HOST}' OR (run_id, tenant_id) IN (SELECT run_id, tenant_id FROM held)
       ON CONFLICT DO NOTHING
     )
     SELECT run_id FROM asked
     WHERE run_id <> '${HOST}' AND (run_id, tenant_id) NOT IN (SELECT run_id, tenant_id FROM held) LIMIT 1`,
    [askedOf(needs)],
  );
  requireAll(missing);
}

/** Parts of a statement: needs ($1: askedOf). */
const ASKED = `asked AS (
       SELECT DISTINCT * FROM json_to_recordset($1::text::json)
         AS x(run_id text, tenant_id text, hash text, of_archive boolean)
     )`;
const IS_NOTED =
  'EXISTS (SELECT FROM content_refs r WHERE r.run_id = a.run_id AND r.tenant_id = a.tenant_id AND r.hash = a.hash)';

function askedOf(needs: readonly Need[]): string {
  return JSON.stringify(
    needs.map(({ holder, hash, isArchive = false }) => ({
      run_id: holder.runId ?? HOST,
      tenant_id: holder.tenant,
      hash,
      of_archive: isArchive,
    })),
  );
}

function requireAll(missing: { readonly run_id: string } | undefined): void {
  if (missing) throw new HostError('run_not_found', { runId: missing.run_id });
}

/**
 * Stores bytes in the table while their needs are held: who ends one waits, and lists the value then. A need that has ended
 * meanwhile stores nothing. Throws run_not_found.
 */
export async function storeNeeded(db: Queries, values: readonly NotedValue[]): Promise<void> {
  const bound: SqlValue[] = [askedOf(values)];
  const bind = (value: SqlValue): string => `$${bound.push(value)}`;
  const rows = values.map(
    ({ tenant, hash, bytes }) => `(${bind(tenant)}, ${bind(hash)}, ${bind(bytes)}::bytea)`,
  );
  // The bytes are looked for when the list is free of them: whoever removes them then has done so.
  const [missing] = await db.query<{ run_id: string }>(
    `WITH ${ASKED}, held AS MATERIALIZED (
       SELECT r.run_id, r.tenant_id, r.hash FROM content_refs r
       WHERE (r.run_id, r.tenant_id, r.hash) IN (SELECT run_id, tenant_id, hash FROM asked)
       ORDER BY r.run_id, r.hash FOR KEY SHARE
     ), unlisted AS (
       DELETE FROM content_unused u USING held h WHERE u.tenant_id = h.tenant_id AND u.hash = h.hash RETURNING 1
     ), stored AS (
       INSERT INTO contents (tenant_id, hash, bytes, created_at_ms)
       SELECT x.tenant_id, x.hash, x.bytes, openwop_now_ms()
       FROM (VALUES ${rows.join(', ')}) AS x(tenant_id, hash, bytes)
       WHERE (SELECT count(*) FROM unlisted) >= 0 AND (x.tenant_id, x.hash) IN (SELECT tenant_id, hash FROM held)
       ON CONFLICT DO NOTHING
     )
     SELECT run_id FROM asked WHERE (run_id, tenant_id, hash) NOT IN (SELECT run_id, tenant_id, hash FROM held) LIMIT 1`,
    bound,
  );
  requireAll(missing);
}

/** Of bytes that are stored: those whose need has ended meanwhile are listed. Throws run_not_found. */
export async function requireNeeds(db: Queries, needs: readonly Need[]): Promise<void> {
  const [missing] = await db.query<{ run_id: string }>(
    `WITH ${ASKED}, ended AS (
       SELECT run_id, tenant_id, hash FROM asked a WHERE NOT ${IS_NOTED}
     ), listed AS (
       INSERT INTO content_unused (tenant_id, hash, since_ms)
       SELECT DISTINCT tenant_id, hash, openwop_now_ms() FROM ended ORDER BY tenant_id, hash
       ON CONFLICT DO NOTHING
     )
     SELECT run_id FROM ended LIMIT 1`,
    [askedOf(needs)],
  );
  requireAll(missing);
}

/** Of a source that is there, for a run that is noted as its fork, or accepted. */
export async function shareNeeds(db: Queries, from: RunRef, to: RunRef): Promise<void> {
  await db.query(
    `WITH source AS MATERIALIZED (
       SELECT 1 FROM runs WHERE run_id = $1 AND tenant_id = $3 FOR KEY SHARE
     )
     INSERT INTO content_refs (run_id, tenant_id, hash)
     SELECT $2::text, tenant_id, hash FROM content_refs
     WHERE run_id = $1 AND tenant_id = $3 AND NOT of_archive AND EXISTS (SELECT FROM source)
       AND EXISTS (SELECT FROM runs WHERE run_id = $2 UNION ALL SELECT FROM run_forks WHERE run_id = $2)
     ON CONFLICT DO NOTHING`,
    [from.runId, to.runId, from.tenant],
  );
}

export function namesOf(names: readonly ContentName[]): string {
  return JSON.stringify(names.map(({ tenant, hash }) => ({ tenant_id: tenant, hash })));
}

/** Part of a statement: whether somebody needs an unused value (`u`). */
export const IS_NEEDED =
  'EXISTS (SELECT FROM content_refs r WHERE r.tenant_id = u.tenant_id AND r.hash = u.hash)';

/** Ends what a run needs, `limit` values at a time; they are looked at by the next sweep. True: nothing is left. */
export async function endNeeds(
  db: Queries,
  { tenant, runId }: RunRef,
  limit: number,
): Promise<boolean> {
  const ended = await db.query(
    `WITH ended AS (
       DELETE FROM content_refs WHERE run_id = $1 AND tenant_id = $2 AND hash IN (
         SELECT hash FROM content_refs WHERE run_id = $1 AND tenant_id = $2 ORDER BY hash LIMIT $3 FOR UPDATE)
       RETURNING tenant_id, hash
     ), listed AS (
       INSERT INTO content_unused AS u (tenant_id, hash, since_ms)
       SELECT tenant_id, hash, openwop_now_ms() FROM ended ORDER BY tenant_id, hash
       -- Holds the row, and changes it: a sweep that saw the need meanwhile takes nothing off the list that was listed again.
       ON CONFLICT (tenant_id, hash) DO UPDATE SET since_ms = greatest(excluded.since_ms, u.since_ms + 1)
     )
     SELECT 1 FROM ended`,
    [runId, tenant, limit],
  );
  return ended.length < limit;
}
