// Runs and the runs that they started: rows of children, what is below a root, and ends that are still
// to be told. A child's row is one statement: it counts below its root, or is refused.
import { HostError } from '../../rules/errors.ts';
import type { RunStatus } from '../../rules/status.ts';
import type { FamilyMember, FamilyPlace, FamilyStore } from '../../ports/families.ts';
import type { NewRun, RunRef } from '../../ports/runs.ts';
import { agoMs, isUniqueViolation, type Db, type SealedDb, type SqlValue } from './db.ts';
import { behind, digitsOf, nextCursor } from './list-cursor.ts';
import { createdOf, tagsOf } from './run-lists.ts';
import { refOf } from './run-ref.ts';
import { findRun, INSERT_RUN, refusedKey, rowOf, runValues, sealOfNew } from './run-store.ts';
import type { Opener, Seals } from './seals.ts';

interface MemberRecord {
  readonly run_id: string;
  readonly tenant_id: string;
  readonly workflow_id: string;
  readonly parent_run_id: string;
  readonly tags: string;
  readonly created_at_ms: number;
  readonly status: string | null;
  readonly closed: boolean | null;
  readonly place: string;
}

const MEMBER = `s.run_id, s.tenant_id, r.workflow_id, s.parent_run_id, r.tags, s.created_at_ms, h.status, h.closed,
  ${digitsOf('s.created_at_ms')} AS place
  FROM session_runs s JOIN runs r ON r.run_id = s.run_id LEFT JOIN run_heads h ON h.run_id = s.run_id`;
const OLDEST = 'ORDER BY s.created_at_ms, s.run_id';

async function membersOf(
  seals: Seals,
  records: readonly MemberRecord[],
): Promise<readonly FamilyMember[]> {
  const open = await seals.opener(records.map(({ tags }) => tags));
  return records.map((record) => memberOf(record, open));
}

function memberOf(record: MemberRecord, open: Opener): FamilyMember {
  return {
    run: refOf(record.tenant_id, record.run_id),
    runId: record.run_id,
    workflowId: record.workflow_id,
    parentRunId: record.parent_run_id,
    status: (record.status ?? 'pending') as RunStatus,
    closed: record.closed ?? false,
    ...createdOf(record),
    ...tagsOf(record, open),
  };
}

/** `first`: the parameter behind those of runValues: parent, root, limit. */
function acceptChild(first: number): string {
  const [parent, root, limit] = [first, first + 1, first + 2].map((at) => `$${at}`);
  return `WITH parent AS (
    -- The end of the parent's log takes this lock as well: it comes before the child, or knows of it.
    SELECT 1 FROM run_heads WHERE run_id = ${parent} AND tenant_id = $2 AND NOT closed FOR SHARE
  ), claim AS (
    INSERT INTO run_families (tenant_id, root_run_id, descendants) SELECT $2, ${root}, 1 FROM parent
    ON CONFLICT (tenant_id, root_run_id) DO UPDATE SET descendants = run_families.descendants + 1
      WHERE run_families.descendants < ${limit}::bigint
    RETURNING 1
  ), ${INSERT_RUN}`;
}

/** Throws service_unavailable where the parent's log is just being rebuilt. */
async function isEnded(db: Db, { tenant, input }: NewRun): Promise<boolean> {
  const [head] = await db.query<{ closed: boolean }>(
    'SELECT closed FROM run_heads WHERE run_id = $1 AND tenant_id = $2',
    [input.header.parentRunId ?? '', tenant],
  );
  if (!head) throw new HostError('service_unavailable');
  return head.closed;
}

async function placeOf(db: Db, { tenant, runId }: RunRef): Promise<FamilyPlace | undefined> {
  const [place] = await db.query<{ parent_run_id: string | null; is_detached: boolean }>(
    'SELECT parent_run_id, is_detached FROM session_runs WHERE tenant_id = $1 AND run_id = $2',
    [tenant, runId],
  );
  if (!place) return undefined;
  const { parent_run_id: parentRunId, is_detached: isDetached } = place;
  return { isDetached, ...(parentRunId === null ? {} : { parentRunId }) };
}

export function createFamilyStore(db: SealedDb): FamilyStore {
  return {
    async acceptChild(child, limit) {
      const { tenant, runId, input } = child;
      const { parentRunId, correlationId } = input.header;
      const seal = await sealOfNew(db.seals, child);
      try {
        const values = runValues(child, seal);
        const inserted = await db.query(acceptChild(values.length + 1), [
          ...values,
          ...[parentRunId ?? '', correlationId, limit],
        ]);
        if (inserted.length > 0) return rowOf(child);
        return (await isEnded(db, child)) ? 'parent-ended' : 'full';
      } catch (error) {
        // Another try of the same step came between, and its row counts.
        if (!isUniqueViolation(error)) return refusedKey(error);
        return (await findRun(db, tenant, runId)) ?? 'full';
      }
    },
    async children({ tenant, runId }, { cursor, limit }) {
      const values: SqlValue[] = [tenant, runId, limit + 1];
      const place = behind('(s.created_at_ms, s.run_id)', 'oldest', { cursor, values });
      const records = await db.query<MemberRecord>(
        `SELECT ${MEMBER} WHERE s.tenant_id = $1 AND s.parent_run_id = $2 AND ${place} ${OLDEST} LIMIT $3`,
        values,
      );
      return {
        runs: await membersOf(db.seals, records.slice(0, limit)),
        ...nextCursor(records, limit, (last) => [last.place, last.run_id]),
      };
    },
    placeOf: (run) => placeOf(db, run),
    async descendants(tenant, rootRunId, limit) {
      const records = await db.query<MemberRecord>(
        `SELECT ${MEMBER} WHERE s.tenant_id = $1 AND s.correlation_id = $2 AND s.parent_run_id IS NOT NULL ${OLDEST} LIMIT $3`,
        [tenant, rootRunId, limit],
      );
      return membersOf(db.seals, records);
    },
    async untoldEnds(ageMs, limit, behind) {
      const records = await db.query<{ tenant_id: string; run_id: string; ended_at_ms: number }>(
        `SELECT tenant_id, run_id, ended_at_ms FROM run_ends
         WHERE ended_at_ms <= ${agoMs('$1')} AND (ended_at_ms, run_id) > ($3::bigint, $4::text)
         ORDER BY ended_at_ms, run_id LIMIT $2`,
        [ageMs, limit, behind?.endedAtMs ?? 0, behind?.run.runId ?? ''],
      );
      return records.map((record) => ({
        run: refOf(record.tenant_id, record.run_id),
        endedAtMs: record.ended_at_ms,
      }));
    },
    async endTaken({ tenant, runId }) {
      await db.query(
        `DELETE FROM run_ends WHERE tenant_id = $1 AND run_id = $2 AND NOT EXISTS (
           SELECT 1 FROM session_runs c LEFT JOIN run_heads h ON h.run_id = c.run_id
           WHERE c.tenant_id = $1 AND c.parent_run_id = $2 AND h.closed IS NOT TRUE)`,
        [tenant, runId],
      );
    },
    async endTold({ tenant, runId }) {
      await db.query('DELETE FROM run_ends WHERE tenant_id = $1 AND run_id = $2', [tenant, runId]);
    },
  };
}
