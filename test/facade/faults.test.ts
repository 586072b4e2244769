// Bad requests and parts that are away: each has its status and its code, always in the closed envelope, and the run is
// unharmed (spec/01 §9, §15; design §3.3, §4, §10).
import { connect } from 'node:net';
import { request as httpRequest } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HostError } from '../../src/core/errors.ts';
import { eventIdOf } from '../../src/core/ids.ts';
import { createReaper, FAIL_AFTER_MS } from '../../src/facade/reaper.ts';
import { fold } from '../../src/log/fold.ts';
import { validate } from '../../src/wire/validators.ts';
import type { RunSnapshot } from '../../src/wire/types.generated.ts';
import { KEY, KNOWN_SECRET, startFaultHost, type FaultHost } from './fault-host.ts';

let host: FaultHost;

beforeAll(async () => {
  host = await startFaultHost();
});

afterAll(async () => {
  await host.stop();
});

afterEach(() => {
  host.temporal.away = false;
  host.temporal.startError = undefined;
});

interface Envelope {
  readonly error: string;
  readonly message: string;
  readonly details?: Record<string, unknown>;
}

async function refused(
  path: string,
  request: Parameters<FaultHost['api']>[1],
  expected: { status: number; code: string },
): Promise<{ body: Envelope; headers: Headers; text: string }> {
  const answer = await host.api<Envelope>(path, request);
  expect(answer.text).not.toBe('');
  expect(validate.errorEnvelope(answer.body)).toMatchObject({ ok: true });
  expect({ status: answer.status, code: answer.body.error }).toEqual(expected);
  return answer;
}

describe('spec/01 §3.1 authentication', () => {
  it.each([
    ['no header', ''],
    ['another scheme', `Basic ${KEY}`],
    ['an unknown key', 'Bearer owop_someone_elses_key'],
    ['an empty key', 'Bearer '],
    ['the key twice', `Bearer ${KEY} ${KEY}`],
  ])('%s is 401, and the token is not in the answer', async (_what, authorization) => {
    const { text } = await refused(
      '/v1/runs/run-unknown',
      { headers: { authorization } },
      { status: 401, code: 'unauthenticated' },
    );
    expect(text).not.toContain('owop_');
  });

  it('comes before existence: an unknown address below /v1 is 401 without a key, 404 with it', async () => {
    await refused(
      '/v1/nothing',
      { headers: { authorization: '' } },
      { status: 401, code: 'unauthenticated' },
    );
    await refused('/v1/nothing', {}, { status: 404, code: 'not_found' });
    await refused(
      '/v1/runs/run-x/artifacts/a',
      { headers: { authorization: '' } },
      { status: 401, code: 'unauthenticated' },
    );
    await refused('/v1/runs/run-x/artifacts/a', {}, { status: 404, code: 'artifact_not_found' });
  });
});

describe("spec/06 §2.2 the closed envelope, the framework's own errors included", () => {
  it.each([
    ['an address without a version', '/runs', {}, 400, 'validation_error'],
    ['the root', '/', {}, 400, 'validation_error'],
    ['a broken percent escape', '/v1/runs/%zz', {}, 400, 'validation_error'],
    ['another method', '/v1/runs', { method: 'DELETE' }, 405, 'method_not_allowed'],
    ['a method of nobody', '/v1/runs/run-x/cancel', { method: 'PATCH' }, 405, 'method_not_allowed'],
    ['malformed JSON', '/v1/runs', { body: '{"workflowId":' }, 400, 'validation_error'],
    ['no body', '/v1/runs', { method: 'POST' }, 400, 'validation_error'],
    ['a body that is no object', '/v1/runs', { body: [1] }, 400, 'validation_error'],
    [
      'another content type',
      '/v1/runs',
      { body: 'a=1', headers: { 'content-type': 'text/plain' } },
      415,
      'unsupported_media_type',
    ],
    [
      'another charset',
      '/v1/runs',
      { body: '{}', headers: { 'content-type': 'application/json; charset=koi8-r' } },
      415,
      'unsupported_media_type',
    ],
    [
      'a prototype key',
      '/v1/runs',
      { body: '{"workflowId":"noop","metadata":{"__proto__":{"a":1}}}' },
      400,
      'validation_error',
    ],
    [
      'a constructor key',
      '/v1/runs',
      { body: '{"workflowId":"noop","inputs":{"constructor":{"prototype":{}}}}' },
      400,
      'validation_error',
    ],
    [
      'a body too deep',
      '/v1/runs',
      { body: `{"workflowId":"noop","inputs":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}` },
      400,
      'validation_error',
    ],
    ['an unknown run', '/v1/runs/run-unknown', {}, 404, 'run_not_found'],
    ['a run id with a NUL', '/v1/runs/a%00b', {}, 404, 'run_not_found'],
    ['the events of an unknown run', '/v1/runs/run-unknown/events', {}, 404, 'run_not_found'],
    ['a poll of an unknown run', '/v1/runs/run-unknown/events/poll', {}, 404, 'run_not_found'],
    [
      'cancel of an unknown run',
      '/v1/runs/run-unknown/cancel',
      { method: 'POST' },
      404,
      'run_not_found',
    ],
    ['an unknown workflow', '/v1/workflows/unknown', {}, 404, 'workflow_not_found'],
    ['an unknown agent', '/v1/agents/unknown', {}, 404, 'agent_not_found'],
    ['an unadvertised fork', '/v1/runs/run-x:fork', { method: 'POST', body: {} }, 404, 'not_found'],
  ])('%s', async (_what, path, request, status, code) => {
    await refused(path, request, { status, code });
  });

  it('an oversize body is 413 and Temporal is not called', async () => {
    const before = host.temporal.calls.length;
    const body = { workflowId: 'noop', inputs: { text: 'x'.repeat(1024 * 1024) } };
    await refused('/v1/runs', { body }, { status: 413, code: 'payload_too_large' });
    expect(host.temporal.calls.length).toBe(before);
  });

  it('inputs above what history takes are 413, also when the body is not', async () => {
    const body = { workflowId: 'inputs', inputs: { count: 1, label: 'x'.repeat(200 * 1024) } };
    await refused('/v1/runs', { body }, { status: 413, code: 'payload_too_large' });
  });

  it('what looks like a credential is not echoed (spec/06 §2.4)', async () => {
    for (const secret of [
      'sk-ant-abcdefgh12345678',
      'AIzaSyA1234567890',
      'cred_0001',
      'eyJhbGciOi.eyJzdWIiOi.c2ln',
    ]) {
      const { text } = await refused(
        '/v1/runs',
        { body: { workflowId: secret } },
        { status: 404, code: 'workflow_not_found' },
      );
      expect(text).not.toContain(secret);
      const unknown = await refused(
        '/v1/runs',
        { body: { workflowId: 'noop', [secret]: 1 } },
        { status: 400, code: 'validation_error' },
      );
      expect(unknown.text).not.toContain(secret);
    }
  });

  it('packs answer in plain text before the key is asked for (spec/06 §2.7)', async () => {
    const answer = await host.api('/v1/packs/some/pack', { headers: { authorization: '' } });
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toContain('text/plain');
  });

  it('a Host header of another name is refused by a loopback server (design §10)', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(
        `${host.url}/healthz`,
        { headers: { host: 'evil.example' } },
        (response) => {
          response.resume();
          resolve(response.statusCode);
        },
      );
      request.on('error', reject).end();
    });
    expect(status).toBe(403);
  });

  it('bytes that are no HTTP end the connection and nothing else', async () => {
    const { port } = new URL(host.url);
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write('\0\0\0\r\n\r\n'));
      socket.on('close', () => resolve()).on('error', () => undefined);
      socket.resume();
    });
    expect((await host.api('/healthz')).status).toBe(200);
  });
});

describe('spec/01 §2.3 the body of POST /v1/runs', () => {
  it.each([
    ['an unknown field', { workflowId: 'noop', extra: 1 }, 400, 'validation_error'],
    ['neither workflow nor agent', {}, 400, 'validation_error'],
    ['both', { workflowId: 'noop', agentId: 'a.b.c' }, 400, 'validation_error'],
    ['a workflowId of a wrong type', { workflowId: 7 }, 400, 'validation_error'],
    ['an unknown agent', { agentId: 'local.unknown.agent' }, 404, 'agent_not_found'],
    ['a missing required input', { workflowId: 'inputs' }, 400, 'validation_error'],
    [
      'an input of a wrong type',
      { workflowId: 'inputs', inputs: { count: 'one' } },
      400,
      'validation_error',
    ],
    ['another tenant', { workflowId: 'noop', tenantId: 'other' }, 403, 'forbidden'],
    [
      '101 tags',
      { workflowId: 'noop', tags: Array.from({ length: 101 }, () => 't') },
      400,
      'validation_error',
    ],
    ['an empty tag', { workflowId: 'noop', tags: [''] }, 400, 'validation_error'],
    [
      'a tag of 257 bytes',
      { workflowId: 'noop', tags: ['ä'.repeat(129)] },
      400,
      'validation_error',
    ],
    [
      'metadata five levels deep',
      { workflowId: 'noop', metadata: { a: { b: { c: { d: { e: 1 } } } } } },
      400,
      'validation_error',
    ],
    [
      'metadata too large',
      { workflowId: 'noop', metadata: { a: 'x'.repeat(8200) } },
      400,
      'validation_error',
    ],
    [
      'recursionLimit 0',
      { workflowId: 'noop', configurable: { recursionLimit: 0 } },
      400,
      'validation_error',
    ],
    [
      'recursionLimit above the ceiling',
      { workflowId: 'noop', configurable: { recursionLimit: 1001 } },
      400,
      'validation_error',
    ],
    [
      'a broken recursionLimit',
      { workflowId: 'noop', configurable: { recursionLimit: 1.5 } },
      400,
      'validation_error',
    ],
    [
      'escalationThreshold above 1',
      { workflowId: 'noop', configurable: { escalationThreshold: 1.01 } },
      400,
      'validation_error',
    ],
    [
      'escalationThreshold below 0',
      { workflowId: 'noop', configurable: { escalationThreshold: -0.1 } },
      400,
      'validation_error',
    ],
    [
      'an unknown verbosity',
      { workflowId: 'noop', configurable: { reasoningVerbosity: 'loud' } },
      400,
      'validation_error',
    ],
    [
      'runTimeoutMs 0',
      { workflowId: 'noop', configurable: { runTimeoutMs: 0 } },
      400,
      'validation_error',
    ],
    [
      'an unknown provider',
      { workflowId: 'noop', configurable: { 'ai.provider': 'nobody' } },
      400,
      'validation_error',
    ],
    [
      'an own credential',
      { workflowId: 'noop', configurable: { ai: { credentialRef: 'c' } } },
      400,
      'validation_error',
    ],
    [
      'a mock provider',
      { workflowId: 'noop', configurable: { mockProvider: { id: 'x' } } },
      400,
      'unsupported_mock_provider',
    ],
    [
      "configurable against the workflow's schema",
      { workflowId: 'strict', configurable: { region: 'us' } },
      400,
      'validation_error',
    ],
    [
      'no configurable where the schema asks for it',
      { workflowId: 'strict' },
      400,
      'validation_error',
    ],
    ['an evaluation run', { mode: 'eval', agentId: 'a.b.c' }, 501, 'capability_not_provided'],
    [
      'a callback address',
      { workflowId: 'noop', callbackUrl: 'https://example.com/' },
      400,
      'validation_error',
    ],
  ])('%s is refused and creates nothing', async (_what, body, status, code) => {
    const before = host.temporal.started.length;
    await refused('/v1/runs', { body }, { status, code });
    expect(host.temporal.started.length).toBe(before);
  });

  it('defaults are overlaid by inputs; undeclared inputs go nowhere; known secrets are taken out', async () => {
    const inputs = { count: 2, list: [1], stranger: 'x', label: `use ${KNOWN_SECRET}` };
    const runId = await host.startRun({
      workflowId: 'inputs',
      inputs,
      tags: ['a'],
      metadata: { by: 'test' },
    });
    expect(runId).toMatch(/^run-[0-9A-Za-z]{27}$/);
    const { body } = await host.api<RunSnapshot>(`/v1/runs/${runId}`);
    expect(body.variables).toEqual({ count: 2, list: [1], label: 'use [REDACTED:known]' });
    expect(body).toMatchObject({
      tags: ['a'],
      metadata: { by: 'test' },
      status: 'pending',
      atSeq: -1,
    });
  });
});

describe('spec/01 §4.1 Idempotency-Key', () => {
  const start = (key: string, body: unknown = { workflowId: 'noop' }) =>
    host.api<Envelope & { runId: string }>('/v1/runs', {
      body,
      headers: { 'idempotency-key': key },
    });

  it('same key and body: the first answer again, marked; another body: 409', async () => {
    const first = await start('k1');
    const again = await start('k1');
    expect(first.status).toBe(201);
    expect(first.headers.get('openwop-idempotent-replay')).toBe('false');
    expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
    expect(again.text).toBe(first.text);
    const other = await start('k1', { workflowId: 'noop', tags: ['other'] });
    expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_mismatch']);
  });

  it('ten at once make one run; the others get its answer or 409 with a hint', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => start('k2')));
    const runIds = new Set(
      answers.filter(({ status }) => status === 201).map(({ body }) => body.runId),
    );
    expect(runIds.size).toBe(1);
    for (const { status, body, headers } of answers.filter(({ status: code }) => code !== 201)) {
      expect([status, body.error]).toEqual([409, 'idempotency_in_flight']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });

  it('a key too long is 400; a refused body is not kept: the key may be used again', async () => {
    expect((await start('k'.repeat(256))).status).toBe(400);
    expect((await start('k3', { workflowId: 'noop', extra: 1 })).status).toBe(400);
    expect((await start('k3')).status).toBe(201);
  });

  it('Temporal away: 503 with Retry-After, and the retry goes on with the accepted run', async () => {
    host.temporal.away = true;
    const failed = await start('k4');
    expect([failed.status, failed.body.error]).toEqual([503, 'service_unavailable']);
    expect(failed.headers.get('retry-after')).toBe(String(failed.body.details?.retryAfter));
    host.temporal.away = false;
    const later = await start('k4');
    expect(later.status).toBe(201);
    expect(later.body.runId).toBe(failed.body.details?.runId);
  });
});

describe('design §4 the reaper', () => {
  const reaperNow = (ms: number) => createReaper(host.deps).round(Date.now() + ms);
  const accepted = async (): Promise<string> => {
    const { body } = await host.api<Envelope>('/v1/runs', { body: { workflowId: 'noop' } });
    return String(body.details?.runId);
  };

  it('starts a run again from its row when Temporal is back', async () => {
    host.temporal.away = true;
    const runId = await accepted();
    await reaperNow(FAIL_AFTER_MS * 2);
    expect((await host.stores.log.head(runId))?.status).toBe('pending');
    host.temporal.away = false;
    await reaperNow(10_000);
    expect((await host.stores.runs.load(runId))?.temporalRunId).toBe(`t-${runId}`);
    expect(host.temporal.started.at(-1)?.runId).toBe(runId);
  });

  it('a run that Temporal refuses for good fails after 30 s, with one terminal entry', async () => {
    host.temporal.startError = new HostError('payload_too_large');
    const before = new Set(
      (await host.stores.runs.unstarted(Date.now() + 1, 100)).map((row) => row.runId),
    );
    await refused(
      '/v1/runs',
      { body: { workflowId: 'noop' } },
      { status: 413, code: 'payload_too_large' },
    );
    const row = (await host.stores.runs.unstarted(Date.now() + 1, 100)).find(
      ({ runId }) => !before.has(runId),
    );
    const runId = row?.runId ?? '';
    await reaperNow(10_000);
    expect((await host.stores.log.head(runId))?.closed).toBe(false);
    await reaperNow(FAIL_AFTER_MS + 10_000);
    const { body } = await host.api<RunSnapshot>(`/v1/runs/${runId}`);
    expect(body).toMatchObject({ status: 'failed', error: { code: 'start_failed' } });
    const log = await host.api<{ events: { type: string }[]; isComplete: boolean }>(
      `/v1/runs/${runId}/events`,
      {
        headers: { accept: 'application/json' },
      },
    );
    expect(log.body.events.map(({ type }) => type)).toEqual(['run.failed']);
    expect(log.body.isComplete).toBe(true);
    expect(
      (await host.stores.runs.unstarted(Date.now() + 100_000, 100)).some(
        (item) => item.runId === runId,
      ),
    ).toBe(false);
  });
});

describe('design §3.3 Temporal away', () => {
  it('reads come from the database and say so; writes are 503; readiness names the part', async () => {
    const runId = await host.startRun({ workflowId: 'noop' });
    host.temporal.away = true;
    const read = await host.api<RunSnapshot>(`/v1/runs/${runId}`);
    expect([read.status, read.headers.get('openwop-log-stale')]).toEqual([200, 'true']);
    const events = await host.api(`/v1/runs/${runId}/events`, {
      headers: { accept: 'application/json' },
    });
    expect([events.status, events.headers.get('openwop-log-stale')]).toEqual([200, 'true']);
    await refused(
      `/v1/runs/${runId}/cancel`,
      { method: 'POST' },
      { status: 503, code: 'service_unavailable' },
    );
    await refused(
      `/v1/runs/${runId}/interrupts/gate`,
      { body: { resumeValue: 1 } },
      { status: 503, code: 'service_unavailable' },
    );
    const ready = await host.api('/readyz', { headers: { authorization: '' } });
    expect([ready.status, ready.body.temporal, ready.body.database]).toEqual([
      503,
      'service_unavailable',
      'ok',
    ]);
    expect((await host.api('/healthz', { headers: { authorization: '' } })).status).toBe(200);
    host.temporal.away = false;
    const back = await host.api(`/v1/runs/${runId}`);
    expect(back.headers.get('openwop-log-stale')).toBeNull();
    expect((await host.api('/readyz')).status).toBe(200);
  });
});

describe('spec/02 §3 streams under load', () => {
  async function append(
    runId: string,
    rows: { type: string; payload: unknown }[],
    closed = false,
  ): Promise<void> {
    const head = await host.stores.log.head(runId);
    if (!head) throw new Error('no head');
    const { temporalRunId, historyEventId, token } = head;
    const cursor = { temporalRunId, historyEventId, token };
    await host.stores.log.append({
      runId,
      behind: cursor,
      cursor,
      rows: rows.map(({ type, payload }, index) => {
        const key = `test|${head.nextSequence + index}`;
        return {
          runId,
          eventId: eventIdOf(runId, key),
          key,
          type,
          payload: JSON.stringify(payload),
          timestampMs: 1_000,
        };
      }),
      closedBlocks: [],
      status: closed ? 'completed' : 'running',
      closed,
      translateState: head.translateState,
      fold,
    });
  }

  it('a client that reads slowly gets every event, and the server does not hold them for it', async () => {
    const runId = await host.startRun({ workflowId: 'noop' });
    const blob = 'x'.repeat(16 * 1024);
    await append(runId, [{ type: 'run.started', payload: { workflowId: 'noop' } }]);
    for (let round = 0; round < 4; round++) {
      await append(
        runId,
        Array.from({ length: 200 }, (_, index) => ({
          type: 'log.appended',
          payload: { level: 'info', message: `${round}/${index}`, blob },
        })),
      );
    }
    await append(runId, [{ type: 'run.completed', payload: {} }], true);
    const response = await fetch(`${host.url}/v1/runs/${runId}/events?streamMode=debug`, {
      headers: { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' },
    });
    const reader = (response.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    let text = '';
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read())
      text += chunk.value;
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(Array.from({ length: 802 }, (_, index) => index));
  });

  it('streams are capped per key: 429 with Retry-After (design §10)', async () => {
    const small = await startFaultHost({ maxStreamsPerKey: 1 });
    const stop = new AbortController();
    try {
      const runId = await small.startRun({ workflowId: 'noop' });
      const headers = { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' };
      const held = await fetch(`${small.url}/v1/runs/${runId}/events`, {
        headers,
        signal: stop.signal,
      });
      expect(held.status).toBe(200);
      const second = await small.api<Envelope>(`/v1/runs/${runId}/events`, {
        headers: { accept: 'text/event-stream' },
      });
      expect([second.status, second.body.error]).toEqual([429, 'rate_limited']);
      expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
    } finally {
      stop.abort();
      await small.stop();
    }
  });

  it('drain ends streams with a comment and answers waiting polls', async () => {
    const own = await startFaultHost();
    const runId = await own.startRun({ workflowId: 'noop' });
    const stream = await fetch(`${own.url}/v1/runs/${runId}/events`, {
      headers: { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' },
    });
    const text = stream.text();
    const poll = own.api<{ events: unknown[]; isComplete: boolean }>(
      `/v1/runs/${runId}/events/poll?timeout=30`,
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    await own.stop();
    expect(await text).toContain(':draining');
    expect((await poll).body).toMatchObject({ events: [], isComplete: false });
  });
});

describe('the access log', () => {
  it('has route, status and run, and never a key, a body or a query', async () => {
    const runId = await host.startRun(
      { workflowId: 'noop' },
      { 'idempotency-key': 'very-private-key' },
    );
    await host.api(`/v1/runs/${runId}/events/poll?lastSequence=0&timeout=1`);
    const lines = host.lines.filter(({ message }) => message === 'request');
    expect(lines.at(-1)?.fields).toMatchObject({
      method: 'GET',
      route: '/v1/runs/{runId}/events/poll',
      status: 200,
      runId,
    });
    const all = JSON.stringify(host.lines);
    for (const secret of [KEY, 'very-private-key', 'lastSequence=0'])
      expect(all).not.toContain(secret);
  });
});
