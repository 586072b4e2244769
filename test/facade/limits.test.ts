// capabilities.md §Engine-enforced limits: each number that discovery tells is measured on a host that runs, with agents
// and without. A limit without a measure fails.
import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import type { BuiltIn } from '../../src/app/parts.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { ended, readLog, types } from './suite-parts.ts';

const ANSWER = { resumeValue: { answers: { q: 'a' } } };
/** Above every number that is measured by asking more and more. */
const MANY = 10_000;

const manifestOf = (agentId: string) => ({
  ...{ agentId, persona: 'Clerk', modelClass: 'general' as const },
  systemPrompt: 'Decide.',
});
const asks = {
  type: 'clarification.request',
  payload: { questions: [{ id: 'q', question: 'What is q?' }] },
};
const decides = { decision: 'done', confidence: 1 };
const SCRIPTS = {
  'local.suite.limits.asking': { turns: [{ final: { decision: asks } }] },
  'local.suite.limits.useless': { turns: [{ raw: 'nothing of use' }] },
  // Two envelopes in one output.
  'local.suite.limits.insisting': {
    turns: [{ raw: JSON.stringify({ ...asks, decision: asks }) }, { final: decides }],
  },
} satisfies BuiltIn['scripts'];

/** Named like its agent, by the last word. */
const workflowOf = (agentId: string): string => agentId.split('.').at(-1) ?? '';

const PLAIN = [
  chain('waiting', [node('gate', 'core.approvalGate')]),
  chain('clarify', [
    node('ask', 'core.clarificationGate', {
      config: { questions: [{ id: 'q', question: 'What is q?' }] },
    }),
  ]),
  definition(
    'endless',
    [node('work', 'core.noop')],
    [edge('work', 'work', { condition: { type: 'truthy', left: 'again' } })],
    {
      variables: [{ name: 'again', type: 'boolean', defaultValue: true }],
      settings: { maxLoopbackIterations: MANY },
    },
  ),
];
const AGENTS: Partial<BuiltIn> = {
  definitions: [
    ...PLAIN,
    ...Object.keys(SCRIPTS).map((agentId) =>
      chain(workflowOf(agentId), [agentNode('think', agentId)]),
    ),
  ],
  agents: Object.keys(SCRIPTS).map((agentId) => ({
    ...{ manifest: manifestOf(agentId), packName: 'limits', packVersion: '1.0.0' },
    systemPrompt: 'Decide.',
  })),
  scripts: SCRIPTS,
};

/** How much the host permits, found out by asking for more. */
type Measure = (host: TestHost) => Promise<number>;

/** How often the type stands in the log of a run that has ended. */
async function countOf(host: TestHost, runId: string, type: string): Promise<number> {
  return types((await readLog(host, runId)).events).filter((told) => told === type).length;
}

/** Answers whatever the node asks until the run has ended; how often it asked. */
async function roundsAt(host: TestHost, workflowId: string, nodeId: string): Promise<number> {
  const runId = await host.startRun({ workflowId });
  const asked = new Set<string>();
  for (;;) {
    const last = [...asked].at(-1);
    const { status, interrupt } = await host.waitFor(
      runId,
      (run) => ended(run) || (run.interrupt !== undefined && run.interrupt.interruptId !== last),
    );
    if (interrupt === undefined) return status === 'cancelled' ? NaN : asked.size;
    asked.add(String(interrupt.interruptId));
    await host.api(`/v1/runs/${runId}/interrupts/${nodeId}`, { body: ANSWER });
  }
}

async function endedRun(host: TestHost, workflowId: string): Promise<string> {
  const runId = await host.startRun({ workflowId });
  await host.waitFor(runId, ended);
  return runId;
}

/** Where there is no agent no model is asked at all. */
const noModel: Measure = async (host) =>
  (await host.api('/v1/runs', { body: { agentId: 'local.suite.limits.asking' } })).status === 404
    ? 0
    : NaN;

/** The largest body whose workflow is looked for. */
const largestBody: Measure = async (host) => {
  const body = JSON.stringify({ workflowId: 'nothing' });
  let [taken, refused] = [body.length, 8 * 1024 * 1024];
  while (refused - taken > 1) {
    const size = Math.floor((taken + refused) / 2);
    const headers = { 'content-type': 'application/json' };
    const { status } = await host.api('/v1/runs', { body: body.padEnd(size), headers });
    if (status === 404) taken = size;
    else refused = size;
  }
  return taken;
};

const executionTimeout: Measure = async (host) => {
  const workflowId = await host.startRun({ workflowId: 'waiting' });
  const { address, namespace } = host.temporal;
  const connection = await Connection.connect({ ...CONNECTION_DEFAULTS, address });
  try {
    const { executionConfig } = await connection.workflowService.describeWorkflowExecution({
      namespace,
      execution: { workflowId },
    });
    return Number(executionConfig?.workflowExecutionTimeout?.seconds) * 1000;
  } finally {
    await connection.close();
  }
};

const EVERYWHERE: Readonly<Record<string, Measure>> = {
  maxNodeExecutions: async (host) => countOf(host, await endedRun(host, 'endless'), 'node.started'),
  maxRunDurationMs: executionTimeout,
  maxRequestBodyBytes: largestBody,
};

describe.each<[string, Partial<BuiltIn>, Readonly<Record<string, Measure>>]>([
  [
    'with agents',
    AGENTS,
    {
      clarificationRounds: (host) => roundsAt(host, 'asking', 'think'),
      schemaRounds: async (host) =>
        (await countOf(host, await endedRun(host, 'useless'), 'provider.usage')) - 1,
      envelopesPerTurn: (host) => roundsAt(host, 'insisting', 'think'),
      ...EVERYWHERE,
    },
  ],
  [
    'without agents',
    { definitions: PLAIN },
    {
      clarificationRounds: (host) => roundsAt(host, 'clarify', 'ask'),
      schemaRounds: noModel,
      envelopesPerTurn: noModel,
      ...EVERYWHERE,
    },
  ],
])('capabilities.md §Engine-enforced limits, %s', (_, builtIn, measures) => {
  let host: TestHost;
  let limits: Readonly<Record<string, number>>;
  beforeAll(async () => {
    host = await startTestHost({ builtIn });
    const { body } = await host.api<{ limits: typeof limits }>('/.well-known/openwop');
    limits = body.limits;
  });
  afterAll(() => host.stop());

  it('every one has a measure', () => {
    expect(Object.keys(limits)).toEqual(Object.keys(measures));
  });

  it.each(Object.entries(measures))('%s is what is told', async (name, measure) => {
    expect(await measure(host)).toBe(limits[name]);
  });

  it('a run over its node executions fails, and says the limit', async () => {
    const runId = await endedRun(host, 'endless');
    const { status, error } = await host.waitFor(runId, ended);
    expect({ status, error }).toMatchObject({
      status: 'failed',
      error: {
        code: 'recursion_limit_exceeded',
        details: {
          limit: limits.maxNodeExecutions,
          observed: (limits.maxNodeExecutions ?? NaN) + 1,
        },
      },
    });
    expect(await countOf(host, runId, 'cap.breached')).toBe(1);
  });
});

describe('the ceiling of a run in time', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost({ builtIn: { definitions: PLAIN } });
  });
  afterAll(() => host.stop());

  it('ends a run that nobody gave a limit: run_timeout', async () => {
    const first = await host.startRun({ workflowId: 'waiting' });
    const given = await host.stores.runs.find('default', first);
    if (!given) throw new Error('the run is not there');
    const runId = `${first}-short`;
    const limits = { ...given.input.limits, maxRunDurationMs: 3_000 };
    const input = { ...given.input, runId, limits };
    await host.stores.runs.accept({ ...given, runId, input });
    const { temporalRunId } = await host.engine.start(input);
    await host.stores.runs.markStarted(host.stores.runs.ref('default', runId), temporalRunId);
    const run = await host.waitFor(runId, ended);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'run_timeout' } });
    expect((await host.waitFor(first, () => true)).status).not.toBe('failed');
  });
});
