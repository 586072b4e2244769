// The history port against a real server, and what it does with payloads and with a server that is away.
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { Connection } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createEncryption, dataConverter } from '../../src/adapters/temporal/codec.ts';
import { createHistoryReader } from '../../src/adapters/temporal/history.ts';
import { durable } from '../../src/adapters/temporal/history-payloads.ts';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { CARRIER_MEMO_FIELD } from '../../src/rules/journal.ts';
import type { HostKey } from '../../src/ports/keys.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import type { HistoryEvent } from '../../src/ports/history.ts';
import { historyContract } from '../contract/history.contract.ts';
import { startTemporalFixture, type TemporalFixture } from '../support/temporal-fixture.ts';

historyContract();

const { EventType } = temporal.api.enums.v1;

describe('architecture §3.2: trailing workflow task events are not durable', () => {
  const event = (eventId: number, eventType: number): HistoryEvent => ({
    eventId: eventId as never,
    eventType,
  });
  const SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED;
  const STARTED = EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED;
  const COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED;

  test.each([
    ['none', [], 0],
    ['one at the end', [EventType.EVENT_TYPE_TIMER_FIRED, SCHEDULED], 1],
    ['both at the end', [EventType.EVENT_TYPE_TIMER_FIRED, SCHEDULED, STARTED], 1],
    ['only such', [SCHEDULED, STARTED], 0],
    ['in the middle they stay', [SCHEDULED, STARTED, COMPLETED], 3],
  ])('%s', (_, types, left) => {
    expect(durable(types.map((type, index) => event(index + 1, type)))).toHaveLength(left);
  });
});

test('architecture §3.6 an unknown namespace is no missing history: nothing is noted as lost for it', async () => {
  const fixture = await startTemporalFixture(`nowhere-${randomUUID()}`);
  try {
    const codec = createEncryption({ ring: ringOf([]) });
    const namespace = `nowhere-${randomUUID()}`;
    const reader = createHistoryReader({ connection: fixture.connection, namespace, codec });
    const read = [
      await reader.page(randomUUID(), randomUUID(), '', 0).catch(codeOf),
      await reader.raw(randomUUID(), randomUUID()).catch(codeOf),
    ];
    expect(read).toEqual(['service_unavailable', 'service_unavailable']);
  } finally {
    await fixture.stop();
  }
});

describe('answers above what this host reads', () => {
  const TEXT = 'x'.repeat(400_000);
  const COUNT = 6;
  const QUEUE = `nobody-${randomUUID()}`;
  let fixture: TemporalFixture;
  beforeAll(async () => {
    fixture = await startTemporalFixture(`large-${randomUUID()}`);
  });
  afterAll(() => fixture.stop());

  /** A reader that reads answers up to a size, and a closed run with COUNT texts in events of their own. */
  async function readerOf(maxBytes: number) {
    const connection = await Connection.connect({
      ...CONNECTION_DEFAULTS,
      address: fixture.temporal.address,
      channelArgs: {
        ...CONNECTION_DEFAULTS.channelArgs,
        'grpc.max_receive_message_length': maxBytes,
      },
    });
    const { namespace } = fixture;
    const codec = createEncryption({ ring: ringOf([]) });
    const reader = createHistoryReader({ connection, namespace, taskQueue: QUEUE, codec });
    const stop = async () => {
      await reader.close();
      await connection.close();
    };
    return { reader, stop };
  }

  async function largeRun(): Promise<{ runId: string; temporalRunId: string }> {
    const runId = randomUUID();
    // Without a worker no task is under way, behind which signals would become one batch that no page cuts.
    const handle = await fixture.client.workflow.start('memos', {
      workflowId: runId,
      taskQueue: QUEUE,
      args: [{ rounds: 0, text: '' }],
      memo: { large: TEXT },
    });
    for (let count = 0; count < COUNT; count++) await handle.signal('large', TEXT);
    await handle.terminate('test');
    return { runId, temporalRunId: handle.firstExecutionRunId };
  }

  test('are asked for again in smaller pages, of histories and of closed runs', async () => {
    const before = Date.now() - 1;
    const runs = [await largeRun(), await largeRun(), await largeRun()];
    const { reader, stop } = await readerOf(1_000_000);
    for (const { runId, temporalRunId } of runs) {
      const whole = await reader.decode(await reader.raw(runId, temporalRunId));
      const large = whole.filter((event) => event.workflowExecutionSignaledEventAttributes);
      expect(large).toHaveLength(COUNT);
      const { events } = await reader.page(runId, temporalRunId, '', 0);
      expect(Number(events[0]?.eventId)).toBe(1);
    }
    await expect
      .poll(async () => (await reader.closedSince(before)).runIds)
      .toEqual(expect.arrayContaining(runs.map(({ runId }) => runId)));
    await stop();
  });

  test('a single event above it is payload_too_large, which no repetition mends', async () => {
    const { runId, temporalRunId } = await largeRun();
    const { reader, stop } = await readerOf(100_000);
    const codes = [
      await reader.raw(runId, temporalRunId).catch(codeOf),
      await reader.page(runId, temporalRunId, '', 0).catch(codeOf),
    ];
    expect(codes).toEqual(['payload_too_large', 'payload_too_large']);
    await stop();
  });
});

describe('architecture §7: under encryption', () => {
  const keys = [{ id: 'k1', key: randomBytes(32) }];
  const converter = dataConverter({ ring: ringOf(keys) });
  const SECRET = 'never-readable-7cf1';
  let fixture: TemporalFixture;

  beforeAll(async () => {
    fixture = await startTemporalFixture(`encrypted-${randomUUID()}`, { dataConverter: converter });
  });
  afterAll(() => fixture.stop());

  const reader = (encryptionKeys: readonly HostKey[]) => {
    const { connection, namespace } = fixture;
    return createHistoryReader({
      connection,
      namespace,
      codec: createEncryption({ ring: ringOf(encryptionKeys) }),
    });
  };

  test('nothing is readable in raw history; page decodes memo, result and continue-as-new input', async () => {
    const run = await fixture.runner.run({
      runId: randomUUID(),
      workflowType: 'everything',
      input: { secret: SECRET, again: true },
      activities: {
        scripted: async (input: { secret: string }) => ({ output: input.secret, events: [] }),
      },
    });
    expect(run.status).toBe('completed');
    const first = await fixture.client.workflow.getHandle(run.runId).describe();
    const segment = first.raw.workflowExecutionInfo?.firstRunId ?? '';
    const bytes = await reader(keys).raw(run.runId, segment);
    expect(Buffer.from(bytes).toString('latin1')).not.toContain(SECRET);

    const { events } = await reader(keys).page(run.runId, segment, '', 0);
    const value = (payload: unknown) =>
      JSON.stringify(defaultPayloadConverter.fromPayload(payload as never));
    const memo = events.find(
      (event) => event.workflowPropertiesModifiedEventAttributes,
    )?.workflowPropertiesModifiedEventAttributes;
    expect(value(memo?.upsertedMemo?.fields?.[CARRIER_MEMO_FIELD])).toContain(SECRET);
    const result = events.find(
      (event) => event.activityTaskCompletedEventAttributes,
    )?.activityTaskCompletedEventAttributes;
    expect(value(result?.result?.payloads?.[0])).toContain(SECRET);
    const next = events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
    expect(value(next?.input?.payloads?.at(-1))).toContain(SECRET);
    const last = await reader(keys).page(run.runId, next?.newExecutionRunId ?? '', '', 0);
    expect(
      value(last.events.at(-1)?.workflowExecutionCompletedEventAttributes?.result?.payloads?.[0]),
    ).toContain(SECRET);
    expect((await reader(keys).decode(bytes)).length).toBeGreaterThan(0);
    await run.replay();
  });

  test('failure messages, stack traces and details are inside the encrypted part', async () => {
    const run = await fixture.runner.run({
      runId: randomUUID(),
      workflowType: 'failing',
      input: { secret: SECRET },
      activities: {
        scripted: async () => {
          throw new Error(SECRET);
        },
      },
    });
    expect(run.status).toBe('failed');
    expect(String((run.error as Error).cause)).toContain(SECRET);
    const { raw } = await fixture.client.workflow.getHandle(run.runId).describe();
    const bytes = await reader(keys).raw(run.runId, raw.workflowExecutionInfo?.firstRunId ?? '');
    expect(Buffer.from(bytes).toString('latin1')).not.toContain(SECRET);
  });

  test('without the key, with another one, or with none it is not read, from page or archive', async () => {
    const run = await fixture.runner.run({
      runId: randomUUID(),
      workflowType: 'everything',
      input: { secret: SECRET, again: false },
      activities: { scripted: async () => ({ output: null, events: [] }) },
    });
    const { raw } = await fixture.client.workflow.getHandle(run.runId).describe();
    const segment = raw.workflowExecutionInfo?.firstRunId ?? '';
    const bytes = await reader(keys).raw(run.runId, segment);
    for (const [code, wrong] of [
      ['key_unavailable', []],
      ['key_unavailable', [{ id: 'k9', key: randomBytes(32) }]],
      ['history_undecodable', [{ id: 'k1', key: randomBytes(32) }]],
    ] as const) {
      expect(await reader(wrong).page(run.runId, segment, '', 0).catch(codeOf)).toBe(code);
      expect(await reader(wrong).decode(bytes).catch(codeOf)).toBe(code);
    }
  });
});

describe('architecture §3.3: Temporal away', () => {
  let hanging: Server;
  const sockets = new Set<Socket>();
  let port = 0;

  beforeAll(async () => {
    hanging = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    port = (hanging.address() as { port: number }).port;
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    hanging.close();
  });

  test('a server that hangs and one that is not there are service_unavailable', async () => {
    const dead = createServer();
    await new Promise<void>((resolve) => dead.listen(0, '127.0.0.1', resolve));
    const deadPort = (dead.address() as { port: number }).port;
    await new Promise((resolve) => dead.close(resolve));
    for (const address of [`127.0.0.1:${port}`, `127.0.0.1:${deadPort}`]) {
      const connection = Connection.lazy({ ...CONNECTION_DEFAULTS, address });
      const reader = createHistoryReader({
        connection,
        namespace: 'default',
        codec: createEncryption({ ring: ringOf([]) }),
      });
      expect(await reader.page('run', 'segment', 'dG9rZW4=', 0).catch(codeOf)).toBe(
        'service_unavailable',
      );
      await reader.close();
      await connection.close();
    }
  });
});
