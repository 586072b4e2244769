// What somebody without a key can make the host do: nothing that costs Temporal or the database more than one question
// a second (architecture §10).
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../src/facade/listen.ts';
import type { PageSessionStore } from '../../src/ports/page-sessions.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const STRANGERS = 50;
const SIGN_IN_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 4;
const asked = { ping: 0, findSession: 0, consumeLink: 0 };
let gate: Promise<void> | undefined;
let host: FaultHost;
let runId: string;
let other: string;

beforeAll(async () => {
  host = await startFaultHost({}, ({ engine, stores }) => ({
    engine: {
      ...engine,
      async ping() {
        asked.ping += 1;
        await gate;
        return engine.ping();
      },
    },
    stores: { ...stores, pageSessions: counted(stores.pageSessions) },
  }));
  runId = await host.startRun({ workflowId: 'noop' });
  other = await host.startRun({ workflowId: 'noop' });
});

afterAll(() => host.stop());

function counted(store: PageSessionStore): PageSessionStore {
  return {
    ...store,
    findSession: (...given) => ((asked.findSession += 1), store.findSession(...given)),
    consumeLink: (...given) => ((asked.consumeLink += 1), store.consumeLink(...given)),
  };
}

const visit = (path: string, cookie = '', method = 'GET') =>
  fetch(`${host.url}${path}`, { method, headers: { cookie }, redirect: 'manual' });

/** What a connection gets for some bytes, up to the end of its first piece. */
async function talk(bytes: string): Promise<string> {
  const socket = connect(Number(new URL(host.url).port), '127.0.0.1');
  socket.on('error', () => undefined).write(bytes);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString();
}

/** The same facade with few connections. */
async function fewConnections(deps: FaultHost['deps']) {
  const at = { host: '127.0.0.1', port: 0 };
  const server = await listen(deps, at, { maxConnections: MAX_CONNECTIONS });
  const dial = async () => {
    const socket = connect(server.port, at.host).on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  return { server, dial };
}

/** The page's path and cookie. */
async function open(id: string): Promise<{ path: string; cookie: string; link: string }> {
  const { body } = await host.api<{ url: string }>(
    `/v1/host/openwop-temporal/runs/${id}/page-link`,
    { method: 'POST' },
  );
  const { pathname, search } = new URL(body.url);
  const link = new URLSearchParams(search).get('link') ?? '';
  const opened = await visit(pathname + search, '', 'POST');
  expect(opened.status).toBe(303);
  return { path: pathname, cookie: opened.headers.getSetCookie()[0]?.split(';')[0] ?? '', link };
}

describe('architecture §10 without a key', () => {
  it('any number of questions after readiness ask Temporal and the database once', async () => {
    let release = () => {};
    gate = new Promise((resolve) => (release = resolve));
    const answers = Promise.all(Array.from({ length: STRANGERS }, () => visit('/readyz')));
    await expect.poll(() => asked.ping).toBeGreaterThan(0);
    await visit('/healthz');
    release();
    gate = undefined;
    expect(new Set((await answers).map(({ status }) => status))).toEqual(new Set([200]));
    expect(asked.ping).toBe(1);
  });

  it('cookies and links that this deployment did not make, or for another run, cost no query', async () => {
    const { path, cookie } = await open(runId);
    expect((await visit(path, cookie)).status).toBe(200);
    const [name = '', token = ''] = cookie.split('=');
    const before = { ...asked };
    const forged = randomBytes(48).toString('base64url');
    for (const value of [
      forged,
      token.slice(1),
      `${token}x`,
      token.replace(/^./, (c) => (c === 'A' ? 'B' : 'A')),
      '',
    ]) {
      expect((await visit(path, `${name}=${value}`)).status).toBe(401);
      const events = await visit(`/v1/runs/${runId}/events`, `${name}=${value}`);
      expect(events.status).toBe(401);
      expect((await visit(`${path}?link=${value}`, '', 'POST')).status).toBe(410);
    }
    const elsewhere = path.replace(runId, other);
    expect((await visit(elsewhere, cookie)).status).toBe(401);
    expect((await visit(`${elsewhere}?link=${token}`, '', 'POST')).status).toBe(410);
    expect(asked).toEqual(before);
  });

  it('a used link is asked for, and refused', async () => {
    const { path, link } = await open(runId);
    expect((await visit(`${path}?link=${link}`, '', 'POST')).status).toBe(410);
  });

  it('[I108] the form that signs in is small, and refused before it is read', async () => {
    const head = (length: number, more = '') =>
      `POST /pages/sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\n${more}` +
      `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`;
    // Not a byte of the form is sent.
    expect(await talk(head(SIGN_IN_BYTES + 1))).toMatch(/^HTTP\/1.1 413 /);
    const foreign = 'Origin: http://evil.example\r\n';
    expect(await talk(head(SIGN_IN_BYTES, foreign))).toMatch(/^HTTP\/1.1 403 /);
    // Whose length is not said is kept up to the limit, and dropped from there.
    const chunked = head(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked');
    const piece = `${(SIGN_IN_BYTES + 1).toString(16)}\r\n${'x'.repeat(SIGN_IN_BYTES + 1)}\r\n0\r\n\r\n`;
    expect(await talk(`${chunked}${piece}`)).toMatch(/^HTTP\/1.1 413 /);
    const fits = head(SIGN_IN_BYTES) + 'x'.repeat(SIGN_IN_BYTES);
    expect(await talk(fits)).toMatch(/^HTTP\/1.1 401 /);
  });

  it('a form that another site sends is refused before it is read', async () => {
    const { path, cookie } = await open(runId);
    const head = [
      `POST ${path}/interrupts/gate HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${cookie}\r\n`,
      'Origin: http://evil.example\r\nContent-Type: application/x-www-form-urlencoded\r\n',
      'Content-Length: 100000\r\n\r\n',
    ];
    expect(await talk(head.join(''))).toMatch(/^HTTP\/1.1 403 /);
  });

  it('RFC 9112 §3.2: two Host headers are 400, whatever they say', async () => {
    const get = (headers: string) => talk(`GET /healthz HTTP/1.1\r\n${headers}\r\n`);
    const own = 'Host: 127.0.0.1\r\n';
    expect(await get(own)).toMatch(/^HTTP\/1.1 200 /);
    expect(await get(own + own)).toMatch(/^HTTP\/1.1 400 [^]*more than once/);
    expect(await get(`${own}hOST: evil.example\r\n`)).toMatch(/^HTTP\/1.1 400 /);
  });

  it('an Origin is that of the host with its scheme', async () => {
    const { port } = new URL(host.url);
    const signIn = async (origin: string) => {
      const headers = { origin, 'content-type': 'application/x-www-form-urlencoded' };
      const answer = await fetch(`${host.url}/pages/sign-in`, { method: 'POST', headers });
      return answer.status;
    };
    expect(await signIn(`http://127.0.0.1:${port}`)).toBe(401);
    for (const foreign of [`https://127.0.0.1:${port}`, `http://127.0.0.1:1${port}`, 'null'])
      expect(await signIn(foreign), foreign).toBe(403);
  });

  it('a body that is refused is not asked for', async () => {
    const head = (length: number) =>
      `POST /pages/sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n` +
      `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`;
    expect(await talk(head(SIGN_IN_BYTES + 1))).toMatch(/^HTTP\/1.1 413 /);
    expect(await talk(head(SIGN_IN_BYTES))).toMatch(/^HTTP\/1.1 100 /);
  });

  it('[I108] connections are as many as there may be; an idle one makes room', async () => {
    const { server, dial } = await fewConnections(host.deps);
    const get = 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
    // One has asked and is idle, the others have begun to ask.
    const idle = await dial();
    idle.write(get);
    await once(idle, 'data');
    const busy = await Promise.all(Array.from({ length: MAX_CONNECTIONS - 1 }, dial));
    for (const socket of busy) socket.write(get.slice(0, -2));
    const refused = await dial();
    await once(refused.resume(), 'close');
    // Long before its own time as an idle one is over.
    await expect.poll(() => idle.closed).toBe(true);
    const taken = await dial();
    taken.write(get);
    expect(String((await once(taken, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /);
    expect(host.lines).toContainEqual({
      message: expect.stringContaining('a connection was refused') as unknown,
      fields: { maxConnections: MAX_CONNECTIONS },
    });
    for (const socket of [...busy, taken]) socket.destroy();
    await server.stop();
  });

  it('an answer that is being sent is not cut for another connection', async () => {
    const blob = 'x'.repeat(16 * 1024 * 1024);
    const { catalog } = host.deps;
    const definition: typeof catalog.definition = (tenant, id) => {
      const found = catalog.definition(tenant, id);
      return found && { ...found, description: blob };
    };
    const { server, dial } = await fewConnections({
      ...host.deps,
      catalog: { ...catalog, definition },
    });
    const slow = await dial();
    const ask = `GET /v1/workflows/noop HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${KEY}`;
    slow.write(`${ask}\r\nConnection: close\r\n\r\n`);
    let bytes = ((await once(slow, 'data')) as [Buffer])[0].length;
    slow.pause();
    const busy = await Promise.all(Array.from({ length: MAX_CONNECTIONS - 1 }, dial));
    const refused = await dial();
    await once(refused.resume(), 'close');
    const ended = once(slow, 'end');
    slow.on('data', (piece: Buffer) => void (bytes += piece.length)).resume();
    await ended;
    expect(bytes).toBeGreaterThan(blob.length);
    for (const socket of busy) socket.destroy();
    await server.stop();
  });

  const get = (path: string, header = '') =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${header}\r\n`;
  it.each([
    ['that asked whether to go on', [get('/readyz', 'Expect: 100-continue\r\n')]],
    ['after one that is answered', [get('/healthz'), get('/readyz')]],
  ])('a request under way is not cut for another connection: one %s', async (_, requests) => {
    const { server, dial } = await fewConnections(host.deps);
    let release = () => {};
    gate = new Promise((resolve) => (release = resolve));
    const before = asked.ping;
    const asking = await dial();
    let answers = '';
    asking.on('data', (piece: Buffer) => void (answers += piece.toString()));
    const count = () => answers.match(/200 OK/g)?.length ?? 0;
    asking.write(get('/healthz'));
    await expect.poll(count).toBe(1);
    asking.write(requests.join(''));
    await expect.poll(() => asked.ping).toBeGreaterThan(before);
    await expect.poll(count).toBe(requests.length);
    const busy = await Promise.all(Array.from({ length: MAX_CONNECTIONS - 1 }, dial));
    const refused = await dial();
    await once(refused.resume(), 'close');
    release();
    gate = undefined;
    await expect.poll(count).toBe(requests.length + 1);
    for (const socket of [...busy, asking]) socket.destroy();
    await server.stop();
  });
});
