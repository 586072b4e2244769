// The protocol's checklist by HTTP: discovery, loading of definitions, authentication, errors, what is not there
// (capabilities.md, observability.md, host-sample-test-seams.md, conformance/fixtures.md; rest-endpoints.md).
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Capabilities } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { definitionFile, SERVED, writeFixtures } from './definitions.ts';

let host: TestHost;
let folder = '';

beforeAll(async () => {
  folder = await writeFixtures();
  host = await startTestHost({ fixturesDir: folder });
});

afterAll(async () => {
  await host.stop();
});

interface Envelope {
  readonly error: string;
  readonly message: string;
  readonly details?: Record<string, unknown>;
}

const ANONYMOUS = { authorization: '' };

async function discovery(): Promise<Capabilities & Record<string, unknown>> {
  const answer = await host.api<Capabilities & Record<string, unknown>>('/.well-known/openwop', {
    headers: ANONYMOUS,
  });
  expect(answer.status).toBe(200);
  return answer.body;
}

/** Sends bytes as they are and reads until the server closes. */
function exchange(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(new URL(host.url).port), '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('utf8').on('data', (piece: string) => void (text += piece));
    socket.on('close', () => resolve(text)).on('error', reject);
  });
}

describe('capabilities.md: discovery', () => {
  it('has what every profile of the core is derived from', async () => {
    const document = await discovery();
    expect(validate.capabilities(document)).toMatchObject({ ok: true });
    expect(document.protocolVersion).toMatch(/^1\.(0|[1-9]\d*)$/);
    expect(document.supportedEnvelopes).toContain('clarification.request');
    for (const envelope of document.supportedEnvelopes)
      expect(document.schemaVersions).toHaveProperty([envelope]);
    expect(document.supportedTransports ?? ['rest']).toContain('rest');
    for (const limit of Object.values(document.limits)) {
      expect(Number.isInteger(limit)).toBe(true);
      expect(limit).toBeGreaterThanOrEqual(0);
    }
    expect(document.runtimeCapabilities).toEqual([]);
  });

  it('is the same bytes each time, cacheable, and holds no credential', async () => {
    const read = () => host.api('/.well-known/openwop', { headers: ANONYMOUS });
    const [first, again] = [await read(), await read()];
    expect(again.text).toBe(first.text);
    expect(again.headers.get('etag')).toBe(first.headers.get('etag'));
    expect(first.headers.get('cache-control')).toContain('max-age');
    expect(first.text).not.toContain(host.apiKey);
    const etag = first.headers.get('etag') ?? '';
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const headers = { ...ANONYMOUS, 'if-none-match': known };
      const unchanged = await host.api('/.well-known/openwop', { headers });
      expect([unchanged.status, unchanged.text, unchanged.headers.get('etag')]).toEqual([
        304,
        '',
        etag,
      ]);
    }
    const headers = { ...ANONYMOUS, 'if-none-match': '"other"' };
    expect((await host.api('/.well-known/openwop', { headers })).status).toBe(200);
  });

  it('families stand at the root and, the same, under capabilities; none is there that is not built', async () => {
    const { capabilities = {}, ...root } = await discovery();
    expect(Object.keys(capabilities).length).toBeGreaterThan(0);
    for (const [family, value] of Object.entries(capabilities)) expect(root[family]).toEqual(value);
    for (const absent of [
      ...['webhooks', 'memory', 'secrets'],
      ...['testing', 'restTransport', 'feedback', 'production', 'auth'],
    ])
      expect(root).not.toHaveProperty([absent]);
  });

  it('a host without agents advertises none, and their addresses are 404', async () => {
    expect(await discovery()).not.toHaveProperty('agents');
    for (const path of ['/v1/agents', '/v1/agents/a.b.c'])
      expect((await host.api(path)).status).toBe(404);
    const { body } = await host.api<{ paths: object }>('/v1/openapi.json', { headers: ANONYMOUS });
    expect(Object.keys(body.paths).join(' ')).not.toContain('/v1/agents');
  });

  it('the OpenAPI document is public, 3.1 and lists no operation that is not there', async () => {
    const { status, body } = await host.api<{ openapi: string; paths: object }>(
      '/v1/openapi.json',
      { headers: ANONYMOUS },
    );
    expect(status).toBe(200);
    expect(body.openapi).toMatch(/^3\.[1-9]/);
    for (const absent of ['webhooks', 'bulk', 'sample', '/v1/interrupts/'])
      expect(Object.keys(body.paths).join(' ')).not.toContain(absent);
  });
});

describe('conformance/fixtures.md: definitions from a folder', () => {
  it('lists exactly what this process can run to its documented end', async () => {
    const { fixtures = [] } = await discovery();
    expect([...fixtures].sort()).toEqual(SERVED.map((id) => `conformance-${id}`).sort());
  });

  it.each(SERVED)('serves %s as it was written', async (id) => {
    const { status, body } = await host.api(`/v1/workflows/conformance-${id}`);
    expect(status).toBe(200);
    expect(body).toEqual(definitionFile(id));
    const written = await readFile(join(folder, `conformance-${id}.json`), 'utf8');
    expect(body).toEqual(JSON.parse(written));
  });

  it('leaves the others out with a line each, and cannot start them', async () => {
    for (const id of ['agent-memory-roundtrip', 'inner']) {
      const workflowId = `conformance-${id}`;
      expect((await host.api(`/v1/workflows/${workflowId}`)).status).toBe(404);
      const { status, body } = await host.api<Envelope>('/v1/runs', { body: { workflowId } });
      expect([status, body.error]).toEqual([404, 'workflow_not_found']);
    }
    const lines = host.logs.join('\n');
    for (const told of ['broken.json', 'other.json', 'core.interrupt', 'memory.supported'])
      expect(lines).toContain(told);
  });
});

describe('auth.md: authentication and errors', () => {
  it.each(['', 'Bearer', 'Bearer nobody-knows-this-token', 'Basic dXNlcjpwYXNz', 'Token x'])(
    '"%s" is 401 on every keyed address, known or not, and never repeated',
    async (authorization) => {
      for (const path of [
        ...['/v1/runs', '/v1/runs/run-x', '/v1/runs/run-x/events', '/v1/runs/run-x/events/poll'],
        ...[
          '/v1/workflows/conformance-noop',
          '/v1/runs/run-x/artifacts/a',
          '/v1/unknown',
          '/v1/agents',
        ],
      ]) {
        const { status, body, text } = await host.api<Envelope>(path, {
          headers: { authorization },
        });
        expect([path, status, body.error]).toEqual([path, 401, 'unauthenticated']);
        expect(text).not.toContain('nobody-knows-this-token');
      }
    },
  );

  it('a key comes before the body: malformed JSON without a key is 401', async () => {
    const headers = { ...ANONYMOUS, 'content-type': 'application/json' };
    expect((await host.api('/v1/runs', { body: '{', headers })).status).toBe(401);
  });

  it.each([
    [
      'headers larger than permitted',
      `GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
    ],
    ['bytes that are no HTTP', 'NONSENSE\r\n\r\n', 400],
    ['a request without Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a method of nobody', 'FLY /v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
    [
      'two lengths',
      'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde',
      400,
    ],
    [
      'an expectation of nobody',
      'GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nExpect: magic\r\nConnection: close\r\n\r\n',
      401,
    ],
  ])('2.2 %s: the envelope, also below any route', async (_what, bytes, status) => {
    const [head = '', body = ''] = (await exchange(bytes)).split('\r\n\r\n');
    expect(head).toContain(`HTTP/1.1 ${status} `);
    expect(validate.errorEnvelope(JSON.parse(body))).toMatchObject({ ok: true });
  });

  it('packs are 404 in plain text, key or not', async () => {
    for (const path of ['/v1/packs', '/v1/packs/', '/v1/packs/a/versions/1', '/v1/packs?x=1']) {
      for (const headers of [{}, ANONYMOUS]) {
        for (const method of ['GET', 'POST', 'PUT']) {
          const answer = await host.api(path, { method, headers });
          expect([path, answer.status]).toEqual([path, 404]);
          expect(answer.headers.get('content-type')).toContain('text/plain');
          expect(answer.text.length).toBeGreaterThan(0);
        }
      }
    }
  });

  it('what is not advertised is 404 in the envelope, never a stub', async () => {
    const runId = await host.startRun({ workflowId: 'conformance-noop' });
    const run = `/v1/runs/${runId}`;
    const absent: [string, string][] = [
      ...['annotations', 'eval-summary'].map((part): [string, string] => ['GET', `${run}/${part}`]),
      ['POST', '/v1/runs:bulk-cancel'],
      ['POST', '/v1/webhooks'],
      ['GET', '/v1/interrupts/token'],
      ['POST', '/v1/interrupts/token'],
      ['GET', '/v1/tools'],
      ['GET', '/v1/prompts'],
      ['GET', '/v1/audit/verify?fromSeq=0&toSeq=1'],
      ['GET', '/v1/host/sample/test/runs/__probe__/events'],
      ['GET', '/v1/host/sample/agents'],
      ...[
        'test/reset',
        'workflows',
        'test/mock-ai/program',
        'agents/live-invoke',
        'agents/core.conformance.live/dispatch',
        'dispatch/fanout',
        'test/surface',
      ].map((part): [string, string] => ['POST', `/v1/host/sample/${part}`]),
    ];
    for (const [method, path] of absent) {
      const body = method === 'POST' ? {} : undefined;
      const answer = await host.api<Envelope>(path, { method, body });
      expect([path, answer.status]).toEqual([path, 404]);
      expect(validate.errorEnvelope(answer.body)).toMatchObject({ ok: true });
    }
  });

  it('values that look like credentials come back nowhere', async () => {
    const canaries = [
      'sk-canary-aaaabbbbcccc',
      'sk-ant-api03-canary0000',
      'AIzaSyCanary00000000',
      'cred_canary_0001',
    ];
    for (const canary of canaries) {
      const bad: [string, unknown][] = [
        ['/v1/runs', { workflowId: canary }],
        ['/v1/runs', { workflowId: 'conformance-noop', [canary]: canary }],
        [
          '/v1/runs',
          { workflowId: 'conformance-noop', configurable: { reasoningVerbosity: canary } },
        ],
        ['/v1/runs', { workflowId: 'conformance-idempotent', inputs: { nonce: [canary] } }],
        [`/v1/runs/${canary}/cancel`, { [canary]: 1 }],
      ];
      for (const [path, body] of bad) {
        const answer = await host.api(path, { body });
        expect(answer.status).toBeGreaterThanOrEqual(400);
        expect(answer.text).not.toContain(canary);
      }
      expect((await host.api(`/v1/workflows/${canary}`)).text).not.toContain(canary);
      const runId = await host.startRun(
        {
          workflowId: 'conformance-noop',
          inputs: { apiKey: canary },
          configurable: { ai: { credentialRef: canary }, 'ai.credentialRef': canary },
        },
        { 'x-api-key': canary },
      );
      await host.waitFor(runId, ({ status }) => status === 'completed');
      for (const path of [`/v1/runs/${runId}`, `/v1/runs/${runId}/events/poll`])
        expect((await host.api(path)).text).not.toContain(canary);
    }
    for (const canary of canaries) expect(host.logs.join('\n')).not.toContain(canary);
  });
});
