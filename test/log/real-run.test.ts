// The invariant harness on a real host: Temporal, PGlite, worker, projector and facade.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { isTerminalEvent } from '../../src/rules/status.ts';
import type { WorkflowNode } from '../../schemas/types.generated.ts';
import { chain, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { deltasOf } from '../journeys/brackets.ts';
import { journeyParts, MARATHON, workflowOf } from '../journeys/journey-workflows.ts';
import { runRef } from '../support/run-ref.ts';

const ends = (middle: WorkflowNode) => [
  node('start', 'core.start'),
  middle,
  node('end', 'core.end'),
];
const FIXTURES = [
  chain('plain', ends(node('work', 'core.noop'))),
  chain('failing', ends(node('work', 'core.fail'))),
  chain(
    'asking',
    ends(
      node('gate', 'core.approvalGate', {
        config: { title: 'May I?', actions: ['accept', 'reject'] },
      }),
    ),
  ),
];

let host: TestHost;
let fixturesDir: string;

beforeAll(async () => {
  fixturesDir = await mkdtemp(join(tmpdir(), 'openwop-log-'));
  for (const fixture of FIXTURES) {
    await writeFile(join(fixturesDir, `${fixture.id}.json`), JSON.stringify(fixture));
  }
  host = await startTestHost({ fixturesDir, builtIn: journeyParts('http://127.0.0.1:1') });
});

afterAll(async () => {
  await host?.stop();
  await rm(fixturesDir, { recursive: true, force: true });
});

async function terminate(runId: string): Promise<void> {
  const connection = connectTemporal(host.temporal);
  const client = new Client({ connection, namespace: host.temporal.namespace });
  await client.workflow.getHandle(runId).terminate('tested');
  await connection.close();
}

describe('architecture §8: the invariants hold', () => {
  it.each(['plain', 'failing'])('of a run that ends: %s', async (workflowId) => {
    const runId = await host.startRun({ workflowId });
    await host.waitFor(runId, ({ status }) => status === 'completed' || status === 'failed');
    await checkInvariants(host, runId);
  });

  it('of a run that waits for a human, and after it was terminated from outside', async () => {
    const runId = await host.startRun({ workflowId: 'asking' });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    await checkInvariants(host, runId);
    await terminate(runId);
    const ended = await host.waitFor(runId, ({ status }) => status === 'failed');
    expect(ended.error?.code).toBe('run_terminated');
    await checkInvariants(host, runId);
  });

  it('architecture §3.5: a run that is terminated in mid-sentence gets its reasoning closed with what was stored', async () => {
    const runId = await host.startRun({ workflowId: workflowOf(MARATHON) });
    const rows = () => host.stores.log.read(runRef(runId), { after: -1, limit: 1_000 });
    const has = async (wanted: string) => (await rows()).some(({ type }) => type === wanted);
    await until(() => has('agent.reasoning.delta'), 'it streams');
    await terminate(runId);
    const ended = await host.waitFor(runId, ({ status }) => status === 'failed');
    expect(ended.error?.code).toBe('run_terminated');
    const all = await rows();
    const shown = deltasOf(
      all.map((row) => ({ ...row, payload: JSON.parse(row.payload) as unknown })) as never,
    );
    const closing = all.filter(({ type }) => type === 'agent.reasoned');
    expect(closing.map(({ payload }) => JSON.parse(payload) as unknown)).toEqual([
      { agentId: MARATHON, verbosity: 'summary', reasoning: shown },
    ]);
    const closings = all.slice(all.findLastIndex(({ type }) => type.endsWith('.delta')) + 1);
    expect(closings.map(({ type }) => type)).toEqual([
      ...['agent.reasoned', 'agent.invocation.completed', 'node.cancelled', 'run.failed'],
    ]);
  });

  it('architecture §3.4: the projector alone closes a run that nobody reads', async () => {
    const runId = await host.startRun({ workflowId: 'plain' });
    await until(
      async () => (await host.stores.log.head(runRef(runId)))?.closed ?? false,
      'the head is closed',
    );
    const rows = await host.stores.log.read(runRef(runId), { after: -1, limit: 100 });
    expect(isTerminalEvent(rows.at(-1)?.type ?? '')).toBe(true);
    await until(
      async () => Boolean((await host.stores.segments.ofRun(runRef(runId)))[0]?.archive),
      'it is archived',
    );
  });
});
