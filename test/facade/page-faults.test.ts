// What the pages must not do when somebody asks in another way than they offer (architecture §10): tell a sensitive value
// by another form, go on for who has signed out, answer as the API does.
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { chain, node } from '../support/definitions.ts';
import { appendRows, eventually } from '../contract/given.ts';
import { catalogOf, DEFINITIONS, KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const SECRET = 'hush-9876';
const FORM = 'form=AAAAAAAAAAAAAAAAAAAAAA';
const AGENT = {
  pinned: { agentId: 'example.clerk' },
  manifest: { agentId: 'example.clerk', persona: 'Clerk', modelClass: 'general' },
  degraded: [],
} as never;
/** How often the session of an open stream is looked up, in ms. */
const SESSION_CHECK_MS = 30_000;

let host: FaultHost;

beforeAll(async () => {
  const pin = { name: 'pin', type: 'string' } as const;
  const definitions = [
    ...DEFINITIONS,
    chain('secretive', [node('only', 'core.noop')], {
      variables: [
        { ...pin, sensitive: true },
        { name: 'note', type: 'string' },
      ],
    }),
    chain('open', [node('only', 'core.noop')], { variables: [pin] }),
  ];
  host = await startFaultHost({}, () => ({ catalog: catalogOf(definitions, [AGENT]) }));
});
afterAll(() => host.stop());
afterEach(() => vi.useRealTimers());

const send = (path: string, cookie: string, init: RequestInit = {}) =>
  fetch(`${host.url}${path}`, { redirect: 'manual', ...init, headers: { cookie } });
const post = (path: string, cookie: string, fields: Record<string, string>) =>
  send(path, cookie, { method: 'POST', body: new URLSearchParams(fields) });
async function signIn(): Promise<string> {
  const answer = await post('/pages/sign-in', '', { key: KEY });
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}
const csrfOf = async (cookie: string) =>
  /name="csrf" value="([^"]*)"/.exec(await (await send('/pages', cookie)).text())?.[1] ?? '';
async function signOut(cookie: string): Promise<void> {
  const answer = await post('/pages/sign-out', cookie, { csrf: await csrfOf(cookie) });
  expect(answer.status).toBe(303);
}
const start = async (body: object) =>
  (await host.api<{ runId: string }>('/v1/runs', { body })).body.runId;

describe('architecture §10: the pages, asked otherwise', () => {
  it('a form in which a field is repeated is refused', async () => {
    const cookie = await signIn();
    const csrf = await csrfOf(cookie);
    const body = new URLSearchParams([
      ['csrf', csrf],
      ['csrf', csrf],
    ]);
    const twice = await send('/pages/sign-out', cookie, { method: 'POST', body });
    expect(twice.status).toBe(400);
    expect((await send('/pages', cookie)).status).toBe(200);
    await signOut(cookie);
  });

  it.each(['start/secretive', 'start/open', 'start-agent/example.clerk'])(
    'a sensitive value of a run is in no form that is filled as the run was: /pages/%s',
    async (form) => {
      const runId = await start({ workflowId: 'secretive', inputs: { pin: SECRET, note: 'seen' } });
      const page = await send(`/pages/${form}?${FORM}&from=${runId}`, await signIn());
      const html = await page.text();
      expect(page.status).toBe(200);
      expect(html).not.toContain(SECRET);
      expect(html).toContain('does not show this value');
    },
  );

  it('a form of an earlier session says why it is not taken, and what to do', async () => {
    const [earlier, now] = [await signIn(), await signIn()];
    const answer = await post(`/pages/start/noop?${FORM}`, now, { csrf: await csrfOf(earlier) });
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('you signed in again since it was shown');
  });

  it.each(['%ff%fe', '%ed%a0%80', '%', '\xff'])(
    'a form whose bytes are no text starts nothing: another value than was sent would be taken (%j)',
    async (bytes) => {
      const cookie = await signIn();
      const form = `csrf=${await csrfOf(cookie)}&input.pin=${bytes}`;
      const answer = await fetch(`${host.url}/pages/start/open?${FORM}`, {
        ...{ method: 'POST', redirect: 'manual', body: Buffer.from(form, 'latin1') },
        headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
      });
      expect(answer.status).toBe(400);
      expect(host.temporal.started.map(({ definition }) => definition.id)).not.toContain('open');
    },
  );

  it.each(['OPTIONS', 'PUT', 'POST'])(
    'the bare address is a page for who reads alone: %s gets what it always got',
    async (method) => {
      const headers = { accept: 'text/html' };
      const answer = await fetch(`${host.url}/`, { method, redirect: 'manual', headers });
      expect([answer.status, await answer.json()]).toMatchObject([
        400,
        { error: 'validation_error' },
      ]);
    },
  );

  it('a link that signs in is used up in one step with the session that it opens', async () => {
    const path = '/v1/host/openwop-temporal/sign-in-link';
    const { url } = (await host.api<{ url: string }>(path, { method: 'POST' })).body;
    const { pageSessions } = host.stores;
    const broken = vi
      .spyOn(pageSessions, 'createHostSession')
      .mockRejectedValue(new HostError('service_unavailable'));
    const { pathname, search } = new URL(url);
    const first = await post(pathname + search, '', {});
    broken.mockRestore();
    const cookies = first.status === 303 ? first : await post(pathname + search, '', {});
    expect(cookies.headers.getSetCookie().length).toBeGreaterThan(0);
  });

  it('an address that is no text is refused as a page', async () => {
    const answer = await send('/pages/runs/%E0%A4%A', await signIn());
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      400,
      'text/html; charset=utf-8',
    ]);
    const api = await host.api('/v1/runs/%E0%A4%A');
    expect([api.status, api.headers.get('content-type')]).toEqual([
      400,
      'application/json; charset=utf-8',
    ]);
  });

  it('the stream of changes ends when its visitor has signed out', async () => {
    const cookie = await signIn();
    const runId = await start({ workflowId: 'noop' });
    const stream = await send('/pages/events', cookie);
    expect(stream.status).toBe(200);
    await signOut(cookie);
    const read = stream.text();
    await appendRows(host.stores, runId, ['after sign-out']);
    expect(await read).toMatch(/^(event: changed\ndata: \{\}\n\n)*$/);
    expect((await send('/pages/events', cookie)).status).toBe(401);
  });

  it("a run's stream ends when its visitor has signed out, and tells nothing more", async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const cookie = await signIn();
    const runId = await start({ workflowId: 'noop' });
    await appendRows(host.stores, runId, ['before']);
    const stream = await fetch(`${host.url}/v1/runs/${runId}/events?streamMode=debug`, {
      headers: { cookie, accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    let ended = false;
    const read = stream.text().then(
      () => (ended = true),
      () => (ended = true),
    );
    await vi.advanceTimersByTimeAsync(SESSION_CHECK_MS);
    await appendRows(host.stores, runId, ['while signed in']);
    expect(ended).toBe(false);
    await signOut(cookie);
    await vi.advanceTimersByTimeAsync(SESSION_CHECK_MS);
    await eventually(() => ended, 'the end of the stream');
    await read;
  });
});
