// What a step of a record came to, as workflow code is told (architecture §6).
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { RecordedOutcome } from '../src/rules/recording.ts';

/** Throws as Temporal does. */
export function resultOf(
  outcome: RecordedOutcome,
  { activityId, name }: { readonly activityId: string; readonly name: string },
): Extract<RecordedOutcome, { kind: 'completed' }>['result'] {
  if (outcome.kind === 'completed') return outcome.result;
  throw new ActivityFailure(
    'activity task failed',
    name,
    activityId,
    'NON_RETRYABLE_FAILURE',
    undefined,
    causeOf(outcome),
  );
}

function causeOf(outcome: Exclude<RecordedOutcome, { kind: 'completed' }>): Error {
  switch (outcome.kind) {
    case 'cancelled':
      return new CancelledFailure('cancelled');
    case 'timed-out':
      return new TimeoutFailure('activity timed out', undefined, outcome.type as 'HEARTBEAT');
    case 'failed': {
      const { code, message, details } = outcome;
      return ApplicationFailure.create({
        ...{ type: code, message, nonRetryable: true },
        ...(details === undefined ? {} : { details: [details] }),
      });
    }
  }
}
