// Agents that are not started any more (architecture §5): their calls fail at once, with the reason, instead of waiting for a
// process that does not come. Where another Core may have the agent, they are left to that one.
import type { AgentInstance, AgentRegistry } from '../ports/agents.ts';
import { nowMs, within } from '../system/time.ts';
import { late } from './registry-writer.ts';

/** Longest wait in ms for the registry's word on other Cores. */
const LOOK_MS = 2_000;
/**
 * How an agent is in a Core that takes no calls of it, and will not by itself. One that drains may only connect again: a Core
 * that stops takes its rows away.
 */
const IS_GONE: Readonly<Record<AgentInstance['status'], boolean>> = {
  starting: false,
  connected: false,
  waiting: false,
  'backing-off': false,
  'crash-loop': true,
  draining: false,
  stopped: true,
  refused: true,
};

export interface GivenUpOptions {
  readonly registry: Pick<AgentRegistry, 'instances'>;
  readonly tenant: string;
  readonly instanceId: string;
  /** From one look for other Cores to the next, in ms: in that time each Core that is there has written its row. */
  readonly everyMs: number;
  /** Why this Core does not start the agent any more, as sentences. Undefined: it is there, or is on its way. */
  readonly reasonOf: (agentId: string) => string | undefined;
  /** Whether calls of the agent fail, and why. Repeats change nothing. */
  readonly report: (agentId: string, reason: string | undefined) => void;
}

export class GivenUpAgents {
  readonly #options: GivenUpOptions;
  readonly #looks = new Map<string, Promise<boolean>>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** When nobody was found, by agent, in ms. One such look may be wrong: rows end while a database is away. */
  readonly #nobodyAtMs = new Map<string, number>();

  constructor(options: GivenUpOptions) {
    this.#options = options;
  }

  /** The agent's life in this Core changed. */
  changed(agentId: string): void {
    const { reasonOf, report } = this.#options;
    if (reasonOf(agentId) !== undefined) return void this.look(agentId);
    clearTimeout(this.#timers.get(agentId));
    this.#timers.delete(agentId);
    this.#nobodyAtMs.delete(agentId);
    report(agentId, undefined);
  }

  /**
   * Asks again whether another Core may have it. Gives whether a call may wait here. Never rejects: while the registry is
   * away the last report holds.
   */
  look(agentId: string): Promise<boolean> {
    if (this.#options.reasonOf(agentId) === undefined) return Promise.resolve(true);
    const known = this.#looks.get(agentId);
    if (known) return known;
    const look = this.#ask(agentId)
      .catch(() => {
        this.#nobodyAtMs.delete(agentId);
        return this.#options.reasonOf(agentId) === undefined;
      })
      .finally(() => {
        this.#looks.delete(agentId);
        this.#lookLater(agentId);
      });
    this.#looks.set(agentId, look);
    return look;
  }

  async #ask(agentId: string): Promise<boolean> {
    const { registry, tenant, instanceId, everyMs, reasonOf, report } = this.#options;
    const askedAtMs = nowMs();
    const rows = await within(LOOK_MS, registry.instances(tenant, agentId), late);
    const isElsewhere = rows.some((row) => row.instanceId !== instanceId && !IS_GONE[row.status]);
    const reason = reasonOf(agentId);
    if (isElsewhere || reason === undefined) {
      this.#nobodyAtMs.delete(agentId);
      report(agentId, undefined);
      return reason === undefined;
    }
    const nobodyAtMs = this.#nobodyAtMs.get(agentId);
    if (nobodyAtMs !== undefined && askedAtMs - nobodyAtMs < everyMs) return true;
    this.#nobodyAtMs.set(agentId, nowMs());
    if (nobodyAtMs !== undefined) report(agentId, reason);
    return true;
  }

  #lookLater(agentId: string): void {
    const { everyMs, reasonOf } = this.#options;
    clearTimeout(this.#timers.get(agentId));
    if (reasonOf(agentId) === undefined) return;
    const lastMs = this.#nobodyAtMs.get(agentId) ?? nowMs();
    const timer = setTimeout(() => void this.look(agentId), lastMs + everyMs - nowMs());
    this.#timers.set(agentId, timer.unref());
  }
}
