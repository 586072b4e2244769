// What earlier tries of an activity came to (architecture §4.1). Temporal counts tries, whatever ended them; here those count
// that the step failed with by itself. That the host's own database, content store or Temporal was away counts for
// nothing: the step waits, within the time of its node and its run. The counts travel in the heartbeat's details, which
// outlive a failed try and a dead worker.
import { Context } from '@temporalio/activity';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { nowMs } from '../src/system/time.ts';

/** Tries of a step, those not counted that an outage ended. */
export const OWN_TRIES = 6;
/** Tries that ended with their worker; a step that ends each worker which takes it must not do so for ever. */
export const LOST_TRIES = 50;

/** ms before Temporal ends a try, behind which it begins nothing: one look at the store takes so long at most. */
const MARGIN_MS = 15_000;
const began = new WeakMap<Context, number>();

/** How tries ended, each told before its end; of those that are not told here the worker was lost. */
type Tally = { readonly failures: number; readonly outages: number };

const NONE: Tally = { failures: 0, outages: 0 };
/** Newest details that an activity told of itself. */
const told = new WeakMap<Context, JsonValue>();

/** First thing of a try: its time runs from here. */
export function beginTry(): void {
  began.set(Context.current(), nowMs());
}

/** ms within which this try may still begin something; 0 when there are none. */
export function msLeft(): number {
  const { startToCloseTimeoutMs } = Context.current().info;
  const sinceMs = began.get(Context.current()) ?? nowMs();
  return Math.max(0, startToCloseTimeoutMs - MARGIN_MS - (nowMs() - sinceMs));
}

function before(): JsonObject {
  const { heartbeatDetails } = Context.current().info as { heartbeatDetails?: JsonValue };
  return heartbeatDetails !== undefined && isJsonObject(heartbeatDetails) ? heartbeatDetails : {};
}

function tally(): Tally {
  return { ...NONE, ...(before().tries as Tally | undefined) };
}

/** What an earlier try, or this one, told of itself last. */
export function toldLast(): JsonValue | undefined {
  return told.get(Context.current()) ?? before().told;
}

/** Takes what the activity of `context` tells of itself; the next heartbeat brings it to Temporal. */
export function note(context: Context, details: JsonValue): void {
  told.set(context, details);
}

/** A sign of life: with it goes what must outlive this try. */
export function beat(tries: Tally = tally()): void {
  const last = toldLast();
  Context.current().heartbeat({ tries, ...(last === undefined ? {} : { told: last }) });
}

/** Earlier tries that the step itself failed with. */
export function ownFailures(): number {
  return tally().failures;
}

/** Earlier tries whose end nobody told. */
export function lostTries(): number {
  const { failures, outages } = tally();
  return Context.current().info.attempt - 1 - failures - outages;
}

/** To be told right before this try ends so: a later one counts with it. */
export function noteEnd(how: keyof Tally): void {
  const counted = tally();
  beat({ ...counted, [how]: counted[how] + 1 });
}
