// The document of the API against its answers (openapi.yaml): every operation declares the status of whatever a client
// can do wrong before a route is asked. `.ci/openapi-fuzz` tries the rest.
import { request as httpRequest } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addFormats } from '../../src/wire/formats.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';

interface Example {
  readonly schema: object;
  readonly example?: unknown;
}

interface Operation {
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly (Example & {
    readonly deprecated?: true;
    readonly name: string;
    readonly description?: string;
  })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Example>> };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Record<string, unknown> }>
  >;
}

interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: object;
}

let host: FaultHost;
let components: object;
let operations: readonly (Operation & { readonly method: string; readonly path: string })[];

beforeAll(async () => {
  host = await startFaultHost({ opensentience: true });
  const { body } = await host.api<Document>('/v1/openapi.json');
  ({ components } = body);
  operations = Object.entries(body.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, method, path })),
  );
});

afterAll(() => host.stop());

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** As it is: without a client that mends paths and headers. */
function ask({ method, path, headers = {}, body }: Asked): Promise<number> {
  const { hostname, port } = new URL(host.url);
  return new Promise((resolve, reject) => {
    httpRequest(
      {
        ...{ hostname, port, path, method: method.toUpperCase() },
        headers: { authorization: `Bearer ${KEY}`, accept: 'application/json', ...headers },
      },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    )
      .on('error', reject)
      .end(body);
  });
}

const json = { 'content-type': 'application/json' };
const filled = (path: string, value: string) => path.replaceAll(/\{\w+\}/g, value);

/** What is sent, to which operations it can be sent, and the status that is expected of it. */
const WRONG: Record<
  string,
  { of: (path: string, method: string) => boolean; status: number } & Partial<Asked>
> = {
  'no key': { of: () => true, status: 401, headers: { authorization: 'Bearer nobody' } },
  'a path of bad bytes': { of: (path) => path.includes('{'), status: 400, path: '%ff' },
  'another Host': { of: () => true, status: 403, headers: { host: 'evil.example' } },
  'headers too large': { of: () => true, status: 431, headers: { 'x-much': 'x'.repeat(20_000) } },
  'a body of another type': {
    of: (_path, method) => method === 'post',
    status: 415,
    body: 'a=1',
    headers: { 'content-type': 'text/plain' },
  },
  'a body too large': {
    of: (_path, method) => method === 'post',
    status: 413,
    body: `"${'x'.repeat(1024 * 1024)}"`,
    headers: json,
  },
  'a body that is no JSON': {
    of: (_path, method) => method === 'post',
    status: 400,
    body: '{',
    headers: json,
  },
};

/** Told by a host that can do it: this one neither rehearses nor erases. */
const WHERE_IT_CAN = /:skip$|\/subjects:erase$|\/erasures\b/;

describe('openapi.yaml: the document declares what is answered', () => {
  it.each(Object.entries(WRONG))('%s', async (_what, { of, status, path = 'x', ...wrong }) => {
    for (const { method, path: template, responses, security } of operations) {
      if (!of(template, method)) continue;
      const told = await ask({ method, path: filled(template, path), ...wrong });
      const isPublic = security.length === 0;
      if (status === 401 && isPublic) continue;
      expect([template, method, told]).toEqual([template, method, status]);
      expect(Object.keys(responses), `${method} ${template}`).toContain(String(status));
    }
  });

  it('readiness declares its refusal, and discovery that nothing changed', async () => {
    const of = (path: string) => operations.find((operation) => operation.path === path);
    host.temporal.away = true;
    // An answer from before is kept for a moment.
    await expect.poll(() => ask({ method: 'get', path: '/readyz' })).toBe(503);
    host.temporal.away = false;
    expect(Object.keys(of('/readyz')?.responses ?? {})).toContain('503');
    const { headers } = await host.api('/.well-known/openwop');
    const known = { 'if-none-match': headers.get('etag') ?? '' };
    const again = await ask({ method: 'get', path: '/.well-known/openwop', headers: known });
    expect(again).toBe(304);
    expect(Object.keys(of('/.well-known/openwop')?.responses ?? {})).toContain('304');
  });

  it('what is answered with a body declares its media type', () => {
    for (const { method, path, responses } of operations)
      for (const [status, { content }] of Object.entries(responses))
        if (status !== '304' && !path.includes('artifacts'))
          expect([method, path, status, content === undefined]).toEqual([
            method,
            path,
            status,
            false,
          ]);
  });

  it('the scope that each operation asks for', async () => {
    const scopes = operations.map(({ method, path, security }) => [
      `${method} ${path}`,
      security.map(({ bearer }) => bearer?.join()).join(),
    ]);
    expect(Object.fromEntries(scopes)).toMatchObject({
      'get /healthz': '',
      'post /v1/runs': 'runs:create',
      'get /v1/runs/{runId}/events': 'runs:read',
      'post /v1/runs/{runId}/interrupts/{nodeId}': 'approvals:respond',
    });
  });

  it.each([
    ['access', 'get /v1/openapi.json', 'get /v1/runs', 'unauthenticated'],
    ['being about a run', 'get /v1/runs', 'get /v1/runs/{runId}', 'run_not_found'],
    ['being about a run', 'get /healthz', 'get /v1/runs/{runId}', 'service_unavailable'],
    ['a parameter', 'get /v1/runs', 'get /v1/runs/{runId}/events', 'unsupported_stream_mode'],
    ['a parameter', 'get /v1/runs', 'post /v1/runs/{runId}/cancel', 'idempotency_key_mismatch'],
    ['the method', 'get /v1/runs', 'post /v1/runs/{runId}/cancel', 'payload_too_large'],
    ['access', 'get /healthz', 'get /v1/runs', 'rate_limited'],
  ])('the errors that follow from %s', (_from, without, having, code) => {
    const codesOf = (name: string): string => {
      const found = operations.find(({ method, path }) => `${method} ${path}` === name);
      return Object.values(found?.responses ?? {})
        .map(({ description }) => description)
        .join();
    };
    expect(codesOf(having)).toContain(code);
    expect(codesOf(without)).not.toContain(code);
  });

  it('version-negotiation.md §events/poll: the old name of a parameter, as such', () => {
    const old = operations.flatMap(({ parameters }) => parameters).filter((one) => one.deprecated);
    expect(old.map(({ name }) => name)).toEqual(['since']);
  });

  it('every parameter and every body has an example that fits it, and says what it is', () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats(ajv);
    const examples = operations.flatMap(({ method, path, parameters, requestBody }) => [
      ...parameters.map((one) => ({ ...one, of: `${method} ${path} ${one.name}` })),
      ...Object.values(requestBody?.content ?? {}).map((one) => ({
        ...{ ...one, of: `${method} ${path}`, description: 'A body.' },
      })),
    ]);
    const wrong = examples.filter(({ schema, example, description }) => {
      const check = ajv.compile({ ...schema, components });
      return example === undefined || !description || !check(example);
    });
    expect(wrong.map(({ of }) => of)).toEqual([]);
    expect(examples.length).toBeGreaterThan(30);
  });

  it('a node has an address whatever its definition names it', () => {
    const ajv = new Ajv2020({ strict: false });
    const nodes = operations.flatMap(({ parameters }) =>
      parameters.filter(({ name }) => name === 'nodeId'),
    );
    const named = { $ref: '#/components/schemas/WorkflowDefinition/properties/nodes/items' };
    const node = { id: 'n'.repeat(500), typeId: 'core.noop', name: 'n', position: { x: 0, y: 0 } };
    const fits = ajv.compile({ ...named, components });
    expect([fits({ ...node, config: {}, inputs: {} }), fits.errors]).toEqual([true, null]);
    expect(nodes.map(({ schema }) => ajv.validate(schema, node.id))).toEqual([true]);
  });

  it('the addresses of extensions that discovery tells are the operations here', async () => {
    const { body } = await host.api<{ extensions: Record<string, Record<string, unknown>> }>(
      '/.well-known/openwop',
    );
    const { staleReadHeader, opensentience, deployments, ...addresses } =
      body.extensions['openwop-temporal'] ?? {};
    expect(staleReadHeader).toBeTypeOf('string');
    const told = [
      ...Object.values(addresses),
      ...Object.values(opensentience as Record<string, string>),
      ...Object.values(deployments as Record<string, string>),
    ];
    const served = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(told.filter((address) => !served.includes(String(address)))).toEqual([]);
    const own = served.filter(
      (address) => address.includes('/host/openwop-temporal/') && !WHERE_IT_CAN.test(address),
    );
    expect(own.filter((address) => !told.includes(address))).toEqual([]);
  });
});
