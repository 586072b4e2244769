// The one error table: codes, statuses, safe messages (rest-endpoints.md §Error response shape).
import { describe, expect, test } from 'vitest';
import { codeOf, ERRORS, HostError, isErrorCode, type ErrorCode } from '../../src/rules/errors.ts';
import { FIRST_MAJOR } from '../../src/wire/first-major.ts';
import { validate } from '../../src/wire/validators.ts';

const ROWS = Object.entries(FIRST_MAJOR.errors).map(
  ([code, { status, error }]) =>
    [code, { status, error, message: ERRORS[code as ErrorCode].message }] as const,
);

describe('rest-endpoints.md §Error response shape', () => {
  test.each(ROWS)(
    '%s makes a valid envelope with a status of the protocol',
    (code, { status, error, message }) => {
      // The next major's name; this one has none of its own (rest-endpoints.md §Runs that have expired).
      expect(error).toBe(code === 'run_expired' ? 'not_found' : code);
      expect(code).toMatch(/^[a-z]+(_[a-z0-9]+)*$/);
      expect([
        400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 431, 500, 501, 503,
      ]).toContain(status);
      expect(validate.errorEnvelope({ error: code, message })).toMatchObject({ ok: true });
      expect(message).not.toMatch(/\n|undefined|\bat \//);
    },
  );

  test('a limit of what is said is told in words for a gate and for a conversation', () => {
    const { message } = ERRORS.conversation_limit_exceeded;
    expect(message).toMatch(/answer the question.*close the conversation/i);
  });

  test('the statuses that the protocol fixes', () => {
    const fixed: Partial<Record<keyof typeof ERRORS, number>> = {
      ...{
        unauthenticated: 401,
        forbidden: 403,
        validation_error: 400,
        not_found: 404,
        run_not_found: 404,
      },
      ...{ workflow_not_found: 404, interrupt_not_found: 404, idempotency_in_flight: 409 },
      ...{
        idempotency_key_mismatch: 409,
        interrupt_already_resolved: 409,
        interrupt_expired: 410,
        interrupt_gone: 410,
      },
      ...{
        interrupt_cancelled: 422,
        unsupported_stream_mode: 400,
        rate_limited: 429,
        service_unavailable: 503,
      },
      ...{
        internal_error: 500,
        capability_not_provided: 501,
        payload_too_large: 413,
        unsupported_media_type: 415,
      },
    };
    for (const [code, status] of Object.entries(fixed)) {
      expect({ code, status: FIRST_MAJOR.errors[code as ErrorCode].status }).toEqual({
        code,
        status,
      });
    }
  });

  test.each([
    'rate_limited',
    'service_unavailable',
    'idempotency_in_flight',
    'internal_error',
  ] as const)('%s may be retried', (code) => {
    expect(ERRORS[code].retryable).toBe(true);
  });

  test.each([
    'validation_error',
    'envelope_refusal',
    'handoff_task_schema_violation',
    'payload_too_large',
    'idempotency_key_mismatch',
  ] as const)('%s is never retried', (code) => {
    expect(ERRORS[code].retryable).toBe(false);
  });
});

describe('HostError', () => {
  test('has the message of the table, or the reason of its details', () => {
    expect(new HostError('run_not_found').message).toBe(ERRORS.run_not_found.message);
    expect(new HostError('validation_error', { reason: 'because' }).message).toBe('because');
    expect(new HostError('validation_error', { reason: 5 }).message).toBe(
      ERRORS.validation_error.message,
    );
  });

  test('keeps its cause', () => {
    const cause = new Error('deep');
    expect(new HostError('internal_error', undefined, cause).cause).toBe(cause);
  });

  test('is recognised by its code, not by its class', () => {
    expect(codeOf(new HostError('run_not_found'))).toBe('run_not_found');
    expect(codeOf({ code: 'run_not_found' })).toBe('run_not_found');
    for (const other of [
      { code: 'ECONNREFUSED' },
      { code: 'toString' },
      { code: 5 },
      null,
      undefined,
      'run_not_found',
    ]) {
      expect(codeOf(other)).toBeUndefined();
    }
    expect(isErrorCode('constructor')).toBe(false);
  });
});
