// How an activity fails (architecture §1.1, §4.1): the code as the failure's type, retryable by the one table, no secret in
// any message. A cancelled activity fails with Temporal's own cancellation. Temporal tries again without end: which failure
// is the last is decided here, by the step's own failures alone.
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { codeOf, ERRORS, isErrorCode, isOutage, type ErrorCode } from '../src/rules/errors.ts';
import { isAgentTaskQueue } from '../src/rules/run-input.ts';
import { boundText } from '../src/rules/tokens.ts';
import type { ActivityPorts } from './ports.ts';
import { beginTry, LOST_TRIES, lostTries, noteEnd, OWN_TRIES, ownFailures } from './tries.ts';

/** Longest failure message in bytes: it travels in history. */
const MESSAGE_BYTES = 2048;
/** Further failures that a step may have while it asks for a result in place of its last failure. */
const LOOKS = 20;
/** ms after which another worker may take a step that was handed back. */
const HANDED_BACK_MS = 500;
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

type GuardPorts = Pick<ActivityPorts, 'logger' | 'redactor' | 'watch'>;

export interface Guard<Result> {
  /** Tries that the step itself may fail with; absent: OWN_TRIES. */
  readonly tries?: number;
  /** Asked before the activity fails for good: its result in place of the failure, or undefined where it does fail. */
  readonly instead?: () => Promise<Result | undefined>;
}

/** Runs the body of an activity; what it throws leaves as a failure of a known code. */
export async function guarded<Result>(
  ports: GuardPorts,
  body: () => Promise<Result>,
  { tries = OWN_TRIES, instead }: Guard<Result> = {},
): Promise<Result> {
  await beginTry();
  const ended = await guardedOnce(ports, async () => {
    if (!ports.watch.isThere()) throw handedBack();
    if (tries < Infinity && lostTries() >= LOST_TRIES) throw lostFailure();
    return { result: await body() };
  });
  if ('result' in ended) return ended.result;
  const failed = countFailure(ports, ended.failure, tries);
  if (!failed.nonRetryable || !instead) throw failed;
  const known = await guardedOnce(ports, async () => ({ result: await instead() }));
  if ('failure' in known) throw countFailure(ports, known.failure, tries + LOOKS);
  if (known.result === undefined) throw failed;
  return known.result;
}

type Ended<Result> = { readonly result: Result } | { readonly failure: ApplicationFailure };

/** Throws the cancellation alone. */
async function guardedOnce<Result>(
  ports: GuardPorts,
  body: () => Promise<{ readonly result: Result }>,
): Promise<Ended<Result>> {
  const context = Context.current();
  try {
    return await body();
  } catch (error) {
    if (context.cancellationSignal.aborted) await context.cancelled;
    const isKnown = error instanceof ApplicationFailure;
    const code = codeOf(error);
    note(ports, error, (isKnown ? error.type : code) ?? 'internal_error');
    return { failure: isKnown ? error : failureOf(ports, error, code) };
  }
}

/**
 * The database is known to be away: the step is not begun, and whoever polls next takes it. A queue of an agent may have no
 * other worker: there it waits as after any failure.
 */
function handedBack(): ApplicationFailure {
  const isQueued = isAgentTaskQueue(Context.current().info.taskQueue);
  return failure('service_unavailable', isQueued ? {} : { retryAfterMs: HANDED_BACK_MS });
}

function lostFailure(): ApplicationFailure {
  return failure('internal_error', {
    message: `${LOST_TRIES} tries ended without a word: their workers died, or took too long. No other is begun.`,
    retryable: false,
  });
}

/** The failure as it is thrown: final where the step has failed often enough by itself; else its kind is counted. */
function countFailure(
  { watch }: GuardPorts,
  failed: ApplicationFailure,
  tries: number,
): ApplicationFailure {
  if (failed.nonRetryable) return failed;
  const code = failed.type ?? '';
  if (isErrorCode(code) && (isOutage(code) || isAwaited(code))) {
    noteEnd('outages');
    watch.doubt();
    return failed;
  }
  if (ownFailures() + 1 < tries) {
    noteEnd('failures');
    return failed;
  }
  const { message, type } = failed;
  return ApplicationFailure.create({ message, ...(type ? { type } : {}), nonRetryable: true });
}

/** An agent that is not there is waited for as long as a step on its queue may take. */
function isAwaited(code: ErrorCode): boolean {
  return code === 'agent_unavailable' && isAgentTaskQueue(Context.current().info.taskQueue);
}

/** The one line in the log of a failure: the SDK's own is for debugging (src/adapters/temporal/worker.ts). */
function note(ports: GuardPorts, error: unknown, code: string): void {
  const { activityType, workflowExecution, attempt } = Context.current().info;
  const { stack, message, cause } = (error ?? {}) as Partial<Error>;
  const { message: why } = (cause ?? {}) as Partial<Error>;
  const text = error instanceof Error ? (stack ?? message) : error;
  ports.logger.warn('An activity failed.', {
    activity: activityType,
    runId: workflowExecution?.workflowId,
    try: attempt,
    code,
    error: ports.redactor.text(String(text)),
    ...(why === undefined ? {} : { cause: ports.redactor.text(String(why)) }),
  });
}

function failureOf(
  ports: GuardPorts,
  error: unknown,
  code: ErrorCode | undefined,
): ApplicationFailure {
  if (!code) return failure('internal_error');
  const { message, details } = error as { message?: string; details?: Record<string, unknown> };
  const { retryAfterMs, retryable } = details ?? {};
  return failure(code, {
    ...(typeof retryable === 'boolean' ? { retryable } : {}),
    ...(message === undefined ? {} : { message: ports.redactor.text(message) }),
    ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}),
  });
}
