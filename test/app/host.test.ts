// The composed host in one process: it runs what it is given, survives its surroundings, and ends in order.
import { Client, Connection } from '@temporalio/client';
import { afterEach, describe, expect, it } from 'vitest';
import { temporal } from '@temporalio/proto';
import {
  dataConverter,
  ENCRYPTED_ENCODING,
  parseEncryptionKeys,
} from '../../src/adapters/temporal/codec.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { recordProcess } from '../../src/system/processes.ts';
import { chain, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost, type TestHostOptions } from '../support/host.ts';

const builtIn = {
  definitions: [
    chain('three-steps', [node('s', 'core.start'), node('n', 'core.noop'), node('e', 'core.end')], {
      variables: [{ name: 'word', type: 'string', defaultValue: 'none' }],
    }),
    chain('ask', [
      node('s', 'core.start'),
      node('gate', 'core.approvalGate'),
      node('e', 'core.end'),
    ]),
  ],
};
const MARKER = 'plainly-readable';
const hosts: TestHost[] = [];
const start = async (options: TestHostOptions = {}) => {
  const host = await startTestHost({ builtIn, ...options });
  hosts.push(host);
  return host;
};
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.stop();
});

const accept = (host: TestHost, runId: string) =>
  host.api(`/v1/runs/${runId}/interrupts/gate`, {
    body: { resumeValue: { action: 'accept' } },
    isPatient: false,
  });

describe('architecture §7 one process', () => {
  it('takes a run from HTTP to its end; stack traces of workflow code are off: its thread has no promise hooks', async () => {
    const host = await start();
    const runId = await host.startRun({ workflowId: 'three-steps' });
    const ended = await host.waitFor(runId, ({ status }) => status === 'completed');
    expect(ended.nodeStates).toMatchObject({ n: { status: 'completed' } });
    expect((await host.api('/readyz')).status).toBe(200);
    expect(host.logs).toEqual([]);
    await expect(stackOf(host)).rejects.toThrow('stack traces are not enabled');
  });

  it('architecture §7 encryption: the same run, sealed in history; stack traces, where the operator asks for them', async () => {
    const env = { OPENWOP_WORKFLOW_STACK_TRACES: 'on' };
    const host = await start({ encryption: true, env });
    const runId = await host.startRun({ workflowId: 'three-steps', inputs: { word: MARKER } });
    const { variables } = await host.waitFor(runId, ({ status }) => status === 'completed');
    expect(variables).toMatchObject({ word: MARKER });
    const { text, encodings } = await rawHistory(host, runId);
    // Its id is readable: what follows is a look at the right history.
    expect([text.includes(runId), text.includes(MARKER)]).toEqual([true, false]);
    expect(encodings.length).toBeGreaterThan(1);
    expect(new Set(encodings)).toEqual(new Set([ENCRYPTED_ENCODING]));
    expect(await stackOf(host)).toMatch(/workflows\/.*\.ts:\d+/);
  });
});

/** What Temporal stores of a run, and the encoding of each payload in it but search attributes, which nobody encrypts. */
async function rawHistory(host: TestHost, runId: string) {
  const { address, namespace } = host.temporal;
  const connection = await Connection.connect({ address });
  try {
    const client = new Client({ connection, namespace });
    const history = await client.workflow.getHandle(runId).fetchHistory();
    const encodings: string[] = [];
    // As JSON its bytes are base64.
    JSON.stringify(history, (name, value: unknown) => {
      if (name === 'searchAttributes') return undefined;
      const { encoding } = (value as { metadata?: { encoding?: string } } | null)?.metadata ?? {};
      if (encoding) encodings.push(Buffer.from(encoding, 'base64').toString());
      return value;
    });
    const bytes = temporal.api.history.v1.History.encode(history).finish();
    return { text: Buffer.from(bytes).toString('latin1'), encodings };
  } finally {
    await connection.close();
  }
}

/** Of a run that asks, by Temporal's own query. */
async function stackOf(host: TestHost): Promise<string> {
  const runId = await host.startRun({ workflowId: 'ask' });
  await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
  const { address, namespace } = host.temporal;
  const connection = await Connection.connect({ address });
  const keys = host.env.OPENWOP_ENCRYPTION_KEYS;
  const converter = dataConverter({ ring: ringOf(keys ? parseEncryptionKeys(keys) : []) });
  try {
    const client = new Client({ connection, namespace, dataConverter: converter });
    return await client.workflow.getHandle(runId).query<string>('__stack_trace');
  } finally {
    await connection.close();
    expect(host.logs).toEqual([]);
  }
}

describe('architecture §3.3 Temporal away and back, without restart', () => {
  it('reads are stale, writes are 503, and the open run goes on afterwards', async () => {
    const host = await start({ temporal: 'own' });
    const runId = await host.startRun({ workflowId: 'ask' });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const pid = host.temporal.pid() as number;
    // Stopped, not ended: it would be started again at once.
    process.kill(pid, 'SIGSTOP');
    const events = { headers: { accept: 'application/json' } };
    for (const read of [
      await host.api(`/v1/runs/${runId}`),
      await host.api(`/v1/runs/${runId}/events`, events),
    ])
      expect([read.status, read.headers.get('openwop-log-stale')]).toEqual([200, 'true']);
    const begin = { body: { workflowId: 'ask' }, isPatient: false };
    const refused = await Promise.all([accept(host, runId), host.api('/v1/runs', begin)]);
    for (const { status, headers } of refused)
      expect([status, headers.has('retry-after')]).toEqual([503, true]);
    expect((await host.api('/readyz', { isPatient: false })).status).toBe(503);
    process.kill(pid, 'SIGKILL');
    await until(() => (host.temporal.pid() ?? pid) !== pid, 'another server runs');
    await until(
      async () => [200, 409].includes((await accept(host, runId)).status),
      'the answer is taken',
    );
    await host.waitFor(runId, ({ status }) => status === 'completed');
    const own = host.temporal.pid() as number;
    await host.stop();
    expect(recordProcess(own)).toBeUndefined();
  });
});
