// Every error leaves by this one closed envelope (rest-endpoints.md §Error response shape): {error, message, details?},
// the framework's own included.
import { randomBytes } from 'node:crypto';
import type { ErrorRequestHandler, Response } from 'express';
import { codeOf, ERRORS, HostError, type ErrorCode } from '../rules/errors.ts';
import { withoutCredentials } from '../rules/redaction.ts';
import type { Logger } from '../ports/logger.ts';
import type { ErrorEnvelope } from '../../schemas/types.generated.ts';

/** Seconds that a client waits before it tries again when nothing better is known. */
const RETRY_AFTER_SECONDS = 2;

/** Retry-After, and the same number in details (scale-profiles.md §Retry). */
const RETRY_HEADER: ReadonlySet<ErrorCode> = new Set([
  'service_unavailable',
  'rate_limited',
  'idempotency_in_flight',
]);

/** Envelope of a HostError, or of anything else as internal_error with a correlation id. */
export function envelopeOf(error: unknown): {
  status: number;
  body: ErrorEnvelope;
  correlationId?: string;
} {
  const code = frameworkCode(error) ?? codeOf(error) ?? 'internal_error';
  const row = ERRORS[code];
  if (code === 'internal_error') {
    const correlationId = randomBytes(8).toString('hex');
    return {
      status: row.status,
      body: { error: code, message: row.message, details: { correlationId } },
      correlationId,
    };
  }
  const details = { ...detailsOf(error) };
  if (RETRY_HEADER.has(code)) details.retryAfter ??= RETRY_AFTER_SECONDS;
  const safe = JSON.parse(withoutCredentials(JSON.stringify(details))) as Record<string, unknown>;
  const body: ErrorEnvelope = { error: code, message: row.message };
  if (Object.keys(safe).length > 0) body.details = safe;
  return { status: row.status, body };
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
  if (type === 'entity.parse.failed') return { reason: 'the body is not JSON' };
  if (type === 'entity.too.large') return { limit: (error as { limit?: number }).limit };
  if (error instanceof HostError || codeOf(error)) return (error as HostError).details ?? {};
  return typeof type === 'string' ? { reason: 'the request cannot be read' } : {};
}

/** Said where the request had a key that its route takes: without one, a retry is another request. */
const SAME_KEY = ' Retry with the same Idempotency-Key.';

function sendError(response: Response, error: unknown, logger: Logger): void {
  const { status, body: envelope, correlationId } = envelopeOf(error);
  const body =
    envelope.error === 'service_unavailable' && response.locals.keyed === true
      ? { ...envelope, message: envelope.message + SAME_KEY }
      : envelope;
  if (correlationId !== undefined) {
    logger.error('request failed', {
      correlationId,
      error: error instanceof Error ? (error.stack ?? error.message) : typeof error,
    });
  }
  if (response.headersSent) {
    // The answer has begun; the client must see that it is not whole.
    response.destroy();
    return;
  }
  const retryAfter = body.details?.retryAfter;
  if (typeof retryAfter === 'number') response.setHeader('Retry-After', String(retryAfter));
  response.status(status).json(body);
}

export function errorHandler(logger: Logger): ErrorRequestHandler {
  return (error, _request, response, _next) => {
    sendError(response, error, logger);
  };
}
