// How an activity ends, as history says it and as core tells workflow code.
import { defaultPayloadConverter } from '@temporalio/common';
import proto, { type coresdk, type temporal } from '@temporalio/proto';
import type { HistoryEvent } from '../../../src/ports/history.ts';

export type ActivityEnd =
  | { readonly kind: 'completed'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | { readonly kind: 'timed-out' }
  /** It acknowledged a cancellation. */
  | { readonly kind: 'cancelled' };

type Failure = temporal.api.failure.v1.IFailure;

function causeOf(end: Exclude<ActivityEnd, { kind: 'completed' }>): Failure {
  switch (end.kind) {
    case 'failed':
      return {
        message: end.message,
        applicationFailureInfo: { type: end.code, nonRetryable: true },
      };
    case 'timed-out':
      return {
        message: 'activity timed out',
        timeoutFailureInfo: {
          timeoutType: proto.temporal.api.enums.v1.TimeoutType.TIMEOUT_TYPE_HEARTBEAT,
        },
      };
    case 'cancelled':
      return { message: 'cancelled', canceledFailureInfo: {} };
  }
}

/** What workflow code is told of an activity that gave nothing. */
export function activityFailure(
  end: Exclude<ActivityEnd, { kind: 'completed' }> | 'cancelled',
): Failure {
  return {
    message: 'activity task failed',
    activityFailureInfo: { activityId: 'step', activityType: { name: 'activity' } },
    cause: causeOf(end === 'cancelled' ? { kind: 'cancelled' } : end),
  };
}

export function activityOutcome(
  end: ActivityEnd,
  scheduledEventId: never,
): { event: HistoryEvent; result: coresdk.activity_result.IActivityResolution } {
  if (end.kind === 'completed') {
    const payload = defaultPayloadConverter.toPayload(end.result);
    return {
      event: {
        activityTaskCompletedEventAttributes: { scheduledEventId, result: { payloads: [payload] } },
      },
      result: { completed: { result: payload } },
    };
  }
  const failure = activityFailure(end);
  switch (end.kind) {
    case 'failed':
      return {
        event: { activityTaskFailedEventAttributes: { scheduledEventId, failure: causeOf(end) } },
        result: { failed: { failure } },
      };
    case 'timed-out':
      return {
        event: { activityTaskTimedOutEventAttributes: { scheduledEventId, failure: causeOf(end) } },
        result: { failed: { failure } },
      };
    case 'cancelled':
      return {
        event: { activityTaskCanceledEventAttributes: { scheduledEventId } },
        result: { cancelled: { failure } },
      };
  }
}
