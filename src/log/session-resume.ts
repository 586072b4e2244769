// Where the stream of a session goes on whose client was given an event (seed 003 §4.2), also where a failover of the
// database has lost that event since. [I118]
import type { FeedPlace } from '../ports/feed.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { nothingOf } from '../rules/unreadable.ts';
import { TERMINAL_STATUSES } from '../rules/status.ts';

/** The last runs of a session, whose histories are asked for an event that is not there. */
const RUNS_ASKED = 50;

type ResumeParts = Pick<Stores, 'feed' | 'sessions' | 'runs'> & {
  /** Brings the log of a run up to date. */
  readonly fresh: (run: RunRef) => Promise<unknown>;
};

/**
 * `first`: from the session's first event on. Undefined: the session has no event with this id. One that only history knows was
 * lost by the database, and what else was lost with it comes back in another order: the client gets all that is there.
 */
export async function resumeSession(
  { feed, sessions, runs, fresh }: ResumeParts,
  { tenant, sessionId }: { readonly tenant: string; readonly sessionId: string },
  eventId: string,
): Promise<FeedPlace | 'first' | undefined> {
  const place = await feed.resumeAfter(tenant, sessionId, eventId);
  if (place) return place;
  const listed = await sessions.runs(tenant, sessionId, { limit: RUNS_ASKED });
  const open = listed.runs.filter(({ status }) => !TERMINAL_STATUSES.has(status));
  for (const { runId } of open) {
    const run = await runs.find(tenant, runId).catch(nothingOf);
    if (run) await fresh(run).catch(() => undefined);
  }
  return (await feed.resumeAfter(tenant, sessionId, eventId)) && 'first';
}
