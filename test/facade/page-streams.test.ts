// What pages may hold open, and how what was opened by a link is taken back (architecture §10): over real sockets, with two
// hosts on one database.
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { appendRows, eventually } from '../contract/given.ts';
import { patient } from '../support/machine.ts';
import { runRef } from '../support/run-ref.ts';
import type { FacadeDeps } from '../../src/facade/deps.ts';
import { KEY, startFaultHost, type Envelope, type FaultHost } from './fault-host.ts';

const LIMITS = { perKey: 3, perSession: 2, sessions: 4, total: 7 };
/** How often the session of an open stream is looked up, in ms. */
const SESSION_CHECK_MS = 30_000;
const EXTENSION = '/v1/host/openwop-temporal';

let host: FaultHost;
/** Another process. */
let other: FaultHost;
/** What a read of a log waits for: of its head, before it; of its rows, after the first. */
const gates: { head?: Promise<void>; rows?: Promise<void> } = {};

beforeAll(async () => {
  host = await startFaultHost({ streamLimits: LIMITS }, gated);
  other = await anotherHost();
});

const gated = ({ log }: FacadeDeps): Partial<FacadeDeps> => ({
  log: {
    ...log,
    async *rows(...asked) {
      for await (const rows of log.rows(...asked)) {
        yield rows;
        await gates.rows;
      }
    },
    async fresh(run) {
      await gates.head;
      return log.fresh(run);
    },
  },
});
const anotherHost = () =>
  startFaultHost({}, gated, { ...host.stores, close: () => Promise.resolve() });
afterEach(() => {
  vi.useRealTimers();
  delete gates.head;
  delete gates.rows;
});
afterAll(async () => {
  await other.stop();
  await host.stop();
});

const start = () => host.startRun({ workflowId: 'noop' });

function send(path: string, cookie: string, method = 'GET', on = host): Promise<Response> {
  const headers = { cookie, accept: 'text/event-stream' };
  return fetch(`${on.url}${path}`, { method, redirect: 'manual', headers });
}

async function linkOf(runId: string): Promise<string> {
  const path = `${EXTENSION}/runs/${runId}/page-link`;
  const { body } = await host.api<{ url: string }>(path, { method: 'POST' });
  const { pathname, search } = new URL(body.url);
  return pathname + search;
}

/** Gives the cookie of a session that a link has opened. */
async function opened(runId: string): Promise<string> {
  const answer = await send(await linkOf(runId), '', 'POST');
  expect(answer.status).toBe(303);
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

async function signedIn(): Promise<string> {
  const answer = await fetch(`${host.url}/pages/sign-in`, {
    ...{ method: 'POST', body: new URLSearchParams({ key: KEY }), redirect: 'manual' },
  });
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

const eventsOf = (runId: string) => `/v1/runs/${runId}/events?streamMode=debug`;
const byKey = (runId: string) =>
  fetch(`${host.url}${eventsOf(runId)}`, {
    headers: { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' },
  });
const revoke = (runId: string, on = host) =>
  on.api<{ runId: string; links: number; sessions: number }>(
    `${EXTENSION}/runs/${runId}/page-links:revoke`,
    { method: 'POST' },
  );

const close = (streams: readonly Response[]) =>
  Promise.all(streams.map(async ({ body }) => body?.cancel()));

/** Settles when nothing more comes of it; whether it ended in order. */
const endOf = (stream: Response) =>
  stream.text().then(
    () => 'ended',
    () => 'cut',
  );

/** A form of which the last byte is missing, once its sender was looked for; `end` sends it, for the status. */
async function halfSent(
  path: string,
  cookie: string,
  looksBy: 'findSession' | 'findHostSession',
  fields = 'csrf=none',
): Promise<{ readonly end: () => Promise<number | undefined> }> {
  const looks = vi.spyOn(host.stores.pageSessions, looksBy);
  const headers = {
    cookie,
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': fields.length,
  };
  const sending = request(`${host.url}${path}`, { method: 'POST', headers });
  const answer = once(sending, 'response') as Promise<[IncomingMessage]>;
  sending.write(fields.slice(0, -1));
  await eventually(() => looks.mock.calls.length > 0, 'the look at the session');
  looks.mockRestore();
  return {
    async end() {
      sending.end(fields.slice(-1));
      const [response] = await answer;
      response.resume();
      return response.statusCode;
    },
  };
}

/** What clients have closed is free again a moment later. */
async function placesFree(cookie: string, runId: string): Promise<void> {
  await eventually(async () => {
    const stream = await send(eventsOf(runId), cookie);
    await close([stream]);
    return stream.status === 200;
  }, 'a place that is free again');
}

/** Whether the stream tells of it before it ends; then it is left. */
async function untilText({ body }: Response, text: string): Promise<boolean> {
  let seen = '';
  if (body)
    for await (const piece of body) {
      seen += Buffer.from(piece as Uint8Array).toString();
      if (seen.includes(text)) return true;
    }
  return false;
}

async function refusedWith(stream: Response): Promise<unknown> {
  expect(Number(stream.headers.get('retry-after'))).toBeGreaterThan(0);
  const { error, details } = (await stream.json()) as Envelope;
  return [stream.status, error, details];
}

describe('streams are as many as there may be (architecture §10)', () => {
  // [I110]
  it('a session of pages opens few, whatever pages they are of, and takes none from others', async () => {
    const runId = await start();
    const cookie = await opened(runId);
    const held = [await send(eventsOf(runId), cookie), await send(eventsOf(runId), cookie)];
    expect(held.map(({ status }) => status)).toEqual([200, 200]);
    const more = await send(eventsOf(runId), cookie);
    const details = { scope: 'key', limit: LIMITS.perSession };
    expect(await refusedWith(more)).toMatchObject([429, 'rate_limited', details]);
    const signedInCookie = await signedIn();
    const looks = [
      await send('/pages/events', signedInCookie),
      await send(eventsOf(runId), signedInCookie),
    ];
    expect(looks.map(({ status }) => status)).toEqual([200, 200]);
    expect((await send('/pages/events', signedInCookie)).status).toBe(429);
    await close([...held, ...looks]);
    await placesFree(cookie, runId);
  });

  // [I110]
  it('sessions in all leave the key its places', async () => {
    const runId = await start();
    const cookies = [await opened(runId), await opened(runId), await opened(runId)];
    const pair = cookies.slice(0, 2);
    let held: Response[] = [];
    // Streams of other tests may still be closing.
    await eventually(async () => {
      await close(held);
      held = await Promise.all([...pair, ...pair].map((cookie) => send(eventsOf(runId), cookie)));
      return held.every(({ status }) => status === 200);
    }, 'all places of sessions');
    const details = { scope: 'global', limit: LIMITS.sessions };
    for (let at = 0; at < 2; at++) {
      const refused = await send(eventsOf(runId), cookies[2] ?? '');
      expect(await refusedWith(refused)).toMatchObject([429, 'rate_limited', details]);
    }
    const keys = [await byKey(runId), await byKey(runId), await byKey(runId)];
    expect(keys.map(({ status }) => status)).toEqual([200, 200, 200]);
    await close([...held, ...keys]);
    await placesFree(cookies[2] ?? '', runId);
    const told = host.lines.filter(({ message }) => message.startsWith('a stream was refused'));
    expect(told.map(({ fields }) => fields)).toEqual([{ sessions: LIMITS.sessions }]);
  });
});

describe('links of a run are revoked (architecture §10)', () => {
  // [I109]
  it('links and sessions of the run end, and those of others and of who is signed in do not', async () => {
    const [runId, beside] = [await start(), await start()];
    const [link, cookie, neighbour] = [
      ...[await linkOf(runId), await opened(runId)],
      await opened(beside),
    ] as const;
    const signedInCookie = await signedIn();
    const { status, body } = await revoke(runId);
    expect([status, body]).toEqual([200, { runId, links: 1, sessions: 1 }]);
    for (const on of [host, other]) {
      expect((await send(`/pages/runs/${runId}`, cookie, 'GET', on)).status).toBe(401);
      expect((await send(eventsOf(runId), cookie, 'GET', on)).status).toBe(401);
      const answer = `/pages/runs/${runId}/interrupts/only`;
      expect((await send(answer, cookie, 'POST', on)).status).toBe(401);
      expect((await send(link, '', 'POST', on)).status).toBe(410);
    }
    expect((await send(`/pages/runs/${beside}`, neighbour)).status).toBe(200);
    expect((await send(`/pages/runs/${runId}`, signedInCookie)).status).toBe(200);
    expect((await revoke(runId)).body).toEqual({ runId, links: 0, sessions: 0 });
    expect((await send(`/pages/runs/${runId}`, await opened(runId))).status).toBe(200);
  });

  // [I109]
  it('streams of its sessions are cut at once, and those of others go on', async () => {
    // No look at the session comes.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const [runId, beside] = [await start(), await start()];
    const stream = await send(eventsOf(runId), await opened(runId));
    const others = [
      await send(eventsOf(beside), await opened(beside)),
      await send(eventsOf(runId), await signedIn()),
      await byKey(runId),
    ];
    expect([stream, ...others].map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    let end = '';
    void endOf(stream).then((how) => (end = how));
    await revoke(runId);
    await expect.poll(() => end, { timeout: patient(5_000) }).toBe('cut');
    for (const id of [runId, beside]) await appendRows(host.stores, id, ['after']);
    for (const each of others) expect(await untilText(each, 'after')).toBe(true);
  });

  // [I109]
  it('a stream that was asked for before, and is opened after, is refused', async () => {
    const runId = await start();
    const cookie = await opened(runId);
    let open = (): void => undefined;
    gates.head = new Promise((resolve) => (open = resolve));
    const fresh = vi.spyOn(host.deps.log, 'fresh');
    const stream = send(eventsOf(runId), cookie);
    await eventually(() => fresh.mock.calls.length > 0, 'the read of the head');
    await revoke(runId);
    open();
    expect((await stream).status).toBe(401);
  });

  // [I109]
  it('a form that was begun before, and ends after, is not taken', async () => {
    const runId = await start();
    const cookie = await opened(runId);
    const form = await halfSent(`/pages/runs/${runId}/interrupts/only`, cookie, 'findSession');
    await revoke(runId);
    expect(await form.end()).toBe(401);
  });

  it('so is one of who has signed out meanwhile', async () => {
    const runId = await start();
    const cookie = await signedIn();
    const page = await (await send('/pages', cookie)).text();
    const csrf = /name="csrf" value="([^"]*)"/.exec(page)?.[1] ?? '';
    const fields = new URLSearchParams({ csrf }).toString();
    const form = await halfSent(`/pages/runs/${runId}/cancel`, cookie, 'findHostSession', fields);
    const out = { method: 'POST', body: new URLSearchParams({ csrf }), headers: { cookie } };
    const signedOut = await fetch(`${host.url}/pages/sign-out`, { ...out, redirect: 'manual' });
    expect(signedOut.status).toBe(303);
    expect(await form.end()).toBe(401);
    expect(host.temporal.calls).not.toContain('cancel');
  });

  // [I109]
  it('a stream that another process sends ends within the time between two looks', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const runId = await start();
    const stream = await send(eventsOf(runId), await opened(runId), 'GET', other);
    let ended = false;
    const end = endOf(stream).finally(() => (ended = true));
    await vi.advanceTimersByTimeAsync(SESSION_CHECK_MS);
    expect(ended).toBe(false);
    await revoke(runId);
    await vi.advanceTimersByTimeAsync(SESSION_CHECK_MS);
    await eventually(() => ended, 'the end of the stream');
    expect(await end).toBe('cut');
  });

  it('of a run that cannot be read, too; an unknown run is 404, and so is one of another tenant', async () => {
    const runId = await start();
    const cookie = await opened(runId);
    const broken = vi.spyOn(host.stores.runs, 'find').mockRejectedValue(new Error('damaged'));
    const { status, body } = await revoke(runId).finally(() => broken.mockRestore());
    expect([status, body.sessions]).toEqual([200, 1]);
    expect((await send(`/pages/runs/${runId}`, cookie)).status).toBe(401);
    const foreign = vi
      .spyOn(host.stores.runs, 'locate')
      .mockResolvedValueOnce(runRef(runId, 'another'));
    for (const id of [runId, 'run-of-nobody', '%00', 'a'.repeat(200)]) {
      const none = await revoke(id);
      expect([none.status, none.body]).toMatchObject([404, { error: 'run_not_found' }]);
    }
    foreign.mockRestore();
  });

  it('a link that two requests consume at once opens for one of them', async () => {
    const runId = await start();
    const link = await linkOf(runId);
    const { pageSessions } = host.stores;
    const consumed = await Promise.all([send(link, '', 'POST'), send(link, '', 'POST', other)]);
    expect(consumed.map(({ status }) => status).sort()).toEqual([303, 410]);
    expect(await pageSessions.revoke(runRef(runId))).toMatchObject({ links: 0 });
  });
});

describe('a log that is sent as JSON', () => {
  const json = (runId: string, headers: Record<string, string>, on = host) =>
    fetch(`${on.url}/v1/runs/${runId}/events`, {
      headers: { ...headers, accept: 'application/json' },
    });

  it('does not end like a document where its session was revoked', async () => {
    const runId = await start();
    await appendRows(host.stores, runId, ['one', 'two']);
    const cookie = await opened(runId);
    let open = (): void => undefined;
    gates.rows = new Promise((resolve) => (open = resolve));
    const answer = await json(runId, { cookie });
    expect(answer.status).toBe(200);
    await revoke(runId);
    open();
    expect(await endOf(answer)).toBe('cut');
  });

  it('is sent to its end where the process is stopped meanwhile', async () => {
    const runId = await start();
    await appendRows(host.stores, runId, ['one', 'two']);
    const third = await anotherHost();
    let open = (): void => undefined;
    gates.rows = new Promise((resolve) => (open = resolve));
    const answer = await json(runId, { authorization: `Bearer ${KEY}` }, third);
    const stopped = third.stop();
    open();
    expect(((await answer.json()) as { events: unknown[] }).events).toHaveLength(2);
    await stopped;
  });
});
