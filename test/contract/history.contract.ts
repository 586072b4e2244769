// The facts about a Temporal server's history that the log stands on (architecture §3.2), asked of the server itself:
// the suite runs once per server version. Then the port's own promises on top of them.
import { randomUUID } from 'node:crypto';
import type { Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createEncryption } from '../../src/adapters/temporal/codec.ts';
import {
  createHistoryReader,
  type ClosableHistoryReader,
} from '../../src/adapters/temporal/history.ts';
import { FULL_SERVER, type ServerTraits } from '../../src/adapters/temporal/server-traits.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import type { HistoryEvent } from '../../src/ports/history.ts';
import { startTemporalFixture, type TemporalFixture } from '../support/temporal-fixture.ts';
import type { TestTemporal } from '../support/temporal.ts';

const TAIL_MS = 900;
/** Enough text in memo events to need several pages of 256 events. */
const MANY_ROUNDS = 70;

function ids(events: readonly HistoryEvent[]): number[] {
  return events.map(({ eventId }) => Number(eventId));
}

/** What the server itself answers, without the port. */
function ask(
  fixture: TemporalFixture,
  runId: string,
  request: { waitNewEvent: boolean; token?: Uint8Array; deadlineMs: number },
) {
  const { connection, namespace } = fixture;
  return connection.withDeadline(Date.now() + request.deadlineMs, () =>
    connection.workflowService.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId: runId },
      waitNewEvent: request.waitNewEvent,
      nextPageToken: request.token ?? new Uint8Array(),
    }),
  );
}

async function startMemos(
  fixture: TemporalFixture,
  rounds: number,
): Promise<{ runId: string; temporalRunId: string; step(): Promise<void> }> {
  const runId = randomUUID();
  const handle = await fixture.client.workflow.start('memos', {
    workflowId: runId,
    taskQueue: fixture.taskQueue,
    args: [{ rounds, text: 'x' }],
  });
  const temporalRunId = handle.firstExecutionRunId;
  return { runId, temporalRunId, step: () => handle.signal('step') };
}

/** Just below the size that Temporal takes for one payload: four of them are more than gRPC's usual 4 MiB. */
const LARGE_TEXT = 'x'.repeat(1_500_000);
const LARGE_COUNT = 4;

/** Reads until the segment has `least` events: the worker needs a moment. */
async function readUntil(
  reader: ClosableHistoryReader,
  run: { runId: string; temporalRunId: string },
  least: number,
) {
  const events: HistoryEvent[] = [];
  let token = '';
  do {
    const page = await reader.page(run.runId, run.temporalRunId, token, 5_000);
    events.push(...page.events);
    token = page.token;
  } while (token !== '' && events.length < least);
  return { events, token };
}

/** Absent: the dev server of the test run. What a server lacks is asked for no further than the port promises. */
export interface ContractServer {
  readonly start: () => Promise<TestTemporal>;
  readonly traits: ServerTraits;
}

export function historyContract(server?: ContractServer): void {
  const traits = server?.traits ?? FULL_SERVER;
  let fixture: TemporalFixture;
  let reader: ClosableHistoryReader;

  beforeAll(async () => {
    fixture = await startTemporalFixture(`history-${randomUUID()}`, {
      temporal: await server?.start(),
    });
    reader = readerOn(fixture.connection);
  });
  afterAll(async () => {
    await reader.close();
    await fixture.stop();
  });

  const readerOn = (connection: Connection) => {
    const { namespace, taskQueue } = fixture;
    return createHistoryReader({
      connection,
      namespace,
      taskQueue,
      codec: createEncryption({ ring: ringOf([]) }),
      traits,
    });
  };

  const serverFacts = () =>
    describe('architecture §3.2: the server', () => {
      test('without token and without waitNewEvent: all events and no token to go on with', async () => {
        const run = await startMemos(fixture, 1);
        await readUntil(reader, run, 2);
        const answer = await ask(fixture, run.runId, { waitNewEvent: false, deadlineMs: 5_000 });
        expect(answer.history?.events?.length).toBeGreaterThan(0);
        expect(answer.nextPageToken?.length ?? 0).toBe(0);
      });

      test('without token and with waitNewEvent: all events at once plus a token, also with a short deadline', async () => {
        const run = await startMemos(fixture, 1);
        const answer = await ask(fixture, run.runId, { waitNewEvent: true, deadlineMs: 5_000 });
        expect(Number(answer.history?.events?.[0]?.eventId)).toBe(1);
        expect(answer.nextPageToken?.length).toBeGreaterThan(0);
      });

      test('a tail token with a deadline below one second is answered, empty, with a token that goes on', async () => {
        const run = await startMemos(fixture, 1);
        const { token } = await readUntil(reader, run, 2);
        // The worker may still add its first events: read on until nothing comes.
        let tail = new Uint8Array(Buffer.from(token, 'base64'));
        let empty = false;
        for (let tries = 0; tries < 20 && !empty; tries++) {
          const answer = await ask(fixture, run.runId, {
            waitNewEvent: true,
            token: tail,
            deadlineMs: TAIL_MS,
          });
          empty = (answer.history?.events ?? []).length === 0;
          tail = new Uint8Array(answer.nextPageToken ?? []);
          expect(tail.length).toBeGreaterThan(0);
        }
        expect(empty).toBe(true);
        await run.step();
        const answer = await ask(fixture, run.runId, {
          waitNewEvent: true,
          token: tail,
          deadlineMs: 10_000,
        });
        expect(answer.history?.events?.length).toBeGreaterThan(0);
      });

      test('the same token gives the same events again', async () => {
        const run = await startMemos(fixture, 1);
        const { token } = await readUntil(reader, run, 2);
        await run.step();
        await run.step();
        await fixture.client.workflow.getHandle(run.runId).result();
        const twice = [
          await reader.page(run.runId, run.temporalRunId, token, 0),
          await reader.page(run.runId, run.temporalRunId, token, 0),
        ];
        expect(twice[0]?.events.length).toBeGreaterThan(0);
        expect(ids(twice[1]?.events ?? [])).toEqual(ids(twice[0]?.events ?? []));
      });

      test('ids begin at 1 and have no gap, over pages too, and a page never cuts a batch', async () => {
        const run = await startMemos(fixture, MANY_ROUNDS);
        for (let round = 0; round <= MANY_ROUNDS; round++) {
          await run.step();
          if (round % 10 === 0) await readUntil(reader, run, 0);
        }
        await fixture.client.workflow.getHandle(run.runId).result();
        const { connection, namespace } = fixture;
        const events: HistoryEvent[] = [];
        for (let token = new Uint8Array(), first = true; first || token.length > 0; first = false) {
          const page = await connection.workflowService.getWorkflowExecutionHistory({
            namespace,
            execution: { workflowId: run.runId },
            waitNewEvent: true,
            maximumPageSize: 3,
            nextPageToken: token,
          });
          const last = page.history?.events?.at(-1);
          events.push(...(page.history?.events ?? []));
          token = new Uint8Array(page.nextPageToken ?? []);
          // A completed workflow task's commands follow it in the same batch, so it never ends a page but the last.
          if (token.length > 0) expect(last?.workflowTaskCompletedEventAttributes).toBeFalsy();
        }
        expect(ids(events)).toEqual(events.map((_, index) => index + 1));
        expect(events.length).toBeGreaterThan(MANY_ROUNDS);
      });
    });

  if (traits.historyTail) serverFacts();

  describe('HistoryReader', () => {
    test('tokens are base64 text and survive a new reader on a new connection', async () => {
      const run = await startMemos(fixture, 1);
      const { token } = await readUntil(reader, run, 2);
      expect(Buffer.from(token, 'base64').toString('base64')).toBe(token);
      await run.step();
      const connection = await fixture.temporal.connect();
      const other = readerOn(connection);
      const page = await other.page(run.runId, run.temporalRunId, token, 10_000);
      expect(page.events.length).toBeGreaterThan(0);
      expect(page.token).not.toBe('');
      await other.close();
      await connection.close();
    });

    test('a closed segment ends with its closing event and an empty token; reading behind its end gives nothing', async () => {
      const run = await startMemos(fixture, 0);
      const { token } = await readUntil(reader, run, 2);
      await run.step();
      await fixture.client.workflow.getHandle(run.runId).result();
      const page = await reader.page(run.runId, run.temporalRunId, token, 0);
      expect(page.token).toBe('');
      expect(page.events.at(-1)?.workflowExecutionCompletedEventAttributes).toBeTruthy();
      const whole = await reader.page(run.runId, run.temporalRunId, '', 0);
      expect(whole.token).toBe('');
    });

    test('one read tells everything that was there when it was asked, and that there was nothing', async () => {
      const rounds = 20;
      const run = await startMemos(fixture, rounds);
      const read = (token: string) => reader.page(run.runId, run.temporalRunId, token, 0);
      const isDone = ({ events }: { events: readonly HistoryEvent[] }) =>
        events.some((event) => event.workflowTaskCompletedEventAttributes);
      let page = await read('');
      for (let round = 0; round < rounds; round++) {
        // What comes during a workflow task enters history behind it: first the worker is done.
        for (let done = isDone(page); !done || !page.atTail; done ||= isDone(page))
          page = await read(page.token);
        await run.step();
        // Temporal has it, so the very next read has it, too.
        page = await read(page.token);
        expect(page.events.some((event) => event.workflowExecutionSignaledEventAttributes)).toBe(
          true,
        );
      }
    });

    test('waitMs > 0 returns what is new, waitMs 0 does not wait', async () => {
      const run = await startMemos(fixture, 2);
      let { token } = await readUntil(reader, run, 2);
      for (
        let page = await reader.page(run.runId, run.temporalRunId, token, 0);
        page.events.length > 0;
      ) {
        token = page.token;
        page = await reader.page(run.runId, run.temporalRunId, token, 0);
      }
      const waiting = reader.page(run.runId, run.temporalRunId, token, 15_000);
      await run.step();
      expect((await waiting).events.length).toBeGreaterThan(0);
    });

    test('raw bytes of a closed segment decode to the events of page; an open segment is refused', async () => {
      const run = await startMemos(fixture, 0);
      await expect(reader.raw(run.runId, run.temporalRunId)).rejects.toThrow(/closed segments/);
      await run.step();
      await fixture.client.workflow.getHandle(run.runId).result();
      const { events } = await readUntil(reader, run, Infinity);
      const archived = await reader.decode(await reader.raw(run.runId, run.temporalRunId));
      const delivered = new Set(ids(events));
      expect(archived.filter(({ eventId }) => delivered.has(Number(eventId)))).toEqual(events);
      expect(ids(archived)).toEqual(archived.map((_, index) => index + 1));
    });

    test('answers above the 4 MiB that gRPC reads by default are read: page, tail and archive', async () => {
      const run = await startMemos(fixture, 0);
      const handle = fixture.client.workflow.getHandle(run.runId);
      const { token } = await readUntil(reader, run, 2);
      for (let count = 0; count < LARGE_COUNT; count++) await handle.signal('large', LARGE_TEXT);
      await run.step();
      await handle.result();
      for (const from of ['', token]) {
        const { events } = await reader.page(run.runId, run.temporalRunId, from, 0);
        expect(events.at(-1)?.workflowExecutionCompletedEventAttributes).toBeTruthy();
        const large = events.filter((event) => event.workflowExecutionSignaledEventAttributes);
        expect(large.length).toBeGreaterThanOrEqual(LARGE_COUNT);
      }
      const raw = await reader.raw(run.runId, run.temporalRunId);
      expect(raw.byteLength).toBeGreaterThan(LARGE_COUNT * LARGE_TEXT.length);
    });

    test('an unknown run is history_missing; damaged archives are history_undecodable', async () => {
      const unknown = await reader.page(randomUUID(), randomUUID(), '', 0).catch(codeOf);
      expect(unknown).toBe('history_missing');
      expect(await reader.raw(randomUUID(), randomUUID()).catch(codeOf)).toBe('history_missing');
      expect(await reader.decode(new Uint8Array([0x0a, 0xff, 0xff])).catch(codeOf)).toBe(
        'history_undecodable',
      );
    });

    test('a token that the server refuses leads back to the start of the segment', async () => {
      const [one, two] = [await startMemos(fixture, 1), await startMemos(fixture, 1)];
      const { token } = await readUntil(reader, one, 2);
      const page = await reader.page(two.runId, two.temporalRunId, token, 0);
      expect(ids(page.events)[0]).toBe(1);
    });

    if (!traits.visibility) {
      test('closedSince finds nothing where the server lists nothing, and moves no watermark', async () => {
        const run = await startMemos(fixture, 0);
        await fixture.client.workflow.getHandle(run.runId).terminate('test');
        expect(await reader.closedSince(5)).toEqual({ runIds: [], newestMs: 5 });
      });
    } else {
      test('closedSince reads closed runs with large memos', async () => {
        const before = Date.now() - 1;
        const runIds = Array.from({ length: LARGE_COUNT }, () => randomUUID());
        for (const workflowId of runIds) {
          const { client, taskQueue } = fixture;
          const memo = { large: LARGE_TEXT };
          await client.workflow.start('deaf', { workflowId, taskQueue, args: [{}], memo });
          await client.workflow.getHandle(workflowId).terminate('test');
        }
        await expect
          .poll(async () => (await reader.closedSince(before)).runIds)
          .toEqual(expect.arrayContaining(runIds));
      });

      test('closedSince gives all of many in windows, one behind the other', async () => {
        const before = Date.now() - 1;
        const { connection, namespace } = fixture;
        const taskQueue = `many-${randomUUID()}`;
        const runIds = Array.from({ length: 7 }, () => randomUUID());
        for (const workflowId of runIds) {
          await fixture.client.workflow.start('deaf', { workflowId, taskQueue, args: [{}] });
          await fixture.client.workflow.getHandle(workflowId).terminate('test');
        }
        const codec = createEncryption({ ring: ringOf([]) });
        const narrow = createHistoryReader({
          connection,
          namespace,
          taskQueue,
          codec,
          windowRuns: 2,
        });
        const found = async () => {
          const all = new Set<string>();
          for (let since: number | undefined = before; since !== undefined;) {
            const window = await narrow.closedSince(since);
            for (const runId of window.runIds) all.add(runId);
            expect(window.newestMs).toBeGreaterThanOrEqual(since);
            since = window.moreAfterMs;
          }
          return [...all].sort();
        };
        await expect.poll(found).toEqual([...runIds].sort());
        expect((await narrow.closedSince(before)).moreAfterMs).toBeDefined();
        await narrow.close();
      });

      test('closedSince finds terminated, cancelled and completed runs of the task queue, and none before', async () => {
        const before = Date.now() - 1;
        const runs = [
          await startMemos(fixture, 0),
          await startMemos(fixture, 0),
          await startMemos(fixture, 0),
        ];
        const open = await startMemos(fixture, 0);
        const [terminated, cancelled, completed] = runs.map(({ runId }) =>
          fixture.client.workflow.getHandle(runId),
        );
        await terminated?.terminate('test');
        await cancelled?.cancel();
        await completed?.signal('step');
        await expect
          .poll(async () => (await reader.closedSince(before)).runIds)
          .toEqual(expect.arrayContaining(runs.map(({ runId }) => runId)));
        const found = await reader.closedSince(before);
        expect(found.runIds).not.toContain(open.runId);
        expect(found.newestMs).toBeGreaterThan(before);
        const later = await reader.closedSince(found.newestMs + 60_000);
        expect(later).toEqual({ runIds: [], newestMs: found.newestMs + 60_000 });
        await fixture.client.workflow.getHandle(open.runId).terminate('test');
      });
    }

    test('close ends parked polls, and the connection can be closed after it (architecture §3.2)', async () => {
      const run = await startMemos(fixture, 0);
      const connection = await fixture.temporal.connect();
      const other = readerOn(connection);
      const { token } = await readUntil(reader, run, 2);
      const parked = Array.from({ length: 5 }, () =>
        other.page(run.runId, run.temporalRunId, token, 15_000).catch(codeOf),
      );
      await other.page(run.runId, run.temporalRunId, token, 0);
      await other.close();
      await connection.close();
      expect(await Promise.all(parked)).toEqual(Array(5).fill('service_unavailable'));
    });
  });
}
