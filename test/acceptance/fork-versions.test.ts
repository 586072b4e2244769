// A run of an agent that has another version by now (replay.md §Modes): its forks go by the manifest that it was pinned to,
// and a branch by the new one where it is told to.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Cohort } from '../../schemas/types.generated.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import { agentNode, definition } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { runRef } from '../support/run-ref.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';

const AGENT = 'local.versions.judge';
const WORKFLOW = definition('versioned', [agentNode('judge', AGENT)], []);
const SCRIPTS = {
  [AGENT]: { turns: [{ final: { decision: { rule: '{{prompt.rule}}' }, confidence: 1 } }] },
};

function judge(packVersion: string, rule: string): ResolvedAgent {
  const systemPrompt = `You judge.\nrule: ${rule}`;
  return {
    manifest: { agentId: AGENT, persona: 'Judge', modelClass: 'general', systemPrompt },
    ...{ packName: 'local.versions', packVersion, systemPrompt },
  };
}

let temporal: TestTemporal;
let namespace: string;
let dataDir: string;
let host: TestHost;
let sourceRunId: string;

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);

async function startWith(agent: ResolvedAgent): Promise<void> {
  await host?.stop();
  host = await startTestHost({
    ...{ dataDir, temporal: { address: temporal.address, namespace } },
    builtIn: { definitions: [WORKFLOW], agents: [agent], scripts: SCRIPTS, tools: [] },
  });
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'openwop-versions-'));
  temporal = await startTestTemporal();
  namespace = await temporal.namespace();
  await startWith(judge('1.0.0', 'kind'));
  sourceRunId = await host.startRun({ workflowId: WORKFLOW.id });
  await host.waitFor(sourceRunId, ended);
  await startWith(judge('2.0.0', 'strict'));
});
afterAll(async () => {
  await host?.stop();
  await temporal?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function decisionOf(of: object): Promise<JsonObject | undefined> {
  const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${sourceRunId}:fork`, {
    body: of,
  });
  expect([status, body]).toMatchObject([201, { sourceRunId }]);
  const { runId } = body;
  expect((await host.waitFor(runId, ended)).status).toBe('completed');
  await checkInvariants(host, runId);
  const rows = await host.stores.log.read(runRef(runId), { after: -1, limit: 1_000 });
  const decided = rows.find(({ type }) => type === 'agent.decided');
  return decided && (JSON.parse(decided.payload) as JsonObject);
}

it.each([
  ['a replay goes by the version that its source was pinned to', 'replay', {}, 'kind'],
  ['a branch does, too, where nothing else is said', 'branch', {}, 'kind'],
  [
    'a branch goes by the version that it is told',
    'branch',
    { agents: { [AGENT]: { packVersion: '2.0.0' } } },
    'strict',
  ],
])('%s', async (_what, mode, runOptionsOverlay, rule) => {
  const overlay = mode === 'branch' ? { runOptionsOverlay } : {};
  expect(await decisionOf({ mode, fromSeq: 0, ...overlay })).toMatchObject({ decision: { rule } });
});

it('a version that nobody has any more is refused, and no fork is made', async () => {
  const runOptionsOverlay = { agents: { [AGENT]: { packVersion: '1.0.0' } } };
  const { status, body } = await host.api(`/v1/runs/${sourceRunId}:fork`, {
    body: { mode: 'branch', fromSeq: 0, runOptionsOverlay },
  });
  expect([status, body]).toMatchObject([404, { error: 'agent_not_found' }]);
});

it('a cohort goes by the version that it is told, and tells what it decides otherwise', async () => {
  const cohorts = '/v1/host/openwop-temporal/cohorts';
  const change = { agents: { judge: { packVersion: '2.0.0' } } };
  const body = { select: { workflowId: WORKFLOW.id }, change };
  const { status, body: begun } = await host.api<Cohort>(cohorts, { body });
  expect([status, begun]).toMatchObject([201, { mode: 'branch', members: 1 }]);
  let cohort = begun;
  await until(async () => {
    cohort = (await host.api<Cohort>(`${cohorts}/${begun.cohortId}`)).body;
    return cohort.endedAt !== undefined;
  }, 'the cohort has ended');
  expect(cohort.results).toMatchObject([
    {
      ...{ sourceRunId, outcome: 'outcome-changed', divergence: { cause: 'agents' } },
      changes: expect.arrayContaining([
        {
          ...{ nodeId: 'judge', visit: 1, pointer: '/decisions/0/decision/rule' },
          ...{ before: '"kind"', after: '"strict"' },
        },
      ]) as unknown,
    },
  ]);
});
