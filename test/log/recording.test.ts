// What is read of a run's record (architecture §6) ends at a bound, before all of it is in memory.
import { describe, expect, it } from 'vitest';
import type { LogParts } from '../../src/log/pages.ts';
import { readRecording } from '../../src/log/recording.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { HistoryEvent } from '../../src/ports/history.ts';
import { silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const RUN = runRef('run-a');
const ROWS = 1_000;
const ROW_BYTES = 1_000;

/** A log of rows of 1,000 bytes, and a history of pages of 1,000 bytes without an end. Counts what is read. */
function partsOf(rows: number) {
  const read = { rows: 0, pages: 0 };
  const row = (sequence: number): LogRow => ({
    ...{ runId: RUN.runId, sequence, eventId: `e${sequence}`, key: `k${sequence}` },
    ...{ type: 'x.note', timestampMs: 1, payload: 'x'.repeat(ROW_BYTES) },
  });
  const event = (eventId: number): HistoryEvent => ({
    ...{ eventId: eventId as never, eventType: 9 },
    workflowExecutionSignaledEventAttributes: {
      input: { payloads: [{ data: new Uint8Array(ROW_BYTES) }] },
    },
  });
  const parts = {
    stores: {
      log: {
        read: async (_run: unknown, { after, limit }: { after: number; limit: number }) => {
          const count = Math.min(limit, rows - after - 1);
          read.rows += count;
          return Array.from({ length: count }, (_, at) => row(after + 1 + at));
        },
      },
      segments: { ofRun: async () => [{ runId: RUN.runId, index: 0, temporalRunId: 't' }] },
    },
    history: {
      page: async () => {
        read.pages++;
        return { events: [event(read.pages)], token: 'more', atTail: false };
      },
    },
    logger: silentLogger,
  } as unknown as LogParts;
  return { parts, read };
}

const tooMuch = { code: 'payload_too_large' };

describe('a record that is too large', () => {
  it('of its log: no more than a page is read behind the bound', async () => {
    const { parts, read } = partsOf(ROWS);
    const asked = { length: ROWS, maxBytes: 50_000 };
    await expect(readRecording(parts, RUN, asked)).rejects.toMatchObject({
      ...tooMuch,
      details: { limit: 50_000 },
    });
    expect(read.rows).toBeLessThan(ROWS);
    expect(read.pages).toBe(0);
  });

  it('of its history, which may have four times as much', async () => {
    const { parts, read } = partsOf(1);
    await expect(readRecording(parts, RUN, { length: 1, maxBytes: 50_000 })).rejects.toMatchObject(
      tooMuch,
    );
    expect(read.pages).toBe(201);
  });
});

describe('a record whose log has fewer rows than it had', () => {
  const partsWith = (found: object): LogParts =>
    ({
      stores: {
        log: { read: async () => [], head: async () => (found as { head?: object }).head },
        runs: { find: async () => (found as { row?: object }).row },
        segments: { ofRun: async () => [] },
      },
      logger: silentLogger,
    }) as unknown as LogParts;

  it.each([
    ['while it is built anew: to be tried again', { row: { input: {} } }, 'service_unavailable'],
    ['of a run that is gone', {}, 'run_not_found'],
    ['that is there, and shorter', { row: { input: {} }, head: {} }, 'run_not_found'],
  ])('%s', async (_what, found, code) => {
    const reading = readRecording(partsWith(found), RUN, { length: 1 });
    await expect(reading).rejects.toMatchObject({ code });
  });
});

describe('a record whose pages end within the start of a workflow task', () => {
  const step = (from: number, activityId: string): HistoryEvent[] =>
    [
      { workflowTaskScheduledEventAttributes: {} },
      { workflowTaskStartedEventAttributes: {} },
      { workflowTaskCompletedEventAttributes: {} },
      { activityTaskScheduledEventAttributes: { activityId } },
      {
        activityTaskCompletedEventAttributes: {
          scheduledEventId: (from + 3) as never,
          result: { payloads: [resultOf()] },
        },
      },
    ].map((event, at) => ({ ...event, eventId: (from + at) as never }));
  const events = [...step(1, 'a'), ...step(6, 'b'), ...step(11, 'c')];
  const entries: LogRow[] = [
    {
      ...{ runId: RUN.runId, sequence: 0, eventId: 'e0', key: 'k0', type: 'x.note' },
      ...{ timestampMs: 1, payload: '{}' },
    },
  ];

  /** A page holds so many events; of its last ones the starts of tasks are withheld. */
  function pagedBy(size: number): LogParts {
    return {
      stores: {
        log: {
          read: async (_run: unknown, { after }: { after: number }) => entries.slice(after + 1),
        },
        runs: { find: async () => ({ input: {} }) },
        segments: { ofRun: async () => [{ runId: RUN.runId, index: 0, temporalRunId: 't' }] },
      },
      history: {
        page: async (_runId: string, _temporalRunId: string, token: string) => {
          const from = Number(token);
          const page = events.slice(from, from + size);
          let known = page.length;
          while (known > 0 && isStart(page[known - 1])) known--;
          const next = from + size < events.length ? String(from + size) : '';
          return {
            ...{ events: page.slice(0, known), withheld: page.slice(known) },
            ...{ token: next, atTail: next === '' },
          };
        },
      },
      logger: silentLogger,
    } as unknown as LogParts;
  }

  it('architecture §6: each task has what came before it, wherever a page ends', async () => {
    const whole = await readRecording(pagedBy(events.length), RUN, { length: 1 });
    expect(whole.batches.map(({ stimuli }) => stimuli.length)).toEqual([0, 1, 1]);
    for (let size = 1; size < events.length; size++)
      expect(await readRecording(pagedBy(size), RUN, { length: 1 })).toEqual(whole);
  });
});

const utf8 = (text: string) => Buffer.from(text, 'utf8');

function resultOf() {
  const metadata = { encoding: utf8('json/plain') };
  return { metadata, data: utf8('{"output":null,"events":[]}') };
}

function isStart(event: HistoryEvent | undefined): boolean {
  return Boolean(
    event?.workflowTaskScheduledEventAttributes ?? event?.workflowTaskStartedEventAttributes,
  );
}
