// Heartbeats of long activities (architecture §4): they bound recovery after a crash and bring cancellation here.
import { Context } from '@temporalio/activity';
import type { JsonValue } from '../src/rules/json.ts';

/** ms between heartbeats; well under HEARTBEAT_TIMEOUT_MS. */
const HEARTBEAT_INTERVAL_MS = 1_000;

/** Runs `body` under heartbeats. The newest details that it tells go along with each. */
export async function beating<Result>(
  body: (tell: (details: JsonValue) => void) => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  let details: JsonValue | undefined;
  context.heartbeat();
  const timer = setInterval(() => context.heartbeat(details), HEARTBEAT_INTERVAL_MS);
  try {
    return await body((newest) => {
      details = newest;
    });
  } finally {
    clearInterval(timer);
  }
}
