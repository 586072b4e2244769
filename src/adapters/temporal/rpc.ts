// One call to Temporal's frontend within a deadline that holds (architecture §4, architecture §3.2): the connection
// itself does not retry, because its retries outlive deadlines and kill the process after close(). Retrying happens
// here.
import {
  isGrpcServiceError,
  isRetryableError,
  type Connection,
  type ConnectionOptions,
} from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';
import { HostError } from '../../rules/errors.ts';
import { BackOff, Deadline, rest, within } from '../../system/time.ts';

/** gRPC status codes that this room tells apart. */
export const GRPC = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** How long gRPC waits at most before it dials a lost server again, in ms (its own default is two minutes). */
const RECONNECT_BACKOFF_MS = 1_000;
/**
 * Longest answer that is read: two of the longest histories that a server permits by default. What is sent is bounded
 * by the server, which says so.
 */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

/**
 * Every Connection of this host is made with these options: no retry interceptor (see above), reconnection fast enough
 * that a server that comes back is used again at once, and answers above the 4 MiB that gRPC reads by default (the
 * client's own setting for that is not a name that gRPC knows).
 */
export const CONNECTION_DEFAULTS = {
  interceptors: [],
  channelArgs: {
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': RECONNECT_BACKOFF_MS,
    'grpc.keepalive_permit_without_calls': 1,
    'grpc.keepalive_time_ms': 15_000,
    'grpc.keepalive_timeout_ms': 5_000,
    'grpc.max_receive_message_length': MAX_ANSWER_BYTES,
  },
} as const satisfies ConnectionOptions;

const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 500;
/** gRPC's own deadline ends a call; what gRPC does not see ends so many ms later. */
const GUARD_MS = 250;

export interface Limits {
  /** Everything together: tries and pauses, in ms. */
  readonly deadlineMs: number;
  /** Tries at most; 1 = no retry. Only errors that gRPC calls transient are tried again. */
  readonly tries: number;
  readonly signal?: AbortSignal;
}

/** What gRPC made of it, in an error or in its causes. */
function serviceErrorIn(error: unknown) {
  for (
    let at: unknown = error, depth = 0;
    at instanceof Error && depth < 5;
    at = at.cause, depth++
  ) {
    if (isGrpcServiceError(at)) return at;
  }
  return undefined;
}

/** The gRPC status in an error or in its causes, else undefined. */
export function grpcStatus(error: unknown): { code: number; details: string } | undefined {
  const found = serviceErrorIn(error);
  return found && { code: found.code, details: found.details };
}

/** The server's answer holds a failure of this name. */
function hasFailure(error: unknown, name: string): boolean {
  const details = serviceErrorIn(error)?.metadata.get('grpc-status-details-bin') ?? [];
  return details.some((one) => String(one).includes(name));
}

/** What gRPC on either side says of a message above its limit; the same code also means that a rate is exceeded. */
const TOO_LARGE = /message.* larger than/i;

/** True when request or answer is above a size limit: asked again as it is, it will be so again. */
function isTooLarge(error: unknown): boolean {
  const status = grpcStatus(error);
  return status?.code === GRPC.RESOURCE_EXHAUSTED && TOO_LARGE.test(status.details);
}

/** Each smaller page is this part of the one that was too large. */
const PAGE_DIVISOR = 4;

/** Asks for a page of `largest`, and for smaller ones while the answer is larger than this host reads. */
export async function withPageSize<T>(
  largest: number,
  call: (pageSize: number) => Promise<T>,
): Promise<T> {
  for (let pageSize = largest; ; pageSize = Math.max(1, Math.floor(pageSize / PAGE_DIVISOR))) {
    try {
      return await call(pageSize);
    } catch (error) {
      if (!isTooLarge(error) || pageSize <= 1) throw error;
    }
  }
}

/**
 * The client adds listeners to a call's signal and never removes them. So each try has a signal of its own, and not one
 * of AbortSignal.any: Node keeps such a signal, and all that the call holds, for as long as it has listeners.
 */
async function withOwnSignal<T>(
  outer: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const onAbort = () => own.abort();
  // The client only listens for what comes: it would make the call to its end.
  if (outer.aborted) throw new HostError('service_unavailable', { reason: 'Reading has ended.' });
  outer.addEventListener('abort', onAbort, { once: true });
  try {
    return await call(own.signal);
  } finally {
    outer.removeEventListener('abort', onAbort);
  }
}

/** Runs `call` in the scope of a deadline; tries transient failures again while the deadline holds. */
export async function rpc<T>(
  connection: Connection,
  limits: Limits,
  call: () => Promise<T>,
): Promise<T> {
  const deadline = new Deadline(limits.deadlineMs);
  // As gRPC takes a deadline: by the wall clock.
  const endsAtMs = Date.now() + limits.deadlineMs;
  const abort = new AbortController();
  const onAbort = () => abort.abort();
  limits.signal?.addEventListener('abort', onAbort, { once: true });
  if (limits.signal?.aborted) abort.abort();
  const late = (): never => {
    abort.abort();
    throw new HostError('service_unavailable', { reason: 'Temporal did not answer in time.' });
  };
  const scoped = () =>
    withOwnSignal(abort.signal, (signal) =>
      connection.withDeadline(endsAtMs, () => connection.withAbortSignal(signal, call)),
    );
  try {
    const work = retrying(scoped, { deadline, tries: limits.tries, signal: abort.signal });
    return await within(limits.deadlineMs + GUARD_MS, work, late);
  } finally {
    limits.signal?.removeEventListener('abort', onAbort);
  }
}

async function retrying<T>(
  call: () => Promise<T>,
  { deadline, tries, signal }: { deadline: Deadline; tries: number; signal: AbortSignal },
): Promise<T> {
  const backOff = new BackOff(FIRST_BACKOFF_MS, MAX_BACKOFF_MS);
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const status = grpcStatus(error);
      const again =
        status !== undefined &&
        !isTooLarge(error) &&
        isRetryableError(status as Parameters<typeof isRetryableError>[0]);
      const pauseMs = backOff.next();
      if (!again || attempt >= tries || signal.aborted || pauseMs >= deadline.leftMs()) throw error;
      await rest(pauseMs, signal);
    }
  }
}

/** True when the frontend could not be reached or did not answer in time. */
export function isAway(error: unknown): boolean {
  const code = grpcStatus(error)?.code;
  return (
    code === GRPC.UNAVAILABLE ||
    code === GRPC.DEADLINE_EXCEEDED ||
    code === GRPC.CANCELLED ||
    (code === GRPC.RESOURCE_EXHAUSTED && !isTooLarge(error))
  );
}

/** What the server's answer holds when it is the namespace that it does not know. */
const NAMESPACE_UNKNOWN = 'NamespaceNotFoundFailure';

/** NOT_FOUND of the namespace says nothing about the run that was asked for: this host is set up wrongly. */
export function isNamespaceUnknown(error: unknown): boolean {
  // What the client makes of it, without its cause.
  if (error instanceof NamespaceNotFoundError) return true;
  return grpcStatus(error)?.code === GRPC.NOT_FOUND && hasFailure(error, NAMESPACE_UNKNOWN);
}

/** What the server's answer holds when the run cannot take the call now: its workflow task failed, or took too long. */
const NOT_READY = 'WorkflowNotReadyFailure';

/** What a server says no to: asked again as it is, it says so again. */
const REFUSALS: ReadonlySet<number> = new Set([
  ...[GRPC.INVALID_ARGUMENT, GRPC.NOT_FOUND, GRPC.ALREADY_EXISTS, GRPC.FAILED_PRECONDITION],
  ...[GRPC.OUT_OF_RANGE, GRPC.UNIMPLEMENTED],
]);

/**
 * What the inside is told of a failed call: HostErrors pass, a refusal is internal_error, and a message above a limit
 * payload_too_large. Whatever may be answered otherwise another time is service_unavailable: so are a server that fails, and
 * one that does not let this host in.
 */
export function toHostError(error: unknown): unknown {
  if (error instanceof HostError) return error;
  if (isNamespaceUnknown(error)) {
    const reason = 'Temporal does not know the namespace of this host.';
    return new HostError('service_unavailable', { reason }, error);
  }
  const status = grpcStatus(error);
  if (status === undefined) return error;
  if (isTooLarge(error)) {
    const reason = 'A message to or from Temporal is larger than its limit.';
    return new HostError('payload_too_large', { reason }, error);
  }
  const { code: grpcCode } = status;
  if (grpcCode === GRPC.FAILED_PRECONDITION && hasFailure(error, NOT_READY)) {
    const reason = 'The run cannot take this now.';
    return new HostError('service_unavailable', { reason }, error);
  }
  if (REFUSALS.has(grpcCode)) return new HostError('internal_error', { grpcCode }, error);
  if (isAway(error)) return new HostError('service_unavailable', undefined, error);
  const isLocked = grpcCode === GRPC.PERMISSION_DENIED || grpcCode === GRPC.UNAUTHENTICATED;
  const reason = isLocked ? 'Temporal does not let this host in.' : 'Temporal failed.';
  return new HostError('service_unavailable', { reason, grpcCode }, error);
}
