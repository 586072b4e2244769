// Who needs which content (architecture §3.7). A value goes when nobody needs it, and comes back whenever
// somebody puts it: what holds that together is the order of three statements. Who puts notes first that it needs the
// value, and commits that; then takes it off the list of the unused, behind whoever is at work on it there; and stores its
// bytes last. Who removes looks for needs when the value is its own on that list.
import { HostError } from '../../rules/errors.ts';
import type { ContentHolder } from '../../ports/content.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { Queries } from './db.ts';

export interface Need {
  readonly holder: ContentHolder;
  readonly hash: string;
  readonly isArchive?: true;
}

export interface ContentName {
  readonly tenant: string;
  readonly hash: string;
}

/** The host itself, in the place of a run. */
const HOST = '';

/**
 * A run's row is locked against its expiry meanwhile: what needs a run that goes would be needed by nobody. Throws
 * run_not_found.
 */
export async function noteNeeds(db: Queries, needs: readonly Need[]): Promise<void> {
  const asked = needs.map(({ holder, hash, isArchive = false }) => ({
    run_id: holder.runId ?? HOST,
    tenant_id: holder.tenant,
    hash,
    of_archive: isArchive,
  }));
  const [missing] = await db.query<{ run_id: string }>(
    `WITH asked AS (
       SELECT DISTINCT * FROM json_to_recordset($1::text::json)
         AS x(run_id text, tenant_id text, hash text, of_archive boolean)
     ), held AS MATERIALIZED (
       SELECT run_id, tenant_id FROM runs WHERE run_id IN (SELECT run_id FROM asked) FOR KEY SHARE
     ), noted AS (
       INSERT INTO content_refs (run_id, tenant_id, hash, of_archive)
       SELECT * FROM asked WHERE run_id = '${HOST}' OR (run_id, tenant_id) IN (SELECT run_id, tenant_id FROM held)
       ON CONFLICT DO NOTHING
     )
     SELECT run_id FROM asked
     WHERE run_id <> '${HOST}' AND (run_id, tenant_id) NOT IN (SELECT run_id, tenant_id FROM held) LIMIT 1`,
    [JSON.stringify(asked)],
  );
  if (missing) throw new HostError('run_not_found', { runId: missing.run_id });
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

/** Part of a statement: values ($1: JSON of names) that are taken off the list of the unused. */
export const UNLIST = `DELETE FROM content_unused u USING json_to_recordset($1::text::json) AS x(tenant_id text, hash text)
  WHERE u.tenant_id = x.tenant_id AND u.hash = x.hash RETURNING 1`;

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
         SELECT hash FROM content_refs WHERE run_id = $1 AND tenant_id = $2 LIMIT $3)
       RETURNING tenant_id, hash
     ), listed AS (
       INSERT INTO content_unused AS u (tenant_id, hash, since_ms)
       SELECT tenant_id, hash, openwop_now_ms() FROM ended ORDER BY tenant_id, hash
       -- Holds the row: a sweep that took it off the list meanwhile still saw the need.
       ON CONFLICT (tenant_id, hash) DO UPDATE SET since_ms = u.since_ms
     )
     SELECT 1 FROM ended`,
    [runId, tenant, limit],
  );
  return ended.length < limit;
}
