// Every error leaves by this one closed envelope (rest-endpoints.md §Error response shape): {error, message, details?},
// the framework's own included.
import { randomBytes } from 'node:crypto';
import type { ErrorRequestHandler, Response } from 'express';
import { codeOf, ERRORS, HostError, type ErrorCode } from '../rules/errors.ts';
import { withoutCredentials } from '../rules/redaction.ts';
import type { JsonObject } from '../rules/json.ts';
import type { Logger } from '../ports/logger.ts';
import { withShownIds } from '../wire/major.ts';
import type { ErrorEnvelope } from '../../schemas/types.generated.ts';
import { majorOf, tenantOf, type ServedMajor } from './majors.ts';

/** Seconds that a client waits before it tries again when nothing better is known. */
const RETRY_AFTER_SECONDS = 2;

/** Codes with a Retry-After (scale-profiles.md §Retry). */
const RETRY_HEADER: ReadonlySet<ErrorCode> = new Set([
  'service_unavailable',
  'rate_limited',
  'idempotency_in_flight',
]);

/** How an error leaves. */
interface Told {
  readonly status: number;
  readonly body: ErrorEnvelope;
  /** Seconds. */
  readonly retryAfter?: number;
  readonly correlationId?: string;
}

/**
 * Envelope of a HostError, or of anything else as internal_error with a correlation id. Ids in details are those of the
 * tenant who asks; before that is known there are none.
 */
export function envelopeOf(error: unknown, major: ServedMajor, tenant?: string): Told {
  const code = codeOf(error) ?? frameworkCode(error) ?? 'internal_error';
  const { status, error: name } = major.errors[code];
  const { message } = ERRORS[code];
  if (code === 'internal_error') {
    const correlationId = randomBytes(8).toString('hex');
    return { status, body: { error: name, message, details: { correlationId } }, correlationId };
  }
  const { retryAfter: known, ...details } = detailsOf(error);
  const retryAfter =
    typeof known === 'number' ? known : RETRY_HEADER.has(code) ? RETRY_AFTER_SECONDS : undefined;
  const safe = JSON.parse(withoutCredentials(JSON.stringify(details))) as JsonObject;
  const named = tenant === undefined ? safe : withShownIds(major, tenant, safe);
  const told = major.detailsOf(named, retryAfter);
  return {
    ...{ status, retryAfter },
    body: { error: name, message, ...(Object.keys(told).length > 0 && { details: told }) },
  };
}

/** The codes of Express and its body parser, told apart by their `type` and `status`. */
function frameworkCode(error: unknown): ErrorCode | undefined {
  if (error instanceof URIError) return 'validation_error';
  const { type, status } = (error ?? {}) as { type?: unknown; status?: unknown };
  if (type === 'entity.too.large') return 'payload_too_large';
  if (type === 'encoding.unsupported' || type === 'charset.unsupported')
    return 'unsupported_media_type';
  return typeof type === 'string' && typeof status === 'number' && status < 500
    ? 'validation_error'
    : undefined;
}

function detailsOf(error: unknown): Record<string, unknown> {
  const { type } = (error ?? {}) as { type?: unknown };
  if (type === 'entity.too.large') return { limit: (error as { limit?: number }).limit };
  if (error instanceof HostError || codeOf(error)) return (error as HostError).details ?? {};
  return typeof type === 'string' ? { reason: 'the request cannot be read' } : {};
}

/** Said where the request had a key that its route takes: without one, a retry is another request. */
const SAME_KEY = ' Retry with the same Idempotency-Key.';

function sendError(response: Response, error: unknown, logger: Logger): void {
  const {
    status,
    body: envelope,
    retryAfter,
    correlationId,
  } = envelopeOf(error, majorOf(response), tenantOf(response));
  const body =
    codeOf(error) === 'service_unavailable' && response.locals.keyed === true
      ? { ...envelope, message: envelope.message + SAME_KEY }
      : envelope;
  if (correlationId !== undefined) {
    logger.error('request failed', {
      correlationId,
      error: error instanceof Error ? (error.stack ?? error.message) : typeof error,
    });
  }
  if (envelope.details?.sqlState !== undefined)
    logger.warn('the database refused a request', { error });
  if (response.headersSent) {
    // The answer has begun; the client must see that it is not whole.
    response.destroy();
    return;
  }
  if (retryAfter !== undefined) response.setHeader('Retry-After', String(retryAfter));
  response.status(status).json(body);
}

export function errorHandler(logger: Logger): ErrorRequestHandler {
  return (error, _request, response, _next) => {
    sendError(response, error, logger);
  };
}
