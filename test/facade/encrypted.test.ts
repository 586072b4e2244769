// Under payload encryption raw history holds nothing readable (architecture §7). `npm run campaign -- twins` sets
// OPENWOP_TWINS=whole and plays the HTTP suite so too, on PostgreSQL where it is there.
import { Connection } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { httpSuite } from './http-suite.ts';
import { MARKER, SUITE } from './suite-workflows.ts';

if (process.env.OPENWOP_TWINS === 'whole')
  httpSuite('a database under encryption', () =>
    startTestHost({ builtIn: SUITE, encryption: true }),
  );

async function rawHistory(host: TestHost, runId: string): Promise<Buffer> {
  const { address, namespace } = host.temporal;
  const connection = await Connection.connect({ ...CONNECTION_DEFAULTS, address });
  try {
    const { history } = await connection.workflowService.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId: runId },
    });
    return Buffer.from(temporal.api.history.v1.History.encode(history ?? {}).finish());
  } finally {
    await connection.close();
  }
}

describe.each([
  ['with keys nothing said, entered or answered is readable', true],
  ['without keys all of it is: the search finds what is there', false],
])('raw history %s', (_what, encryption) => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost({ builtIn: SUITE, encryption });
  });
  afterAll(() => host.stop());

  it('after an agent run with a human answer and a failed run', async () => {
    const refund = await host.startRun({
      workflowId: 'refund',
      inputs: { order: `order-${MARKER}` },
      metadata: { note: `meta-${MARKER}` },
    });
    await host.waitFor(refund, ({ status }) => status === 'waiting-approval');
    const answer = { action: 'edit-accept', decision: { said: `answer-${MARKER}` } };
    const { status } = await host.api(`/v1/runs/${refund}/interrupts/triage`, {
      body: { resumeValue: answer },
    });
    expect(status).toBe(200);
    const failing = await host.startRun({ workflowId: 'failing' });
    for (const runId of [refund, failing])
      await host.waitFor(runId, (snapshot) => ['completed', 'failed'].includes(snapshot.status));
    const raw = Buffer.concat([await rawHistory(host, refund), await rawHistory(host, failing)]);
    const words = [MARKER, 'I look', 'agent.decided', 'Intentional conformance failure', 'refund'];
    expect(words.map((word) => [word, raw.includes(word)])).toEqual(
      words.map((word) => [word, !encryption]),
    );
  });
});
