// Behind a reverse proxy that ends TLS and rewrites Host: links, cookies and forms are those of the address that users
// see, and what strangers say of it is not believed (architecture §10).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as plainRequest, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer, request as tlsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FacadeConfig } from '../../src/facade/deps.ts';
import { listen } from '../../src/facade/listen.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';
import { ended, waiting } from './suite-parts.ts';
import { SUITE } from './suite-workflows.ts';

interface Proxy {
  readonly origin: string;
  target: string;
  stop(): Promise<void>;
}

interface ProxyBehaviour {
  readonly keepsHost: boolean;
  readonly forwards: boolean;
}

function certificate(): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'openwop-certificate-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const asked = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout ${key} -out ${cert}`;
  try {
    execFileSync('openssl', asked.split(' '), { stdio: 'ignore' });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function startProxy({ keepsHost, forwards }: ProxyBehaviour): Promise<Proxy> {
  const proxy = { origin: '', target: '' };
  const server = createTlsServer(certificate(), (request, response) => {
    const { host = '' } = request.headers;
    const headers = {
      ...request.headers,
      host: keepsHost ? host : new URL(proxy.target).host,
      ...(forwards && {
        'x-forwarded-host': host,
        'x-forwarded-proto': 'https',
        'x-forwarded-for': request.socket.remoteAddress,
      }),
    };
    const { method, url } = request;
    const onward = plainRequest(`${proxy.target}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
    response.on('close', () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.origin = `https://localhost:${(server.address() as AddressInfo).port}`;
  return Object.assign(proxy, {
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

interface Answer {
  readonly status: number;
  readonly cookies: readonly string[];
  readonly location: string | undefined;
  readonly text: string;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

function ask(url: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const answered = (response: IncomingMessage): void => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => void (text += piece));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          cookies: response.headers['set-cookie'] ?? [],
          location: response.headers.location,
          text,
        }),
      );
    };
    const request = url.startsWith('https:')
      ? tlsRequest(url, { method, headers, rejectUnauthorized: false }, answered)
      : plainRequest(url, { method, headers }, answered);
    request.on('error', reject).end(body);
  });
}

/** Asks for a link to the run's page at `base`. */
async function linkOf(key: string, runId: string, base: string): Promise<string> {
  const answer = await ask(`${base}/v1/host/openwop-temporal/runs/${runId}/page-link`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  });
  return (JSON.parse(answer.text) as { url: string }).url;
}

const field = (html: string, name: string): string =>
  new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '';

/** What the link opens: the path and the cookie of the page. */
async function openPage(key: string, runId: string, origin: string): Promise<string> {
  const url = await linkOf(key, runId, origin);
  expect(url.startsWith(`${origin}/pages/runs/${runId}?link=`)).toBe(true);
  const foreign = { origin: 'https://evil.example' };
  expect((await ask(url, { method: 'POST', headers: foreign })).status).toBe(403);
  const opened = await ask(url, { method: 'POST', headers: { origin } });
  expect([opened.status, opened.location]).toEqual([303, `/pages/runs/${runId}`]);
  expect(opened.cookies.length).toBe(2);
  for (const cookie of opened.cookies)
    expect(cookie).toMatch(/^__Secure-openwop_page=[\w-]+; .*; HttpOnly; Secure; SameSite=Strict$/);
  return opened.cookies[0]?.split(';')[0] ?? '';
}

describe('a proxy that rewrites Host and says nothing, with OPENWOP_PUBLIC_URL', () => {
  let host: TestHost;
  let proxy: Proxy;
  beforeAll(async () => {
    proxy = await startProxy({ keepsHost: false, forwards: false });
    const env = { OPENWOP_PUBLIC_URL: proxy.origin, OPENWOP_TRUSTED_PROXIES: '127.0.0.1' };
    host = await startTestHost({ builtIn: SUITE, env });
    proxy.target = host.url;
  });
  afterAll(async () => {
    await proxy.stop();
    await host.stop();
  });
  const start = () => host.startRun({ workflowId: 'approval' });

  it('the page is live, its form is taken, and that of no other site', async () => {
    const { origin } = proxy;
    const runId = await start();
    await host.waitFor(runId, waiting);
    const cookie = await openPage(host.apiKey, runId, origin);
    const page = await ask(`${origin}/pages/runs/${runId}`, { headers: { cookie } });
    expect(page.status).toBe(200);
    const send = (from: string) =>
      ask(`${origin}/pages/runs/${runId}/interrupts/gate`, {
        method: 'POST',
        headers: { cookie, origin: from, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          csrf: field(page.text, 'csrf'),
          interruptId: field(page.text, 'interruptId'),
          action: 'accept',
        }).toString(),
      });
    expect((await send('https://evil.example')).status).toBe(403);
    const live = ask(`${origin}/v1/runs/${runId}/events?streamMode=debug`, {
      headers: { cookie, accept: 'text/event-stream' },
    });
    expect((await send(origin)).status).toBe(303);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    expect((await live).text).toContain('event: run.completed');
  });

  it('a session of an open network is none here: the cookie without the prefix opens nothing', async () => {
    const runId = await start();
    const cookie = (await openPage(host.apiKey, runId, proxy.origin)).replace('__Secure-', '');
    const page = await ask(`${proxy.origin}/pages/runs/${runId}`, { headers: { cookie } });
    expect(page.status).toBe(401);
  });

  it('links are the public ones wherever they were asked for', async () => {
    const { body } = await host.api('/v1/runs', { body: { workflowId: 'approval' } });
    const runId = String(body.runId);
    expect(body.statusUrl).toBe(`${proxy.origin}/v1/runs/${runId}`);
    expect(await linkOf(host.apiKey, runId, host.url)).toContain(`${proxy.origin}/pages/`);
    expect(host.publicUrl).toBe(proxy.origin);
  });

  it('a forwarded host that is none is 400', async () => {
    const headers = { 'x-forwarded-host': 'a b"' };
    expect((await ask(`${host.url}/healthz`, { headers })).status).toBe(400);
  });
});

describe('facades that differ in what they are told of their proxy', () => {
  let host: FaultHost;
  let runId: string;
  beforeAll(async () => {
    host = await startFaultHost();
    runId = await host.startRun({ workflowId: 'noop' });
  });
  afterAll(() => host.stop());

  async function behind(
    behaviour: ProxyBehaviour,
    told: Pick<FacadeConfig, 'publicUrl' | 'trustedProxies'>,
    test: (proxy: Proxy) => Promise<void>,
  ): Promise<void> {
    const proxy = await startProxy(behaviour);
    const config = { ...host.deps.config, ...told };
    const server = await listen({ ...host.deps, config }, { host: '127.0.0.1', port: 0 });
    try {
      proxy.target = server.url;
      await test(proxy);
    } finally {
      await proxy.stop();
      await server.stop();
    }
  }

  it('a proxy keeps Host: the public name passes the Host check, other names do not', () =>
    behind(
      { keepsHost: true, forwards: false },
      { publicUrl: 'https://openwop.example' },
      async ({ origin }) => {
        const named = async (name: string) =>
          (await ask(`${origin}/healthz`, { headers: { host: name } })).status;
        expect(await named('openwop.example')).toBe(200);
        expect(await named('evil.example')).toBe(403);
        expect(await named('openwop.example@evil.example')).toBe(400);
      },
    ));

  it('a trusted proxy rewrites Host and forwards it: links are https, cookies Secure, forms of that origin', () =>
    behind(
      { keepsHost: false, forwards: true },
      { trustedProxies: ['10.0.0.0/8', '127.0.0.1/32'] },
      async ({ origin }) => {
        const cookie = await openPage(KEY, runId, origin);
        const page = await ask(`${origin}/pages/runs/${runId}`, { headers: { cookie } });
        expect(page.status).toBe(200);
      },
    ));

  it('a proxy that is not trusted: what it says of host and scheme is not believed', () =>
    behind(
      { keepsHost: false, forwards: true },
      { trustedProxies: ['10.0.0.0/8'] },
      async ({ origin, target }) => {
        const url = await linkOf(KEY, runId, origin);
        expect(url.startsWith(`${target}/pages/`)).toBe(true);
        const { pathname, search } = new URL(url);
        const through = `${origin}${pathname}${search}`;
        expect((await ask(through, { method: 'POST', headers: { origin } })).status).toBe(403);
        const { cookies } = await ask(through, { method: 'POST' });
        expect(cookies.length).toBe(2);
        expect(cookies.join()).not.toContain('Secure');
      },
    ));
});
