// Heartbeats of long activities (architecture §4): they bound recovery after a crash and bring cancellation here.
import { Context } from '@temporalio/activity';
import type { JsonValue } from '../src/rules/json.ts';
import { beat, noteDetails } from './tries.ts';

/** ms between heartbeats; well under HEARTBEAT_TIMEOUT_MS. */
const HEARTBEAT_INTERVAL_MS = 1_000;

/** Runs `body` under heartbeats. Each carries the newest details that it gave, and later tries see the last. */
export async function beating<Result>(
  body: (tell: (details: JsonValue) => void) => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  beat();
  const timer = setInterval(beat, HEARTBEAT_INTERVAL_MS);
  try {
    // Also what comes late, from outside the activity.
    return await body((details) => noteDetails(context, details));
  } finally {
    clearInterval(timer);
  }
}
