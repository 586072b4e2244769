// Counts and times of an agent's calls, per tool: what operators see (seed 004 §4.3; no arguments, no results).
import {
  MAX_COUNTED_TOOLS,
  type AgentToolMetrics,
  type OUTCOMES,
} from '../../rules/tool-metrics.ts';

export type CallEnding = (typeof OUTCOMES)[number];

export class CallMetrics {
  readonly #rows = new Map<
    string,
    { -readonly [Key in keyof AgentToolMetrics]: AgentToolMetrics[Key] }
  >();

  /** A call was sent. */
  began(toolId: string): void {
    this.#row(toolId).calls += 1;
  }

  ended(toolId: string, ending: CallEnding, tookMs: number): void {
    const row = this.#row(toolId);
    row[ending] += 1;
    row.totalMs += tookMs;
    row.maxMs = Math.max(row.maxMs, tookMs);
  }

  rows(): readonly AgentToolMetrics[] {
    return [...this.#rows.values()].map((row) => ({ ...row }));
  }

  #row(toolId: string) {
    const known = this.#rows.get(toolId);
    if (known) return known;
    for (const oldest of this.#rows.keys()) {
      if (this.#rows.size < MAX_COUNTED_TOOLS) break;
      this.#rows.delete(oldest);
    }
    const counts = { calls: 0, succeeded: 0, failed: 0, canceled: 0, unanswered: 0 };
    const row = { toolId, ...counts, totalMs: 0, maxMs: 0 };
    this.#rows.set(toolId, row);
    return row;
  }
}
