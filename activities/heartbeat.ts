// Heartbeats of long activities (design §4): they bound recovery after a crash and bring cancellation here.
import { Context } from '@temporalio/activity';

/** ms between heartbeats; well under HEARTBEAT_TIMEOUT_MS. */
const HEARTBEAT_INTERVAL_MS = 1_000;

/** Runs `body` under heartbeats. */
export async function beating<Result>(body: () => Promise<Result>): Promise<Result> {
  const context = Context.current();
  context.heartbeat();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_INTERVAL_MS);
  try {
    return await body();
  } finally {
    clearInterval(timer);
  }
}
