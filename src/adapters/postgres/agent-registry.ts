// What the processes of a deployment share of agents (seed 004; architecture §5): tools as last declared, what each
// Core says of its agents under a lease, a bounded audit, and one-time tokens by hash only.
import type { JsonObject } from '../../rules/json.ts';
import { HostError } from '../../rules/errors.ts';
import {
  isCount,
  isFlag,
  isAmount,
  isText,
  isTime,
  listOf,
  members,
  optional,
  type Form,
} from '../../rules/forms.ts';
import type { AgentToolMetrics } from '../../rules/tool-metrics.ts';
import { toldOr } from '../../rules/unreadable.ts';
import type {
  AgentAuditEntry,
  AgentCallView,
  AgentInstance,
  AgentPermission,
  AgentRegistry,
  AgentSessionView,
  AgentTool,
} from '../../ports/agents.ts';
import type { Logger } from '../../ports/logger.ts';
import { agoMs, inMs, NOW_MS, type Db, type Queries } from './db.ts';
import { deleteExpired, deleteFree } from './free-rows.ts';
import { damagedAt, formedAt, parsedAt, timeAt } from './seals.ts';

/** Audit rows kept of one tenant; older ones go with the append that exceeds it. */
export const MAX_AUDIT_ROWS = 100_000;
/** Audit rows that one statement inserts. */
const AUDIT_BATCH_ROWS = 1_000;

/** A Core that was silent for so long, in ms, leaves no row behind: one that dies at every start must not fill the table. */
const DEAD_INSTANCE_MS = 3_600_000;
/** Rows of dead Cores that one save clears. */
const CLEARED_ROWS = 100;

interface AuditRow {
  readonly position: number;
  readonly tenant_id: string;
  readonly at_ms: number;
  readonly instance_id: string;
  readonly agent_id: string | null;
  readonly session_id: string | null;
  readonly kind: string;
  readonly details: string;
}

const isObject = members({});

/** One that is damaged would have a call made that a human is to be asked about. */
const isApproval: Form = (value) => value === 'none' || value === 'ask' || value === 'deny';

const isTool = members<AgentTool>({
  ...{ toolId: isText, agentId: isText, name: isText, description: isText },
  ...{ inputSchema: isObject, outputSchema: optional(isObject) },
  ...{ capabilities: listOf(isText), tags: listOf(isText) },
  ...{ sideEffects: isFlag, requiresDirective: isFlag, approval: isApproval },
  ...{ timeoutMs: isAmount, waitMs: isAmount, maxInputBytes: isAmount, maxOutputBytes: isAmount },
});

const isSession = members<AgentSessionView>({
  ...{ sessionId: isText, agentVersion: isText, transport: isText, attached: isFlag },
  sdk: optional(members<{ name: string; version: string }>({ name: isText, version: isText })),
  ...{ state: isText, health: isText, pid: optional(isCount), manifestMatches: optional(isFlag) },
  ...{ connectedAtMs: isTime, lastHeartbeatAtMs: optional(isTime), uptimeMs: optional(isAmount) },
  ...{ bytesIn: isCount, bytesOut: isCount, toolIds: listOf(isText) },
  calls: listOf(
    members<AgentCallView>({
      ...{ callId: isText, toolId: isText, runId: isText, state: isText, sinceMs: isTime },
    }),
  ),
});

/** Any text is a status: a newer release of a Core may say one that this one does not know. */
const isInstance = members<AgentInstance>({
  ...{ tenant: isText, agentId: isText, instanceId: isText, coreHost: isText, socket: isText },
  ...{ name: isText, version: isText, launch: isText, status: isText, restarts: isCount },
  permissions: optional(listOf(members<AgentPermission>({ permission: isText, state: isText }))),
  lastExit: optional(
    members<NonNullable<AgentInstance['lastExit']>>({ atMs: isTime, reason: isText }),
  ),
  session: optional(isSession),
  metrics: listOf(
    members<AgentToolMetrics>({
      ...{ toolId: isText, calls: isCount, totalMs: isAmount, maxMs: isAmount },
      ...{ succeeded: isCount, failed: isCount, canceled: isCount, unanswered: isCount },
    }),
  ),
});

export function createAgentRegistry(db: Db, logger: Logger): AgentRegistry {
  const parts = { db, logger };
  return {
    ...toolMethods(parts),
    ...instanceMethods(parts),
    ...auditMethods(db),
    ...tokenMethods(db),
  };
}

interface Parts {
  readonly db: Db;
  readonly logger: Logger;
}

/** One that is damaged is left out, and named in the log: it is there again when its agent says it again. */
function readable<Row, Value>(
  logger: Logger,
  rows: readonly Row[],
  read: (row: Row) => Value,
): Value[] {
  return rows.flatMap((row) => {
    const { values, unreadable } = toldOr<{ readonly values: Value[] }>({ values: [] }, () => ({
      values: [read(row)],
    }));
    if (unreadable)
      logger.warn('what an agent said cannot be read', { reason: unreadable.message });
    return values;
  });
}

interface AgentOf {
  readonly tenant: string;
  readonly agentId: string;
}

/** Two Cores may replace at once: without a lock their sets would mix. */
async function lockTools(tx: Queries, { tenant, agentId }: AgentOf): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `agent-tools:${JSON.stringify([tenant, agentId])}`,
  ]);
}

/** Whether a declaration of that version, or a later one, is there. */
async function stands(
  db: Queries,
  { tenant, agentId }: AgentOf,
  version: number,
): Promise<boolean> {
  const rows = await db.query(
    'SELECT 1 FROM agent_tool_sets WHERE tenant_id = $1 AND agent_id = $2 AND version >= $3',
    [tenant, agentId, version],
  );
  return rows.length > 0;
}

async function replaceTools(
  tx: Queries,
  { tenant, agentId }: AgentOf,
  tools: readonly AgentTool[],
): Promise<void> {
  const records = tools.map((tool) => ({ tool_id: tool.toolId, tool: JSON.stringify(tool) }));
  await tx.query('DELETE FROM agent_tools WHERE tenant_id = $1 AND agent_id = $2', [
    tenant,
    agentId,
  ]);
  await tx.query(
    `INSERT INTO agent_tools (tenant_id, agent_id, tool_id, tool)
     SELECT $1::text, $2::text, x.tool_id, x.tool
     FROM json_to_recordset($3::text::json) AS x(tool_id text, tool text)`,
    [tenant, agentId, JSON.stringify(records)],
  );
}

function toolMethods({
  db,
  logger,
}: Parts): Pick<AgentRegistry, 'saveTools' | 'keepTools' | 'tools'> {
  return {
    saveTools: (tenant, agentId, tools) =>
      db.transaction(async (tx) => {
        await lockTools(tx, { tenant, agentId });
        const [{ version } = { version: 0 }] = await tx.query<{ version: number }>(
          `INSERT INTO agent_tool_sets AS s (tenant_id, agent_id, version) VALUES ($1, $2, ${NOW_MS})
           ON CONFLICT (tenant_id, agent_id) DO UPDATE SET version = greatest(s.version + 1, excluded.version)
           RETURNING version`,
          [tenant, agentId],
        );
        await replaceTools(tx, { tenant, agentId }, tools);
        return version;
      }),
    async keepTools(tenant, agentId, { tools, version }) {
      if (await stands(db, { tenant, agentId }, version)) return;
      await db.transaction(async (tx) => {
        await lockTools(tx, { tenant, agentId });
        if (await stands(tx, { tenant, agentId }, version)) return;
        await tx.query(
          `INSERT INTO agent_tool_sets (tenant_id, agent_id, version) VALUES ($1, $2, $3)
           ON CONFLICT (tenant_id, agent_id) DO UPDATE SET version = excluded.version`,
          [tenant, agentId, version],
        );
        await replaceTools(tx, { tenant, agentId }, tools);
      });
    },
    async tools(tenant, toolIds) {
      const rows = await db.query<{ tool_id: string; tool: string }>(
        `SELECT tool_id, tool FROM agent_tools
         WHERE tenant_id = $1 AND ($2::text[] IS NULL OR tool_id = ANY($2::text[])) ORDER BY tool_id COLLATE "C"`,
        [tenant, toolIds ?? null],
      );
      return readable(logger, rows, ({ tool_id: toolId, tool }) => {
        const place = `tool ${toolId}`;
        const read = formedAt<AgentTool>(place, tool, isTool);
        if (read.toolId !== toolId) throw damagedAt(place);
        return read;
      });
    },
  };
}

function instanceMethods({
  db,
  logger,
}: Parts): Pick<AgentRegistry, 'saveInstance' | 'instances' | 'removeInstances'> {
  return {
    async saveInstance(instance, leaseMs) {
      await db.query(
        `WITH dead AS (
           DELETE FROM agent_instances WHERE (tenant_id, agent_id, instance_id) IN (
             SELECT tenant_id, agent_id, instance_id FROM agent_instances
             WHERE lease_until_ms < openwop_now_ms() - $6::bigint AND instance_id <> $3
             ORDER BY lease_until_ms LIMIT $7 FOR UPDATE SKIP LOCKED
           )
         )
         INSERT INTO agent_instances (tenant_id, agent_id, instance_id, lease_until_ms, instance)
         VALUES ($1, $2, $3, openwop_now_ms() + $4::bigint, $5)
         ON CONFLICT (tenant_id, agent_id, instance_id)
         DO UPDATE SET lease_until_ms = excluded.lease_until_ms, instance = excluded.instance`,
        [
          instance.tenant,
          instance.agentId,
          instance.instanceId,
          leaseMs,
          JSON.stringify(instance),
          DEAD_INSTANCE_MS,
          CLEARED_ROWS,
        ],
      );
    },
    async instances(tenant, agentId) {
      const rows = await db.query<{ agent_id: string; instance: string }>(
        `SELECT agent_id, instance FROM agent_instances
         WHERE tenant_id = $1 AND ($2::text IS NULL OR agent_id = $2) AND lease_until_ms > openwop_now_ms()
         ORDER BY agent_id COLLATE "C", instance_id COLLATE "C"`,
        [tenant, agentId ?? null],
      );
      return readable(logger, rows, ({ agent_id: agent, instance }) => {
        const place = `instance of ${agent}`;
        const read = formedAt<AgentInstance>(place, instance, isInstance);
        if (read.agentId !== agent) throw damagedAt(place);
        return read;
      });
    },
    async removeInstances(instanceId) {
      await db.query('DELETE FROM agent_instances WHERE instance_id = $1', [instanceId]);
    },
  };
}

// $1 tenant, $2 number of rows, $3 rows with their place (1 = first) in the batch, $4 rows that are kept.
const APPEND_AUDIT = `WITH head AS (
    INSERT INTO agent_audit_heads (tenant_id, last_position) VALUES ($1, $2::bigint)
    ON CONFLICT (tenant_id) DO UPDATE SET last_position = agent_audit_heads.last_position + excluded.last_position
    RETURNING last_position
  ), gone AS (
    ${deleteFree('agent_audit', 'tenant_id = $1 AND position <= (SELECT last_position - $4::bigint FROM head)')}
  )
  INSERT INTO agent_audit (tenant_id, position, at_ms, instance_id, agent_id, session_id, kind, details)
  SELECT $1, head.last_position - $2::bigint + x.place, x.at_ms, x.instance_id, x.agent_id, x.session_id, x.kind,
         x.details
  FROM head, json_to_recordset($3::text::json) AS x(place bigint, at_ms bigint, instance_id text, agent_id text,
       session_id text, kind text, details text)`;

function auditMethods(db: Db): Pick<AgentRegistry, 'appendAudit' | 'audit' | 'expire'> {
  return {
    async appendAudit(entries) {
      for (const tenant of new Set(entries.map((entry) => entry.tenant))) {
        const own = entries.filter((entry) => entry.tenant === tenant);
        for (let from = 0; from < own.length; from += AUDIT_BATCH_ROWS) {
          const batch = own.slice(from, from + AUDIT_BATCH_ROWS);
          await db.query(APPEND_AUDIT, [
            tenant,
            batch.length,
            JSON.stringify(batch.map(auditRecord)),
            MAX_AUDIT_ROWS,
          ]);
        }
      }
    },
    async audit(tenant, { agentId, before, limit }) {
      const rows = await db.query<AuditRow>(
        `SELECT position, tenant_id, at_ms, instance_id, agent_id, session_id, kind, details FROM agent_audit
         WHERE tenant_id = $1 AND ($2::text IS NULL OR agent_id = $2) AND ($3::bigint IS NULL OR position < $3)
         ORDER BY position DESC LIMIT $4`,
        [tenant, agentId ?? null, before ?? null, limit],
      );
      return rows.map(auditEntryOf);
    },
    async expire(keptMs) {
      const gone = await db.query<{ n: number }>(
        `WITH audit AS (${deleteFree('agent_audit', `at_ms < ${agoMs('$1')}`)} RETURNING 1),
           tokens AS (${deleteFree('agent_tokens', `expires_at_ms < ${agoMs('$1')}`)} RETURNING 1),
           instances AS (${deleteFree('agent_instances', `lease_until_ms < ${agoMs('$1')}`)} RETURNING 1)
         SELECT (SELECT count(*) FROM audit) + (SELECT count(*) FROM tokens) + (SELECT count(*) FROM instances) AS n`,
        [keptMs],
      );
      return gone[0]?.n ?? 0;
    },
  };
}

/** `details` is text inside the JSON: what Postgres cannot hold as text (NUL) stays escaped in it. */
function auditRecord(entry: AgentAuditEntry, index: number): JsonObject {
  return {
    place: index + 1,
    at_ms: entry.atMs,
    instance_id: entry.instanceId,
    agent_id: entry.agentId ?? null,
    session_id: entry.sessionId ?? null,
    kind: entry.kind,
    details: JSON.stringify(entry.details),
  };
}

function auditEntryOf(row: AuditRow): AgentAuditEntry & { readonly position: number } {
  const place = `audit ${row.position}`;
  const { details, unreadable } = toldOr({ details: {} }, () => ({
    details: parsedAt<JsonObject>(place, row.details, 'object'),
  }));
  return {
    position: row.position,
    atMs: toldOr({ atMs: 0 }, () => ({ atMs: timeAt(place, row.at_ms) })).atMs,
    tenant: row.tenant_id,
    instanceId: row.instance_id,
    ...(row.agent_id === null ? {} : { agentId: row.agent_id }),
    ...(row.session_id === null ? {} : { sessionId: row.session_id }),
    kind: row.kind,
    details: unreadable ? { unreadable: { ...unreadable } } : details,
  };
}

function tokenMethods(db: Db): Pick<AgentRegistry, 'mintToken' | 'consumeToken'> {
  return {
    async mintToken({ tenant, agentId, tokenHash }, lifeMs) {
      const [minted] = await db.query<{ expires_at_ms: number }>(
        `WITH gone AS (${deleteExpired('agent_tokens')})
         INSERT INTO agent_tokens (token_hash, tenant_id, agent_id, expires_at_ms)
         VALUES ($1, $2, $3, ${inMs('$4')}) RETURNING expires_at_ms`,
        [tokenHash, tenant, agentId, lifeMs],
      );
      if (!minted) throw new HostError('internal_error');
      return minted.expires_at_ms;
    },
    async consumeToken({ tenant, agentId, tokenHash }) {
      const spent = await db.query(
        `DELETE FROM agent_tokens
         WHERE token_hash = $1 AND tenant_id = $2 AND agent_id = $3 AND expires_at_ms > ${NOW_MS} RETURNING 1`,
        [tokenHash, tenant, agentId],
      );
      return spent.length > 0;
    },
  };
}
