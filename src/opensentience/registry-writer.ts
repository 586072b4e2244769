// What Core tells the registry (architecture §5): tools, instances under a lease, audit. Written one after the other,
// tried again while the database is away, bounded in memory: a registry that fails costs rows, never Core.
import { codeOf, HostError } from '../rules/errors.ts';
import { within } from '../system/time.ts';
import type {
  AgentAuditEntry,
  AgentInstance,
  AgentRegistry,
  AgentTool,
  DeclaredTools,
} from '../ports/agents.ts';
import type { Logger } from '../ports/logger.ts';
import type { AuditNote } from './parts.ts';
import type { ProcessLimits } from './process/limits.ts';

/** Audit entries that wait to be written; further ones are counted, and the count is audited. */
export const MAX_WAITING_AUDIT = 10_000;
const AUDIT_BATCH = 500;
/** An audit entry waits for company so long, in ms. */
const AUDIT_WAIT_MS = 500;
/** Longest wait in ms for one word of the registry, and from a failure to the next try. */
const CALL_MS = 10_000;
const RETRY_MS = 1_000;
/** Calls of one round without an answer that are waited for. */
const TOO_LATE = 2;
/** For what is left when Core stops, in ms. */
const FINAL_MS = 2_000;

export interface RegistryWriterOptions {
  readonly registry: AgentRegistry;
  readonly tenant: string;
  readonly instanceId: string;
  readonly agentIds: readonly string[];
  readonly row: (agentId: string) => AgentInstance | undefined;
  readonly limits: Pick<ProcessLimits, 'leaseMs' | 'renewMs'>;
  readonly logger: Logger;
}

export class RegistryWriter {
  readonly #options: RegistryWriterOptions;
  /** The newest of each agent holds. */
  readonly #tools = new Map<string, readonly AgentTool[]>();
  /** What of them is written, and which agents are looked at again: a failover may have lost it. */
  readonly #declared = new Map<string, DeclaredTools>();
  readonly #unsure = new Set<string>();
  /** Rows to write, and from when on, in ms. */
  readonly #rows = new Map<string, number>();
  #audit: AgentAuditEntry[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #dueAtMs = Infinity;
  #renewal: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  #failing = false;
  #stopped = false;

  constructor(options: RegistryWriterOptions) {
    this.#options = options;
  }

  start(): void {
    const all = () => {
      for (const agentId of this.#declared.keys()) this.#unsure.add(agentId);
      this.#options.agentIds.forEach((agentId) => this.touch(agentId, 0));
    };
    this.#renewal = setInterval(all, this.#options.limits.renewMs);
    all();
  }

  saveTools(agentId: string, tools: readonly AgentTool[]): void {
    this.#tools.set(agentId, tools);
    this.#schedule(0);
  }

  /** The agent's row changed: it is written within `ms`, together with what else changes until then. */
  touch(agentId: string, ms: number): void {
    const atMs = Date.now() + ms;
    this.#rows.set(agentId, Math.min(atMs, this.#rows.get(agentId) ?? atMs));
    this.#schedule(ms);
  }

  note(note: AuditNote): void {
    if (this.#stopped) return;
    if (this.#audit.length >= MAX_WAITING_AUDIT) this.#dropped++;
    else this.#audit.push(this.#entry(note));
    this.#schedule(AUDIT_WAIT_MS);
  }

  /** Writes what is left, removes this Core's rows. Bounded. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#renewal);
    this.#rows.clear();
    await within(FINAL_MS, this.#finish(), late).catch((error: unknown) => this.#failed({ error }));
  }

  async #finish(): Promise<void> {
    await this.#working;
    const [fault] = await this.#write();
    if (fault) this.#failed(fault);
    await this.#options.registry.removeInstances(this.#options.instanceId);
  }

  #entry({ agentId, sessionId, kind, details }: AuditNote): AgentAuditEntry {
    const { tenant, instanceId } = this.#options;
    return {
      atMs: Date.now(),
      tenant,
      instanceId,
      ...(agentId === undefined ? {} : { agentId }),
      ...(sessionId === undefined ? {} : { sessionId }),
      kind,
      details,
    };
  }

  #schedule(ms: number): void {
    const atMs = Date.now() + (this.#failing ? Math.max(ms, RETRY_MS) : ms);
    if (this.#stopped || atMs >= this.#dueAtMs) return;
    clearTimeout(this.#timer);
    this.#dueAtMs = atMs;
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, atMs - Date.now()));
  }

  #wake(): void {
    this.#dueAtMs = Infinity;
    // Whoever works now looks again at its end.
    if (this.#working || this.#stopped) return;
    this.#working = this.#write()
      .then(([fault]) => (fault ? this.#failed(fault) : this.#recovered()))
      .finally(() => {
        this.#working = undefined;
        this.#scheduleRest();
      });
  }

  #scheduleRest(): void {
    if (this.#tools.size > 0) this.#schedule(0);
    if (this.#audit.length > 0 || this.#dropped > 0) this.#schedule(AUDIT_WAIT_MS);
    const nextMs = Math.min(...this.#rows.values());
    if (nextMs !== Infinity) this.#schedule(Math.max(0, nextMs - Date.now()));
  }

  /** Each part, and each agent in it, has its turn, whatever becomes of those before it. Returns what could not be written. */
  async #write(): Promise<readonly Fault[]> {
    const faults = [...(await this.#writeTools()), ...(await this.#writeRows())];
    faults.push(...(await this.#keepTools()));
    await this.#writeAudit().catch((error: unknown) => faults.push({ error }));
    return faults;
  }

  #writeTools(): Promise<Fault[]> {
    const { registry, tenant } = this.#options;
    return ofEach([...this.#tools], async ([agentId, tools]) => {
      // After the others in the next round, if it fails.
      this.#tools.delete(agentId);
      try {
        const version = await within(CALL_MS, registry.saveTools(tenant, agentId, tools), late);
        this.#declared.set(agentId, { tools, version });
      } catch (error) {
        if (!this.#tools.has(agentId)) this.#tools.set(agentId, tools);
        throw error;
      }
    });
  }

  /** Of those that declare something else now, that is written first. */
  #keepTools(): Promise<Fault[]> {
    const { registry, tenant } = this.#options;
    const declared = [...this.#declared].filter(([agentId]) => this.#unsure.delete(agentId));
    return ofEach(declared, async ([agentId, tools]) => {
      if (this.#stopped || this.#tools.has(agentId)) return;
      await within(CALL_MS, registry.keepTools(tenant, agentId, tools), late);
    });
  }

  #writeRows(): Promise<Fault[]> {
    const { registry, row, limits } = this.#options;
    const nowMs = Date.now();
    const due = [...this.#rows].filter(([, dueMs]) => dueMs <= nowMs);
    return ofEach(due, async ([agentId, dueMs]) => {
      if (this.#stopped) return;
      this.#rows.delete(agentId);
      const instance = row(agentId);
      if (!instance) return;
      try {
        await within(CALL_MS, registry.saveInstance(instance, limits.leaseMs), late);
      } catch (error) {
        this.#rows.set(agentId, dueMs);
        throw error;
      }
    });
  }

  async #writeAudit(): Promise<void> {
    while (this.#audit.length > 0 || this.#dropped > 0) {
      const dropped = this.#dropped;
      const batch = this.#audit.slice(0, AUDIT_BATCH);
      const missing =
        dropped > 0 ? [this.#entry({ kind: 'audit.dropped', details: { count: dropped } })] : [];
      await within(CALL_MS, this.#options.registry.appendAudit([...batch, ...missing]), late);
      this.#audit = this.#audit.slice(batch.length);
      this.#dropped -= dropped;
    }
  }

  #failed(fault: Fault): void {
    if (!this.#failing)
      this.#options.logger.warn('the registry of agents does not take what Core says, trying on', {
        ...fault,
      });
    this.#failing = true;
  }

  #recovered(): void {
    if (this.#failing) this.#options.logger.info('the registry of agents answers again');
    this.#failing = false;
  }
}

/** The registry gave no answer within the time that it has. */
export function late(): never {
  throw new HostError('service_unavailable', { reason: 'no answer in time' });
}

/** Why something was not written, and of which agent. */
interface Fault {
  readonly agentId?: string;
  readonly error: unknown;
}

/** By agent. Where TOO_LATE of them come to no end it is the registry: the others are left to the next round. */
async function ofEach<Value>(
  values: readonly (readonly [agentId: string, value: Value])[],
  write: (value: readonly [string, Value]) => Promise<void>,
): Promise<Fault[]> {
  const faults: Fault[] = [];
  let lateOnes = 0;
  for (const value of values) {
    if (lateOnes >= TOO_LATE) break;
    try {
      await write(value);
    } catch (error) {
      faults.push({ agentId: value[0], error });
      if (codeOf(error) === 'service_unavailable') lateOnes++;
    }
  }
  return faults;
}
