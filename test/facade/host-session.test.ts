// What a session of the host's pages may do (architecture §10), by HTTP over the played engine: a form starts one run, and
// nothing of another tenant's is seen or changed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashOf } from '../../src/facade/page-tokens.ts';
import { withClockOff } from '../support/wall-clock.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const LIFE_MS = 60_000;
let host: FaultHost;

beforeAll(async () => {
  host = await startFaultHost();
});
afterAll(() => host.stop());

function send(path: string, cookie: string, fields?: Record<string, string>) {
  const form = new URLSearchParams(fields).toString();
  const type = 'application/x-www-form-urlencoded';
  const sent = fields ? { method: 'POST', body: form } : {};
  const headers = { cookie, ...(fields ? { 'content-type': type } : {}) };
  return fetch(`${host.url}${path}`, { redirect: 'manual', ...sent, headers });
}

async function signedIn(): Promise<string> {
  const answer = await send('/pages/sign-in', '', { key: KEY });
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

const csrfIn = (html: string) => /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? '';

describe('a form', () => {
  // [I53]
  it('starts one run, however many clicks come and whatever the answer to the first became', async () => {
    const cookie = await signedIn();
    const address = (await send('/pages/start/noop', cookie)).headers.get('location') ?? '';
    const html = await (await send(address, cookie)).text();
    const click = () => send(address, cookie, { csrf: csrfIn(html) });
    const before = host.temporal.started.length;
    const clicks = await Promise.all([click(), click(), click()]);
    const places = [...clicks, await click()].map((answer) =>
      (answer.headers.get('location') ?? '').replace(/\?.*/, ''),
    );
    expect(new Set(places).size).toBe(1);
    expect(places[0]).toMatch(/^\/pages\/runs\/run-/);
    expect(host.temporal.started.length).toBe(before + 1);
  });
});

describe('a session', () => {
  // [I55]
  it('of another tenant sees no run of this one, neither in the list nor by its address, and changes none', async () => {
    const { body } = await host.api<{ runId: string }>('/v1/runs', {
      body: { workflowId: 'noop' },
    });
    const { runId } = body;
    const cookie = await signedIn();
    const token = cookie.split('=')[1] ?? '';
    const mine = await (await send('/pages', cookie)).text();
    expect(mine).toContain(runId);
    await host.stores.pageSessions.endHostSession(hashOf(token));
    await host.stores.pageSessions.createHostSession('other', {
      ...{ sessionHash: hashOf(token), lifeMs: LIFE_MS },
    });
    const theirs = await (await send('/pages', cookie)).text();
    expect(theirs).toContain('There are no runs yet');
    expect(theirs).not.toContain(runId);
    const read = [
      `/pages/runs/${runId}`,
      `/v1/runs/${runId}/events`,
      `/pages/start/noop?from=${runId}`,
    ];
    const [page, events, like] = await Promise.all(read.map((path) => send(path, cookie)));
    expect([page?.status, events?.status]).toEqual([404, 404]);
    const form = await send(like?.headers.get('location') ?? '', cookie);
    expect(form.status).toBe(404);
    const csrf = csrfIn(theirs);
    const answer = { csrf, interruptId: 'int-1', action: 'accept' };
    for (const [path, fields] of [
      ['pause', { csrf }],
      ['resume', { csrf }],
      ['cancel', { csrf, reason: 'mine now' }],
      ['interrupts/only', answer],
    ] as const)
      expect([path, (await send(`/pages/runs/${runId}/${path}`, cookie, fields)).status]).toEqual([
        path,
        404,
      ]);
    expect(host.temporal.calls.filter((call) => call !== 'start')).toEqual([]);
  });
});

describe('architecture §10 a process whose clock is off', () => {
  const EXTENSION = '/v1/host/openwop-temporal';
  const HOUR_MS = 3_600_000;
  const linkBy = async (path: string): Promise<string> => {
    const { body } = await host.api<{ url: string }>(path, { method: 'POST' });
    const { pathname, search } = new URL(body.url);
    return pathname + search;
  };
  /** The cookie of the session that the link opens. */
  const opened = async (link: string): Promise<string> => {
    const answer = await fetch(`${host.url}${link}`, { method: 'POST', redirect: 'manual' });
    return answer.headers.getSetCookie()[0]?.split(';')[0] ?? `none: ${answer.status}`;
  };

  it.each([-HOUR_MS, HOUR_MS])(
    'by %i ms makes links that others open, and opens what others made',
    async (offMs) => {
      const { body } = await host.api<{ runId: string }>('/v1/runs', {
        body: { workflowId: 'noop' },
      });
      for (const [path, page] of [
        [`${EXTENSION}/sign-in-link`, '/pages'],
        [`${EXTENSION}/runs/${body.runId}/page-link`, `/pages/runs/${body.runId}`],
      ] as const) {
        const theirs = await withClockOff(offMs, () => linkBy(path));
        // Clears away what is over.
        const ours = await linkBy(path);
        const cookies = [
          await opened(theirs),
          await withClockOff(offMs, () => opened(ours)),
          await opened(await linkBy(path)),
        ];
        for (const cookie of cookies) {
          expect((await send(page, cookie)).status).toBe(200);
          const seen = await withClockOff(13 * offMs, () => send(page, cookie));
          expect(seen.status).toBe(200);
        }
      }
    },
  );
});
