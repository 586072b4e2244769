// How declared input is read: each kind of parameter strictly, and what is wrong is told in one order.
import type { Request } from 'express';
import { describe, expect, it } from 'vitest';
import type { HostError } from '../../src/rules/errors.ts';
import { invalid } from '../../src/rules/errors.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { RESUME_AFTER, STREAM_MODE } from '../../src/facade/event-query.ts';
import { IDEMPOTENCY_KEY } from '../../src/facade/idempotency.ts';
import { FIRST } from '../../src/facade/majors.ts';
import { readInput } from '../../src/facade/input.ts';
import {
  integer,
  oneOf,
  required,
  readParameter,
  text,
  type Parameter,
} from '../../src/facade/parameters.ts';
import type { Declaration } from '../../src/facade/route.ts';
import { POLL_RUN_EVENTS } from '../../src/facade/routes/poll.ts';
import { runRow } from '../support/log-parts.ts';

interface Wire {
  readonly query?: Readonly<Record<string, string | string[]>>;
  readonly headers?: Readonly<Record<string, string>>;
}

function read(name: string, parameter: Parameter<unknown>, wire: Wire): unknown {
  const request = { query: wire.query ?? {}, headers: wire.headers ?? {} } as Request;
  try {
    return readParameter(request, parameter.name ?? name, parameter);
  } catch (error) {
    const { code, details } = error as HostError;
    return { code, ...details };
  }
}

const ONCE = 'must be given once';
const refused = (field: string, reason: string, more: object = {}) => ({
  ...{ code: 'validation_error', field, reason },
  ...more,
});

describe('an integer', () => {
  const range = { min: -1, max: 200 };
  const outside = refused('n', 'must be an integer in range', range);
  it.each([
    ['-1', -1],
    ['200', 200],
    ['007', 7],
    ['', outside],
    ['-2', outside],
    ['201', outside],
    ['1.5', outside],
    ['1e2', outside],
    [' 1', outside],
    ['0x1', outside],
    ['99999999999999999', outside],
    [['1', '2'], refused('n', ONCE)],
  ])('%j', (n, told) => {
    expect(read('n', integer('', { ...range, example: 1 }), { query: { n } })).toEqual(told);
  });
  it('is its default where it is absent, or nothing', () => {
    expect(read('n', integer('', { ...range, example: 1, default: 50 }), {})).toBe(50);
    expect(read('n', integer('', { ...range, example: 1 }), {})).toBeUndefined();
  });
});

describe('a text, one of several', () => {
  const form = {
    pattern: /^[a-c]+$/,
    minLength: 2,
    maxLength: 3,
    reason: 'is no abc',
    example: 'a',
  };
  const abc = refused('t', 'is no abc');
  it.each([
    ['ab', 'ab'],
    ['a', abc],
    ['abca', abc],
    ['ax', abc],
    ['', abc],
    [['ab', 'ab'], refused('t', ONCE)],
  ])('text %j', (t, told) => {
    expect(read('t', text('', form), { query: { t } })).toEqual(told);
  });
  const kind = oneOf('', ['a', 'b'], { reason: 'is none', example: 'a' });
  it.each([
    ['b', 'b'],
    ['', refused('t', 'is none', { supported: ['a', 'b'] })],
    ['constructor', refused('t', 'is none', { supported: ['a', 'b'] })],
  ])('one of %j', (t, told) => {
    expect(read('t', kind, { query: { t } })).toEqual(told);
  });
});

describe('what must be there', () => {
  const kind = required(text('', { minLength: 1, reason: 'is nothing', example: 'a' }));
  it.each([
    [{ t: 'a' }, 'a'],
    [{}, refused('t', 'is required')],
    [{ t: '' }, refused('t', 'is nothing')],
  ])('%j', (query, told) => {
    expect(read('t', kind, { query })).toEqual(told);
  });
});

describe('what is read elsewhere where it is absent', () => {
  const { lastSequence } = POLL_RUN_EVENTS.parameters;
  const range = { min: -1, max: Number.MAX_SAFE_INTEGER };
  it.each([
    [{ lastSequence: '3', since: '5' }, 3],
    [{ since: '5' }, 5],
    [{ lastSequence: '3', since: 'x' }, 3],
    [{ since: 'x' }, refused('since', 'must be an integer in range', range)],
    [{}, undefined],
  ])(
    'version-negotiation.md §events/poll: since is an old name of lastSequence: %j',
    (query, told) => {
      expect(read('lastSequence', lastSequence, { query })).toEqual(told);
    },
  );
  it.each([
    [{ headers: { 'last-event-id': '7' }, query: { lastEventId: '9' } }, '7'],
    [{ headers: { 'last-event-id': '7' }, query: { lastEventId: ['1', '2'] } }, '7'],
    [{ headers: { 'last-event-id': '' }, query: { lastEventId: '9' } }, '9'],
    [{ query: { lastEventId: '' } }, undefined],
    [{ query: { lastEventId: ['1', '2'] } }, refused('lastEventId', ONCE)],
  ])(
    'rest-endpoints.md §SSE: lastEventId is for a request without the header: %j',
    (wire, told) => {
      expect(read('resumeAfter', RESUME_AFTER, wire)).toEqual(told);
    },
  );
});

it.each([
  [{ query: { streamMode: ['updates', 'debug'] } }],
  [{ query: { streamMode: 'values,updates' } }],
  [{ query: { streamMode: '' } }],
])('stream-modes.md: every wrong streamMode is unsupported_stream_mode: %j', (wire) => {
  expect(read('modes', STREAM_MODE, wire)).toMatchObject({ code: 'unsupported_stream_mode' });
});

it.each([
  ['k', 'k'],
  ['x'.repeat(255), 'x'.repeat(255)],
  ['', refused('Idempotency-Key', 'must have 1 to 255 characters')],
  ['x'.repeat(256), refused('Idempotency-Key', 'must have 1 to 255 characters')],
])('idempotency.md §Layer 1: Idempotency-Key %#', (key, told) => {
  expect(read('key', IDEMPOTENCY_KEY, { headers: { 'idempotency-key': key } })).toEqual(told);
});

describe('the run, then the body, then parameters in their order', () => {
  const limit = integer('', { min: 1, max: 9, example: 1 });
  const declared: Declaration = {
    ...{ method: 'post', path: '/v1/runs/{runId}', operationId: 'x', summary: '', about: 'run' },
    ...{ access: 'public', success: { status: 200, description: '' } },
    parameters: { first: limit, second: limit },
    body: {
      ...{ required: true, schema: {}, example: {} },
      parse(body) {
        if (body === undefined) throw invalid('', 'has no body');
        return body;
      },
    },
  };
  const row = runRow('r1');
  const given = async (runId: string, body: JsonValue | undefined, query: object) => {
    const request = { params: { runId }, query, headers: {}, host: 'h:1' } as unknown as Request;
    const caller = {
      tenant: 'default',
      subject: subjectOf('api-key', 'default', 'tester'),
      scopes: [],
    };
    const find = async (tenant: string, id: string) =>
      tenant === 'default' && id === 'r1' ? row : undefined;
    const stores = { runs: { find, expiredAt: async () => undefined } };
    const deps = { stores, config: {} } as unknown as Parameters<typeof readInput>[0];
    return readInput(deps, declared, { request, major: FIRST, caller, body }).catch(
      (error: HostError) => {
        const { code, details } = error;
        return { code, field: details?.field };
      },
    );
  };
  it.each([
    ['r2', undefined, { first: '0' }, { code: 'run_not_found' }],
    ['r1', undefined, { first: '0' }, { code: 'validation_error', field: '' }],
    ['r1', {}, { second: '0', first: '0' }, { code: 'validation_error', field: 'first' }],
    ['r1', {}, { second: '0' }, { code: 'validation_error', field: 'second' }],
  ])('%s %j %j', async (runId, body, query, told) => {
    expect(await given(runId, body, query)).toEqual(told);
  });
  it('all of it, where nothing is wrong', async () => {
    expect(await given('r1', { a: 1 }, { first: '3' })).toEqual({
      major: FIRST,
      caller: { tenant: 'default', subject: subjectOf('api-key', 'default', 'tester'), scopes: [] },
      ...{ baseUrl: 'http://h:1', path: { runId: 'r1' }, run: row, body: { a: 1 } },
      parameters: { first: 3, second: undefined },
    });
  });
});
