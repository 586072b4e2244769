// How an activity fails (architecture §1.1): the code as the failure's type, retryable by the one table, no secret in
// any message. A cancelled activity fails with Temporal's own cancellation.
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { codeOf, ERRORS, type ErrorCode } from '../src/rules/errors.ts';
import { boundText } from '../src/rules/tokens.ts';
import type { ActivityPorts } from './ports.ts';

/** Longest failure message in bytes: it travels in history. */
const MESSAGE_BYTES = 2048;
/** Longest delay in ms that a failure may ask for before the next try. */
const MAX_RETRY_DELAY_MS = 60_000;

export interface FailureOptions {
  readonly message?: string;
  /** Overrides the table. */
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
}

/** A failure with the code as its type. */
export function failure(code: ErrorCode, options: FailureOptions = {}): ApplicationFailure {
  const { retryAfterMs = 0 } = options;
  return ApplicationFailure.create({
    message: boundText(options.message ?? ERRORS[code].message, MESSAGE_BYTES),
    type: code,
    nonRetryable: !(options.retryable ?? ERRORS[code].retryable),
    ...(retryAfterMs > 0 ? { nextRetryDelay: Math.min(retryAfterMs, MAX_RETRY_DELAY_MS) } : {}),
  });
}

/** Runs the body of an activity; what it throws leaves as a failure of a known code. */
export async function guarded<Result>(
  ports: Pick<ActivityPorts, 'logger' | 'redactor'>,
  body: () => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  try {
    return await body();
  } catch (error) {
    if (context.cancellationSignal.aborted) await context.cancelled;
    if (error instanceof ApplicationFailure) throw error;
    throw failureOf(ports, error);
  }
}

function failureOf(
  ports: Pick<ActivityPorts, 'logger' | 'redactor'>,
  error: unknown,
): ApplicationFailure {
  const code = codeOf(error);
  const { activityType, workflowExecution, attempt } = Context.current().info;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  ports.logger.warn('An activity failed.', {
    activity: activityType,
    runId: workflowExecution?.workflowId,
    try: attempt,
    code: code ?? 'internal_error',
    error: ports.redactor.text(text),
  });
  if (!code) return failure('internal_error');
  const { message, details } = error as { message?: string; details?: Record<string, unknown> };
  const { retryAfterMs, retryable } = details ?? {};
  return failure(code, {
    ...(typeof retryable === 'boolean' ? { retryable } : {}),
    ...(message === undefined ? {} : { message: ports.redactor.text(message) }),
    ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}),
  });
}
