// What is read of a run's record (architecture §6) ends at a bound, before all of it is in memory.
import { describe, expect, it } from 'vitest';
import type { LogParts } from '../../src/log/advance.ts';
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
