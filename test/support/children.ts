// Children of a run as its log names them.
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import { readLog } from '../facade/suite-parts.ts';
import type { TestHost } from './host.ts';

const TRIES = 400;
const PROBE_MS = 25;

/** Payloads of all events of a type. */
export function payloadsIn(
  events: readonly RunEventDoc[],
  type: string,
): Record<string, unknown>[] {
  return events
    .filter((event) => event.type === type)
    .map(({ payload }) => payload as Record<string, unknown>);
}

/** Their ids, once there are so many. */
export async function childrenOf(host: TestHost, runId: string, count = 1): Promise<string[]> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { events } = await readLog(host, runId);
    const found = payloadsIn(events, 'node.dispatched').map((one) => String(one.childRunId));
    if (found.length >= count) return found;
    await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
  }
  throw new Error('no children');
}
