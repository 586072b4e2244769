// Where the stream of a session goes on whose client was given an event (seed 003 §4.2), also where a failover of the
// database has lost that event since. [I118]
import { codeOf, HostError, type ErrorCode } from '../rules/errors.ts';
import { TERMINAL_STATUSES } from '../rules/status.ts';
import type { FeedPlace } from '../ports/feed.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { Deadline, within } from '../system/time.ts';

/** The last runs of a session, of which those that are open are asked for an event that is not there. */
const RUNS_ASKED = 50;
/** Longest time in ms that they are asked: clients give a request 20 s. */
const ASKING_LIMIT_MS = 10_000;

export interface ResumeParts {
  readonly stores: Pick<Stores, 'feed' | 'sessions' | 'runs' | 'retention'>;
  /** Brings the log of a run up to date. */
  readonly fresh: (run: RunRef) => Promise<{ readonly stale: boolean; readonly code?: ErrorCode }>;
  /** For tests; ASKING_LIMIT_MS when absent. */
  readonly limitMs?: number;
}

/** What a client asks for. `signal` aborts when it is gone. */
export interface Resuming {
  readonly tenant: string;
  readonly sessionId: string;
  readonly eventId: string;
  readonly signal: AbortSignal;
}

/**
 * `first`: from the session's first event on. Undefined: the session has no event with this id. One that only history knows was
 * lost by the database, and what else was lost with it comes back in another order: the client gets all that is there. So it
 * does where a run of the session has expired, of which the event may have been. Throws HostError service_unavailable: a run
 * may have the event, and its history cannot be read now, or not all of them could be asked in time.
 */
export async function resumeSession(
  parts: ResumeParts,
  resuming: Resuming,
): Promise<FeedPlace | 'first' | undefined> {
  const { feed, retention } = parts.stores;
  const { tenant, sessionId, eventId } = resuming;
  const place = await feed.resumeAfter(tenant, sessionId, eventId);
  if (place) return place;
  if (await retention.hasExpired(tenant, sessionId)) return 'first';
  const areAsked = await askOpenRuns(parts, resuming);
  if (await feed.resumeAfter(tenant, sessionId, eventId)) return 'first';
  if (areAsked) return undefined;
  const reason = 'It is not known now whether the session has the event after which it is read.';
  throw new HostError('service_unavailable', { reason });
}

/** False: the history of one could not be read now, or time is over. No other is asked after an outage. */
async function askOpenRuns(
  { stores, fresh, limitMs = ASKING_LIMIT_MS }: ResumeParts,
  { tenant, sessionId, signal }: Resuming,
): Promise<boolean> {
  const deadline = new Deadline(limitMs);
  const { runs } = await stores.sessions.runs(tenant, sessionId, { limit: RUNS_ASKED });
  let areAsked = true;
  for (const { runId, status } of runs) {
    if (TERMINAL_STATUSES.has(status)) continue;
    if (signal.aborted || deadline.isOver()) return false;
    const asked = codeOfAsking(fresh(stores.runs.ref(tenant, runId)));
    const found = await within(deadline.leftMs(), asked, () => 'service_unavailable' as const);
    if (found === 'service_unavailable') return false;
    areAsked &&= found === 'asked' || SETTLED.has(found);
  }
  return areAsked;
}

/** Why a log could not be brought up to date, where to ask again later does not help: of such a run nobody has the event. */
export const SETTLED: ReadonlySet<string> = new Set([
  ...['run_not_found', 'history_missing', 'history_undecodable'],
]);

async function codeOfAsking(asking: ReturnType<ResumeParts['fresh']>): Promise<string> {
  try {
    const { stale, code = 'internal_error' } = await asking;
    return stale ? code : 'asked';
  } catch (error) {
    return codeOf(error) ?? 'internal_error';
  }
}
