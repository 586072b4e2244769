// src/rules/tool-metrics.ts: counts of sessions and Cores added up per tool.
import { expect, test } from 'vitest';
import { sumByTool, type AgentToolMetrics } from '../../src/rules/tool-metrics.ts';

const row = (toolId: string, from: number): AgentToolMetrics => ({
  ...{ toolId, calls: from, succeeded: from + 1, failed: from + 2, canceled: from + 3 },
  ...{ unanswered: from + 4, totalMs: from + 5, maxMs: from + 6 },
});

test('each count is a sum, the longest time the longest, and the first row of a tool keeps its place', () => {
  expect(sumByTool([row('b', 10), row('a', 1), row('b', 20)])).toEqual([
    {
      ...{ toolId: 'b', calls: 30, succeeded: 32, failed: 34, canceled: 36, unanswered: 38 },
      ...{ totalMs: 40, maxMs: 26 },
    },
    row('a', 1),
  ]);
  expect(sumByTool([])).toEqual([]);
});
