// What a step threw, and what it means: a failure with its code, a cancellation, a worker that never came.
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  TimeoutFailure,
  isCancellation,
} from '@temporalio/workflow';
import { isErrorCode, isOutage } from '../src/rules/errors.ts';

/**
 * No worker took the step in time, or none finished it before its whole time was over. Where a further try would come too
 * late, the server returns the failure of the last one.
 */
export function isUnreached(error: unknown): boolean {
  if (!(error instanceof ActivityFailure)) return false;
  const { cause, retryState } = error;
  if (!(cause instanceof TimeoutFailure)) return retryState === 'TIMEOUT';
  const { timeoutType } = cause;
  return timeoutType === 'SCHEDULE_TO_START' || timeoutType === 'SCHEDULE_TO_CLOSE';
}

/** The last try that failed, of a step whose whole time is over, met an outage (architecture §4.1). */
export function endedInOutage(error: unknown): boolean {
  if (!isUnreached(error)) return false;
  const { cause } = error as ActivityFailure;
  const last = cause instanceof TimeoutFailure ? cause.cause : cause;
  const code = last && failureOf(last)?.code;
  return code !== undefined && isErrorCode(code) && isOutage(code);
}

/**
 * The error that a step throws. A step that a cancel kept from its next try was cancelled: the failure of its last try is no
 * fact of the run.
 */
export function stepError(error: unknown): unknown {
  if (!(error instanceof ActivityFailure) || error.retryState !== 'CANCEL_REQUESTED') return error;
  const { cause } = error;
  return cause instanceof ApplicationFailure && !cause.nonRetryable
    ? new CancelledFailure('cancelled between two tries')
    : error;
}

/** The step was cancelled, but its activity ended well within the grace: its events are admitted, its block is closed. */
export class CancelledAfterResult extends CancelledFailure {
  constructor() {
    super('cancelled when the result was there');
  }
}

/** The step was cancelled while it waited for others to end: no activity of it ever began, and it has no block. */
export class CancelledBeforeStart extends CancelledFailure {
  constructor() {
    super('cancelled before it began');
  }
}

/** Whether a step that threw this may have left a block open. */
export function mayStream(error: unknown): boolean {
  const isClosed = [CancelledAfterResult, CancelledBeforeStart];
  return !isClosed.some((it) => error instanceof it);
}

/** Waits for all, then throws the first error: nothing of it is left running. */
export async function settled(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/**
 * For work that nobody waits for: it may be cancelled. Anything else is a fault of this code, and fails the workflow
 * task by an unhandled rejection, so that it is seen and tried again.
 */
export function passCancellation(error: unknown): void {
  if (!isCancellation(error) && !takeFault(error)) throw error;
}

/** Of a fork that plays a record: true where it takes the fault as a difference. */
let takeFault: (error: unknown) => boolean = () => false;

/** From now on faults of this code are its own to take. */
export function takeFaultsBy(taken: typeof takeFault): void {
  takeFault = taken;
}

/** What comes of a promise, in its own breath. */
export function unlessFault(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!takeFault(error)) throw error;
  }
}

/** Code, message and details of whatever a step threw; undefined for a cancellation. */
export function failureOf(
  error: unknown,
): { code: string; message: string; details?: unknown } | undefined {
  if (isCancellation(error)) return undefined;
  if (error instanceof ActivityFailure) {
    const { cause } = error;
    if (cause?.name === 'TimeoutFailure')
      return { code: 'node_timeout', message: 'An activity of the node timed out.' };
    return cause ? failureOf(cause) : { code: 'internal_error', message: 'An activity failed.' };
  }
  const failure = error as { type?: string | null; message?: string; details?: unknown[] | null };
  if (typeof failure?.type === 'string' && failure.type !== '') {
    return {
      code: failure.type,
      message: failure.message ?? failure.type,
      details: failure.details?.[0],
    };
  }
  return undefined;
}
