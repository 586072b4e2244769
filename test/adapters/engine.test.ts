// The engine port against a real server (architecture §4), and against one that is away or hangs.
import { subjectOf } from '../../src/rules/subject.ts';
import { randomUUID } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { Connection } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRunEngine, metBorder } from '../../src/adapters/temporal/engine.ts';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import { codeOf, HostError } from '../../src/rules/errors.ts';
import type { RunMessage } from '../../src/rules/messages.ts';
import { RUN_WORKFLOW, type RunInput } from '../../src/rules/run-input.ts';
import type { RunEngine } from '../../src/ports/engine.ts';
import { createWorkflowRunner } from '../support/run-workflow.ts';
import { startTemporalFixture, type TemporalFixture } from '../support/temporal-fixture.ts';

const resolution = (nodeId: string, value: string): RunMessage => ({
  kind: 'resolve-interrupt',
  nodeId,
  interruptId: 'int-1',
  value,
  schemaDigest: 'sha256:0',
  bodyDigest: `sha256:${value}`,
  resolvedBy: subjectOf('session', 'default', 'tester'),
});
const cancellation: RunMessage = {
  kind: 'cancel',
  cancelledBy: 'tester',
  bodyDigest: 'sha256:cancel',
};
const inputOf = (runId: string) => ({ runId, limits: { maxRunDurationMs: 60_000 } }) as RunInput;

let fixture: TemporalFixture;
let engine: RunEngine;

beforeAll(async () => {
  fixture = await startTemporalFixture(`engine-${randomUUID()}`);
  const { connection, namespace, taskQueue } = fixture;
  engine = createRunEngine({ connection, namespace, taskQueue });
});
afterAll(() => fixture.stop());

async function startFixture(workflowType: string, input: unknown = {}): Promise<string> {
  const runId = randomUUID();
  const { client, taskQueue } = fixture;
  await client.workflow.start(workflowType, { workflowId: runId, taskQueue, args: [input] });
  return runId;
}

describe('architecture §10.1 terminate', () => {
  // [I115]
  test('ends what is open of a run, says nothing of what has ended or is not known, and nothing else', async () => {
    const [runId, beside] = [randomUUID(), randomUUID()];
    for (const id of [runId, beside]) await engine.start(inputOf(id));
    for (let times = 0; times < 2; times++) await engine.terminate(runId, 'enough');
    await engine.terminate(randomUUID(), 'enough');
    const statusOf = async (id: string) =>
      (await fixture.client.workflow.getHandle(id).describe()).status.name;
    expect([await statusOf(runId), await statusOf(beside)]).toEqual(['TERMINATED', 'RUNNING']);
    await engine.terminate(beside, 'test');
    const { connection } = fixture;
    const elsewhere = createRunEngine({ connection, namespace: `not-${randomUUID()}` });
    expect(await elsewhere.terminate(runId, 'enough').catch(codeOf)).toBe('service_unavailable');
  });
});

test('a namespace that Temporal does not know says nothing about a run: this host is set up wrongly', async () => {
  const { connection } = fixture;
  const elsewhere = createRunEngine({ connection, namespace: `not-${randomUUID()}` });
  const runId = randomUUID();
  const codes = await Promise.all([
    elsewhere.start(inputOf(runId)).catch(codeOf),
    elsewhere.send(runId, 'u', cancellation).catch(codeOf),
  ]);
  expect(codes).toEqual(['service_unavailable', 'service_unavailable']);
});

test('a run that is not there, or not any more, need not know of the end of a child', async () => {
  const { connection, namespace } = fixture;
  await engine.childEnded(randomUUID(), { childRunId: 'run-child' });
  // Nothing can be encrypted for it.
  const encode = () => Promise.reject(new HostError('run_not_found'));
  const dataConverter = { payloadCodecs: [{ encode, decode: async (given: Payload[]) => given }] };
  const encrypting = createRunEngine({ connection, namespace, dataConverter });
  await encrypting.childEnded(randomUUID(), { childRunId: 'run-child' });
});

describe('architecture §4 accept: start', () => {
  test("the workflow id is the runId, the type and queue are the deployment's", async () => {
    const runId = randomUUID();
    const { temporalRunId } = await engine.start(inputOf(runId));
    const described = await fixture.client.workflow.getHandle(runId).describe();
    expect(described.runId).toBe(temporalRunId);
    expect(described.type).toBe(RUN_WORKFLOW);
    expect(described.taskQueue).toBe(fixture.taskQueue);
    await fixture.client.workflow.getHandle(runId).terminate('test');
  });

  test('already started is success with the first segment, open, closed and at the same time', async () => {
    const runId = randomUUID();
    const started = await Promise.all([
      engine.start(inputOf(runId)),
      engine.start(inputOf(runId)),
      engine.start(inputOf(runId)),
    ]);
    expect(new Set(started.map(({ temporalRunId }) => temporalRunId)).size).toBe(1);
    await fixture.client.workflow.getHandle(runId).terminate('test');
    expect(await engine.start(inputOf(runId))).toEqual(started[0]);
  });

  test('a start that is larger than Temporal takes is payload_too_large: it is not tried again', async () => {
    const input = { ...inputOf(randomUUID()), tags: ['x'.repeat(5_000_000)] };
    expect(await engine.start(input).catch(codeOf)).toBe('payload_too_large');
  });

  test('already started and continued as new: still the first segment', async () => {
    const run = await fixture.runner.run({
      runId: randomUUID(),
      workflowType: 'everything',
      input: { secret: 's', again: true },
      activities: { scripted: async () => null },
    });
    expect(run.segments).toHaveLength(2);
    const first =
      run.segments[0]?.[0]?.workflowExecutionStartedEventAttributes?.originalExecutionRunId;
    expect(await engine.start(inputOf(run.runId))).toEqual({ temporalRunId: first });
  });
});

describe('architecture §4 resolve: an Update', () => {
  test('returns the outcome, and the same updateId returns it again, also after the end (architecture §4)', async () => {
    const runId = await startFixture('waiting');
    const outcome = await engine.send(runId, 'u1', resolution('n1', 'yes'));
    expect(outcome).toEqual({ bodyDigest: 'sha256:yes', status: 'running' });
    await fixture.client.workflow.getHandle(runId).result();
    expect(await engine.send(runId, 'u1', resolution('n1', 'other'))).toEqual(outcome);
  });

  test('a new message for a closed run is run_state_conflict', async () => {
    const runId = await startFixture('waiting');
    await engine.send(runId, 'u1', resolution('n1', 'yes'));
    await fixture.client.workflow.getHandle(runId).result();
    expect(await engine.send(runId, 'u2', resolution('n1', 'yes')).catch(codeOf)).toBe(
      'run_state_conflict',
    );
  });

  test("the validator's code and details reach the caller; an unknown code is internal_error", async () => {
    const runId = await startFixture('waiting');
    const refused = await engine
      .send(runId, 'u1', resolution('unknown', 'yes'))
      .catch((error: unknown) => error as HostError);
    expect(codeOf(refused)).toBe('interrupt_not_found');
    expect((refused as HostError).details).toEqual({ nodeId: 'unknown' });
    expect(await engine.send(runId, 'u2', resolution('foreign', 'yes')).catch(codeOf)).toBe(
      'internal_error',
    );
    await fixture.client.workflow.getHandle(runId).terminate('test');
  });

  test('a run that ends while a message is under way: run_state_conflict', async () => {
    const runId = await startFixture('waiting');
    const message = engine.send(runId, 'u1', resolution('n1', 'hang')).catch(codeOf);
    await expect
      .poll(async () => {
        const { events } = await fixture.client.workflow.getHandle(runId).fetchHistory();
        return events?.some((event) => event.workflowExecutionUpdateAcceptedEventAttributes);
      })
      .toBe(true);
    await fixture.client.workflow.getHandle(runId).terminate('test');
    expect(await message).toBe('run_state_conflict');
  });

  test('no answer in 5 s is service_unavailable; the same key gets its answer later', async () => {
    const runId = randomUUID();
    const taskQueue = `nobody-${runId}`;
    await fixture.client.workflow.start('waiting', { workflowId: runId, taskQueue, args: [{}] });
    const failed = await engine
      .send(runId, 'u1', resolution('n1', 'yes'))
      .catch((error: unknown) => error as HostError);
    expect(codeOf(failed)).toBe('service_unavailable');
    expect((failed as HostError).message).toMatch(/in time/);
    const late = await createWorkflowRunner({
      server: fixture.server,
      bundle: fixture.bundle,
      taskQueue,
    });
    const outcome = await engine.send(runId, 'u1', resolution('n1', 'yes'));
    expect(outcome).toEqual({ bodyDigest: 'sha256:yes', status: 'running' });
    await late.close();
  });

  test('a run that Temporal does not know yet is service_unavailable', async () => {
    expect(await engine.send(randomUUID(), 'u1', resolution('n1', 'yes')).catch(codeOf)).toBe(
      'service_unavailable',
    );
  });
});

test.each([
  ['workflow is closing', true],
  [
    '9 FAILED_PRECONDITION: Unable to perform workflow execution update due to unexpected workflow task failure.',
    true,
  ],
  ['9 FAILED_PRECONDITION: limit exceeded', false],
])('a message that was not taken in is sent again: %s', (message, isAgain) => {
  expect(metBorder(new Error(message))).toBe(isAgain);
});

describe('architecture §4 cancel: an Update, else the durable request', () => {
  test('the workflow answers', async () => {
    const runId = await startFixture('waiting');
    expect(await engine.send(runId, 'c1', cancellation)).toEqual({
      bodyDigest: 'sha256:cancel',
      status: 'cancelling',
    });
  });

  test('without a worker the request is recorded, once for the same key', async () => {
    const runId = randomUUID();
    await fixture.client.workflow.start('deaf', {
      workflowId: runId,
      taskQueue: `nobody-${runId}`,
      args: [{}],
    });
    const both = await Promise.all([
      engine.send(runId, 'c1', cancellation),
      engine.send(runId, 'c1', cancellation),
    ]);
    expect(both).toEqual(Array(2).fill({ bodyDigest: 'sha256:cancel', status: 'cancelling' }));
    const { events } = await fixture.client.workflow.getHandle(runId).fetchHistory();
    expect(
      events?.filter((event) => event.workflowExecutionCancelRequestedEventAttributes),
    ).toHaveLength(1);
    await fixture.client.workflow.getHandle(runId).terminate('test');
  });

  test('a closed run stays as it is', async () => {
    const runId = await startFixture('waiting');
    await fixture.client.workflow.getHandle(runId).terminate('test');
    expect(await engine.send(runId, 'c1', cancellation)).toEqual({
      bodyDigest: 'sha256:cancel',
      status: 'unchanged',
    });
  });
});

describe('architecture §3.3: Temporal away', () => {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();

  async function listen(keep: boolean): Promise<string> {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    if (keep) servers.push(server);
    else await new Promise((resolve) => server.close(resolve));
    return `127.0.0.1:${port}`;
  }
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
  });

  test.each([
    ['not there', false],
    ['hanging', true],
  ])(
    'a server that is %s: every call is service_unavailable within its deadline',
    async (_, keep) => {
      const connection = Connection.lazy({ ...CONNECTION_DEFAULTS, address: await listen(keep) });
      const away = createRunEngine({ connection, namespace: 'default' });
      const codes = await Promise.all([
        away.ping().catch(codeOf),
        away.start(inputOf('r')).catch(codeOf),
        away.send('r', 'u', resolution('n', 'v')).catch(codeOf),
        away.send('r', 'u', cancellation).catch(codeOf),
        away.terminate('r', 'enough').catch(codeOf),
      ]);
      expect(codes).toEqual(Array(5).fill('service_unavailable'));
      await connection.close();
    },
  );

  test('ping answers when it is there', async () => {
    await engine.ping();
  });
});
