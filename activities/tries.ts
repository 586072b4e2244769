// How earlier tries of an activity ended (architecture §4.1). Temporal counts all tries. Here only failures of the step itself
// count: while the host's own database, content store or Temporal is away the step waits, within the time of its node
// and its run. The counts travel in the heartbeat's details, which survive a failed try and a dead worker.
import { Context } from '@temporalio/activity';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { nowMs, rest } from '../src/system/time.ts';

/** Failures of its own that end a step. */
export const OWN_TRIES = 6;
/** Tries without a word of their end, that end a step: one that kills each worker that takes it must not do so for ever. */
export const LOST_TRIES = 50;

/** A try begins nothing in its last ms: one look at the store takes so long at most. */
const MARGIN_MS = 15_000;
const began = new WeakMap<Context, number>();

/**
 * Tries that began, and how they ended, each noted before its end. A try that began and noted no end lost its worker, or ran out
 * of time. One that did not begin counts for nothing: its input could not be decoded here.
 */
type Tally = { readonly begun: number; readonly failures: number; readonly outages: number };

const NONE: Tally = { begun: 0, failures: 0, outages: 0 };
/** Newest details of each activity that is at work. */
const details = new WeakMap<Context, JsonValue>();

/** First thing of a try: its time runs from here. */
export async function beginTry(): Promise<void> {
  began.set(Context.current(), nowMs());
  // Few steps need a second try: the first one is not worth a call.
  if (Context.current().info.attempt === 1) return;
  beat();
  // It is on its way before the step may end its worker.
  await rest(0);
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

/** Of earlier tries. */
function tally(): Tally {
  return { ...NONE, ...(before().tries as Tally | undefined) };
}

/** With this one. */
function tallyNow(): Tally {
  const counted = tally();
  return { ...counted, begun: counted.begun + 1 };
}

/** The last details that this try gave, or else an earlier one. */
export function lastDetails(): JsonValue | undefined {
  return details.get(Context.current()) ?? before().told;
}

/** Takes details of the activity of `context`; the next heartbeat carries them. */
export function noteDetails(context: Context, newest: JsonValue): void {
  details.set(context, newest);
}

/** A sign of life, with what must survive this try. */
export function beat(tries: Tally = tallyNow()): void {
  const last = lastDetails();
  Context.current().heartbeat({ tries, ...(last === undefined ? {} : { told: last }) });
}

/** Earlier tries that the step itself failed with. */
export function ownFailures(): number {
  return tally().failures;
}

/** Earlier tries that ended without a word. */
export function lostTries(): number {
  const { begun, failures, outages } = tally();
  return begun - failures - outages;
}

/** To be called right before this try ends so. */
export function noteEnd(how: Exclude<keyof Tally, 'begun'>): void {
  const counted = tallyNow();
  beat({ ...counted, [how]: counted[how] + 1 });
}
