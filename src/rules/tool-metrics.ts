// Counts and times of the calls of agents' tools (seed 004 §4.3; no arguments, no results): a session counts, its Core
// adds its sessions up, operators see the sum of all Cores.

/** Tools whose counts are kept; the one that came first is forgotten above it, since tools come and go. */
export const MAX_COUNTED_TOOLS = 1_024;

export interface AgentToolMetrics {
  readonly toolId: string;
  readonly calls: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly canceled: number;
  /** Ended without a word of the agent: connection lost, or cancel deadline over. */
  readonly unanswered: number;
  readonly totalMs: number;
  readonly maxMs: number;
}

export const OUTCOMES = ['succeeded', 'failed', 'canceled', 'unanswered'] as const;

/** One row per tool, in order of first appearance. */
export function sumByTool(rows: readonly AgentToolMetrics[]): AgentToolMetrics[] {
  const sums = new Map<string, AgentToolMetrics>();
  for (const row of rows) {
    const sum = sums.get(row.toolId);
    sums.set(row.toolId, sum ? added(sum, row) : row);
  }
  return [...sums.values()];
}

function added(a: AgentToolMetrics, b: AgentToolMetrics): AgentToolMetrics {
  return {
    toolId: a.toolId,
    calls: a.calls + b.calls,
    succeeded: a.succeeded + b.succeeded,
    failed: a.failed + b.failed,
    canceled: a.canceled + b.canceled,
    unanswered: a.unanswered + b.unanswered,
    totalMs: a.totalMs + b.totalMs,
    maxMs: Math.max(a.maxMs, b.maxMs),
  };
}
