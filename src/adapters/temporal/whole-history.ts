// Pages for a server that cannot wait at a history's tail: each read takes the whole history and gives what is behind
// the token, which names segment and last event; waiting is reading again. Such a server holds all in memory, so its
// histories are short.
import proto from '@temporalio/proto';
import type { HistoryEvent } from '../../ports/history.ts';
import { Deadline, rest } from '../../system/time.ts';
import { durable } from './history-payloads.ts';

const { EventType } = proto.temporal.api.enums.v1;

/** Between two reads of one that waits, in ms. */
const READ_AGAIN_MS = 100;

const CLOSING_EVENTS: ReadonlySet<number> = new Set([
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
]);

/** True when nothing can follow these events in their segment. */
export function endsSegment(events: readonly HistoryEvent[]): boolean {
  return CLOSING_EVENTS.has(events.at(-1)?.eventType ?? 0);
}

function tokenAt(temporalRunId: string, eventId: number): Uint8Array {
  return Buffer.from(JSON.stringify({ temporalRunId, eventId }));
}

/** The last event that was given; 0, thus from the start, for a token of another segment or server. */
function eventIdIn(token: Uint8Array, temporalRunId: string): number {
  try {
    const read = JSON.parse(Buffer.from(token).toString('utf8')) as Record<string, unknown>;
    return read.temporalRunId === temporalRunId ? Number(read.eventId) || 0 : 0;
  } catch {
    return 0;
  }
}

export interface WholeRead {
  readonly temporalRunId: string;
  readonly token: Uint8Array;
  readonly waitMs: number;
  /** Ends the wait; the read after it fails as `whole` fails then. */
  readonly signal: AbortSignal;
  readonly whole: () => Promise<readonly HistoryEvent[]>;
}

/** As a page of a server that has tails: an empty token when the segment is closed and everything was given. */
export async function pageOfWhole(
  read: WholeRead,
): Promise<{ events: readonly HistoryEvent[]; token: Uint8Array }> {
  const { temporalRunId, signal } = read;
  const behind = eventIdIn(read.token, temporalRunId);
  const wait = new Deadline(read.waitMs);
  for (;;) {
    const all = durable(await read.whole());
    const events = all.filter(({ eventId }) => Number(eventId) > behind);
    if (endsSegment(all)) return { events, token: new Uint8Array() };
    if (events.length > 0 || wait.isOver()) {
      const last = Number(events.at(-1)?.eventId ?? behind);
      return { events, token: tokenAt(temporalRunId, last) };
    }
    await rest(READ_AGAIN_MS, signal);
  }
}
