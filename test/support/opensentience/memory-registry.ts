// AgentRegistry in memory: the twin of src/adapters/postgres/agent-registry.ts for tests of Core that need no database.
// It can be told to fail, as a database that is away does.
import type {
  AgentAuditEntry,
  AgentInstance,
  AgentRegistry,
  DeclaredTools,
} from '../../../src/ports/agents.ts';

export interface MemoryRegistry extends AgentRegistry {
  /** Everything that was appended, oldest first. */
  readonly entries: AgentAuditEntry[];
  /** Every row that was ever saved. */
  readonly saved: AgentInstance[];
  /** Calls that write fail while it is true. */
  away: boolean;
  /** What the agent declared is gone, as after a failover that lost it. */
  lose(agentId: string): void;
}

const keyOf = (...parts: readonly string[]): string => JSON.stringify(parts);

/** `now`: the clock that tokens go by. */
export function createMemoryRegistry(now: () => number = Date.now): MemoryRegistry {
  const tools = new Map<string, DeclaredTools>();
  const rows = new Map<string, { instance: AgentInstance; untilMs: number }>();
  const tokens = new Map<string, number>();
  const entries: AgentAuditEntry[] = [];
  const saved: AgentInstance[] = [];
  const answer = () => {
    if (registry.away) throw new Error('the database is away');
  };
  const registry: MemoryRegistry = {
    entries,
    saved,
    away: false,
    lose(agentId) {
      for (const key of tools.keys())
        if ((JSON.parse(key) as string[])[1] === agentId) tools.delete(key);
    },
    async saveTools(tenant, agentId, declared) {
      answer();
      const version = (tools.get(keyOf(tenant, agentId))?.version ?? 0) + 1;
      tools.set(keyOf(tenant, agentId), { tools: declared, version });
      return version;
    },
    async keepTools(tenant, agentId, declared) {
      answer();
      const stored = tools.get(keyOf(tenant, agentId));
      if (!stored || stored.version < declared.version) tools.set(keyOf(tenant, agentId), declared);
    },
    async tools(tenant, toolIds) {
      const all = [...tools].flatMap(([key, declared]) =>
        (JSON.parse(key) as string[])[0] === tenant ? declared.tools : [],
      );
      return all.filter(({ toolId }) => toolIds?.includes(toolId) ?? true);
    },
    async saveInstance(instance, leaseMs) {
      answer();
      saved.push(instance);
      const key = keyOf(instance.tenant, instance.agentId, instance.instanceId);
      rows.set(key, { instance, untilMs: Date.now() + leaseMs });
    },
    async instances(tenant, agentId) {
      return [...rows.values()]
        .filter(({ untilMs }) => untilMs > Date.now())
        .map(({ instance }) => instance)
        .filter((row) => row.tenant === tenant && row.agentId === (agentId ?? row.agentId))
        .sort((a, b) => (a.agentId + a.instanceId < b.agentId + b.instanceId ? -1 : 1));
    },
    async removeInstances(instanceId) {
      answer();
      for (const [key, { instance }] of rows)
        if (instance.instanceId === instanceId) rows.delete(key);
    },
    async appendAudit(more) {
      answer();
      entries.push(...more);
    },
    async audit(tenant, { agentId, before = Infinity, limit }) {
      return entries
        .map((entry, index) => ({ ...entry, position: index + 1 }))
        .filter((entry) => entry.tenant === tenant && entry.position < before)
        .filter((entry) => agentId === undefined || entry.agentId === agentId)
        .reverse()
        .slice(0, limit);
    },
    async mintToken({ tenant, agentId, tokenHash }, lifeMs) {
      const expiresAtMs = now() + lifeMs;
      tokens.set(keyOf(tenant, agentId, tokenHash), expiresAtMs);
      return expiresAtMs;
    },
    async consumeToken({ tenant, agentId, tokenHash }) {
      const key = keyOf(tenant, agentId, tokenHash);
      const expiresAtMs = tokens.get(key) ?? 0;
      answer();
      tokens.delete(key);
      return expiresAtMs > now();
    },
    async expire() {
      return 0;
    },
  };
  return registry;
}
