// What a step of a record came to, as workflow code is told (architecture §6).
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { RecordedOutcome } from '../src/rules/recording.ts';
import { stepError } from './failures.ts';

/** Throws as Temporal does. */
export function resultOf(
  outcome: RecordedOutcome,
  { activityId, name }: { readonly activityId: string; readonly name: string },
): Extract<RecordedOutcome, { kind: 'completed' }>['result'] {
  if (outcome.kind === 'completed') return outcome.result;
  const retryState = (outcome.kind === 'failed' && outcome.untried) || 'NON_RETRYABLE_FAILURE';
  const cause = causeOf(outcome);
  throw stepError(
    new ActivityFailure('activity task failed', name, activityId, retryState, undefined, cause),
  );
}

function causeOf(outcome: Exclude<RecordedOutcome, { kind: 'completed' }>): Error {
  switch (outcome.kind) {
    case 'cancelled':
      return new CancelledFailure('cancelled');
    case 'timed-out': {
      const { type, code } = outcome;
      const failure = new TimeoutFailure('activity timed out', undefined, type as 'HEARTBEAT');
      const cause = code === undefined ? undefined : ApplicationFailure.create({ type: code });
      return cause ? Object.assign(failure, { cause }) : failure;
    }
    case 'failed': {
      const { code, message, details, untried } = outcome;
      return ApplicationFailure.create({
        ...{ type: code, message, nonRetryable: untried === undefined },
        ...(details === undefined ? {} : { details: [details] }),
      });
    }
  }
}
