// Whether Temporal refused a call, or may answer it otherwise another time (src/adapters/temporal/rpc.ts).
import { describe, expect, it } from 'vitest';
import { GRPC, toHostError } from '../../src/adapters/temporal/rpc.ts';

const error = (code: number, details = 'said', failures: readonly string[] = []): Error =>
  Object.assign(new Error(details), {
    ...{ code, details },
    metadata: { get: () => failures.map((name) => Buffer.from(name)) },
  });
const [UNKNOWN, ABORTED, INTERNAL, DATA_LOSS] = [2, 10, 13, 15];

describe('a call that failed', () => {
  it.each([
    ...[GRPC.UNAVAILABLE, GRPC.DEADLINE_EXCEEDED, GRPC.CANCELLED, GRPC.RESOURCE_EXHAUSTED],
    ...[UNKNOWN, ABORTED, INTERNAL, DATA_LOSS, GRPC.PERMISSION_DENIED, GRPC.UNAUTHENTICATED],
  ])(
    '[I98] with %i may be answered otherwise: service_unavailable, and nothing fails for it',
    (code) => {
      expect(toHostError(error(code))).toMatchObject({ code: 'service_unavailable' });
    },
  );

  it('[I98] because the run was not ready may be answered otherwise, also where the client wraps it', () => {
    const name = 'type.googleapis.com/temporal.api.errordetails.v1.WorkflowNotReadyFailure';
    const refused = error(GRPC.FAILED_PRECONDITION, 'unexpected workflow task failure', [name]);
    const wrapped = new Error('Workflow Update failed', { cause: refused });
    for (const one of [refused, wrapped])
      expect(toHostError(one)).toMatchObject({ code: 'service_unavailable' });
  });

  it('says where this host is not let in', () => {
    const { reason } = (toHostError(error(GRPC.UNAUTHENTICATED)) as { details: object })
      .details as {
      reason: string;
    };
    expect(reason).toBe('Temporal does not let this host in.');
  });

  it.each([
    ...[GRPC.INVALID_ARGUMENT, GRPC.NOT_FOUND, GRPC.ALREADY_EXISTS, GRPC.FAILED_PRECONDITION],
    ...[GRPC.OUT_OF_RANGE, GRPC.UNIMPLEMENTED],
  ])('with %i was refused', (code) => {
    expect(toHostError(error(code))).toMatchObject({
      ...{ code: 'internal_error', details: { grpcCode: code } },
    });
  });

  it('for its size is payload_too_large, though the code is that of a rate', () => {
    const large = error(GRPC.RESOURCE_EXHAUSTED, 'Received message larger than max');
    expect(toHostError(large)).toMatchObject({ code: 'payload_too_large' });
  });
});
