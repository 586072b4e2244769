// A host with something of everything, for tests of its page.
import type { RunOverview } from '../../schemas/types.generated.ts';
import type { HomePageModel } from '../../src/pages/index.ts';

const NOW_MS = Date.UTC(2026, 10, 22, 12);
const iso = (ms: number): string => new Date(ms).toISOString();

export function sampleRun(over: Partial<RunOverview> = {}): RunOverview {
  return {
    ...{
      runId: 'run-1srOrx2ZWZBpBUvZwXKQmoEYga2',
      workflowId: 'refund',
      workflowName: 'Refund desk',
    },
    ...{ status: 'completed', createdAt: iso(NOW_MS - 600_000), tags: [], waiting: [] },
    ...{ startedAt: iso(NOW_MS - 600_000), endedAt: iso(NOW_MS - 588_000) },
    ...over,
  };
}

export function askingRun(
  over: Partial<RunOverview> = {},
  title = 'Pay 89.00 € back?',
): RunOverview {
  return sampleRun({
    ...{ runId: 'run-asks', status: 'waiting-approval', endedAt: undefined },
    waiting: [
      {
        ...{ nodeId: 'gate', nodeName: 'A human looks at it', interruptId: 'int-1', title },
        ...{ kind: 'approval', forPerson: true },
        ...{ requestedAt: iso(NOW_MS - 300_000), deadline: iso(NOW_MS + 5_400_000) },
      },
    ],
    ...over,
  });
}

export const EMPTY: HomePageModel = {
  ...{ csrfToken: 'csrf', eventsUrl: '/events', runs: [], filter: {}, stale: false, nowMs: NOW_MS },
  waiting: { runs: [], count: 0, countedTo: 1_000 },
  ...{ workflows: [], agents: [], faults: { faults: [], more: 0 } },
};

export const FULL: HomePageModel = {
  ...EMPTY,
  waiting: {
    runs: [
      askingRun(),
      askingRun(
        { runId: 'run-2', workflowName: 'Contract review' },
        'Which of the two clauses is meant?',
      ),
    ],
    ...{ count: 12, countedTo: 1_000, moreUrl: '/pages?waiting=abc' },
  },
  runs: [
    askingRun(),
    sampleRun({ runId: 'run-3', status: 'running', endedAt: undefined, tags: ['eu', 'desk'] }),
    sampleRun({ runId: 'run-4', status: 'failed', createdAt: iso(NOW_MS - 86_400_000) }),
    sampleRun(),
    sampleRun({ runId: 'run-5', status: 'waiting-external', endedAt: undefined }),
    sampleRun({ runId: 'run-6', status: 'cancelled' }),
  ],
  olderUrl: '/pages?cursor=abc',
  workflows: [
    {
      ...{ workflowId: 'refund', name: 'Refund desk', version: '1.0.0', steps: 5 },
      description: 'Decides on a refund, and asks a human where it is not sure.',
    },
    { workflowId: 'contract', name: 'Contract review', version: '2.1.0', steps: 1 },
  ],
  agents: [
    {
      ...{ agentId: 'demo.refund.triage', label: 'Refund clerk', persona: 'A careful clerk' },
      ...{ modelClass: 'general', degraded: ['memory.longTerm'] },
    },
  ],
  faults: {
    faults: [
      {
        ...{ what: 'workflow', source: 'broken.json', pointer: '/nodes/0/typeId' },
        message: 'is no node type of this host',
      },
      { what: 'agent', source: 'clerk.agent.json', pointer: '', message: 'is not UTF-8' },
    ],
    more: 0,
  },
};
