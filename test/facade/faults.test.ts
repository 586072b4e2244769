// Bad requests: each has its status and its code, always in the closed envelope, and nothing is created
// (auth.md, rest-endpoints.md §Error response shape; architecture §10).
import { connect } from 'node:net';
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import { KEY, KNOWN_SECRET, refusals, startFaultHost, type FaultHost } from './fault-host.ts';

let host: FaultHost;

beforeAll(async () => {
  host = await startFaultHost();
});

afterAll(async () => {
  await host.stop();
});

const refused = refusals(() => host);

describe('auth.md: authentication', () => {
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

describe("rest-endpoints.md §Error response shape: the closed envelope, the framework's own errors included", () => {
  it.each([
    ['an address without a version', '/runs', {}, 400, 'validation_error'],
    ['the root', '/', {}, 400, 'validation_error'],
    ['a broken percent escape', '/v1/runs/%zz', {}, 400, 'validation_error'],
    ['another method', '/v1/runs', { method: 'DELETE' }, 405, 'method_not_allowed'],
    ['a method of nobody', '/v1/runs/run-x/cancel', { method: 'PATCH' }, 405, 'method_not_allowed'],
    [
      'another method of an operation on no run',
      '/v1/host/openwop-temporal/subjects:erase',
      { method: 'PUT' },
      405,
      'method_not_allowed',
    ],
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
    [
      'JSON in another encoding',
      '/v1/runs',
      { body: '{}', headers: { 'content-type': 'application/json; charset=utf-16le' } },
      415,
      'unsupported_media_type',
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
    ['an agent of a host without agents', '/v1/agents/unknown', {}, 404, 'not_found'],
    ['the agents of a host without agents', '/v1/agents', {}, 404, 'not_found'],
    [
      'an operation that no run has',
      '/v1/runs/run-x:rewind',
      { method: 'POST', body: {} },
      404,
      'not_found',
    ],
    [
      'a diff that is written',
      '/v1/runs/run-x:diff',
      { method: 'POST', body: {} },
      405,
      'method_not_allowed',
    ],
  ])('%s', async (_what, path, request, status, code) => {
    await refused(path, request, { status, code });
  });

  it.each([
    ['{"workflowId":"noop","inputs":{"order":9007199254740993}}', '/inputs/order', 'exactly'],
    ['{"workflowId":"noop","metadata":{"a":[1e400]}}', '/metadata/a/0', 'send it as text'],
    ['{"workflowId":"noop","inputs":{"__proto__":{"a":1}}}', '/inputs/__proto__', 'is a name'],
  ])('[I103] %s is refused at its place: nothing else is stored', async (body, field, words) => {
    const send = (sent: string) =>
      fetch(`${host.url}/v1/runs`, {
        method: 'POST',
        body: sent,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      });
    const answer = await send(body);
    expect((await send(`\ufeff${body}`)).status).toBe(400);
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      {
        error: 'validation_error',
        details: { field, reason: expect.stringContaining(words) as unknown },
      },
    ]);
  });

  it('a body of no bytes is none, whatever way it is sent', async () => {
    const empty = new ReadableStream({ start: (controller) => controller.close() });
    const answer = await fetch(`${host.url}/v1/runs/run-unknown/cancel`, {
      method: 'POST',
      body: empty,
      duplex: 'half',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    });
    expect(answer.status).toBe(404);
  });

  it('a byte order mark is none of the body', async () => {
    const answer = await fetch(`${host.url}/v1/runs`, {
      method: 'POST',
      body: '\ufeff{"workflowId":"unknown"}',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      404,
      { error: 'workflow_not_found' },
    ]);
  });

  it('a body that is not UTF-8 is 400: nothing is stored in place of what was sent', async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"workflowId":"noop","tags":["'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"]}'),
    ]);
    const answer = await fetch(`${host.url}/v1/runs`, {
      method: 'POST',
      body: bytes,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: 'validation_error', details: { reason: 'the body is not UTF-8' } },
    ]);
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

  it('what looks like a credential is not echoed (auth.md)', async () => {
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

  it('packs answer in plain text before the key is asked for ', async () => {
    const answer = await host.api('/v1/packs/some/pack', { headers: { authorization: '' } });
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toContain('text/plain');
  });

  it('a Host header of another name is refused by a loopback server (architecture §10)', async () => {
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

describe('rest-endpoints.md: the body of POST /v1/runs', () => {
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
