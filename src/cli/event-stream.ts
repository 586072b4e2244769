// Server-sent events of a run as they arrive (rest-endpoints.md §SSE): what came together is given together.
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import { within } from '../system/time.ts';
import { CliFault } from './faults.ts';

/** The host beats every 15 s: silent for longer than this (ms), it is gone. */
const SILENCE_LIMIT_MS = 60_000;
/** One frame, in characters: far above what an event may hold. */
const MAX_FRAME = 16 * 1024 * 1024;

const gone = (cause?: unknown): CliFault =>
  new CliFault('The stream of events broke off.', {
    ...{ code: 'host_unreachable', isLost: true, cause },
  });

/** Ends when the host ends the stream. Throws CliFault where it breaks, falls silent, or is none. */
export async function* eventBatches(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<readonly RunEventDoc[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await within(
        SILENCE_LIMIT_MS,
        reader.read().catch((error: unknown) => {
          throw gone(error);
        }),
        () => {
          throw gone();
        },
      );
      if (done) return;
      const frames = (text + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      text = frames.pop() ?? '';
      if (text.length > MAX_FRAME) throw noStream();
      const events = frames.flatMap(eventsOf);
      if (events.length > 0) yield events;
    }
  } finally {
    // Who stops reading is not interested in how that ends.
    await reader.cancel().catch(() => undefined);
  }
}

/** A comment (the host's heartbeat) has no data. */
function eventsOf(frame: string): readonly RunEventDoc[] {
  const data = frame
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).replace(/^ /, ''))
    .join('\n');
  if (data === '') return [];
  try {
    const event = JSON.parse(data) as Partial<RunEventDoc> | null;
    if (typeof event?.sequence === 'number' && typeof event.type === 'string')
      return [event as RunEventDoc];
  } catch (error) {
    throw noStream(error);
  }
  throw noStream();
}

function noStream(cause?: unknown): CliFault {
  return new CliFault('What the host streams are no events of a run.', {
    ...{ code: 'not_a_host', cause },
  });
}
