// Wrong keys in the sign-in form and as bearer: the same words whatever is wrong, counted per client, in other words beyond a
// limit, and nothing of what was typed anywhere. And how long a session lasts: over restarts, not over another key (architecture §10).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../src/facade/listen.ts';
import { WRONG_AS_BEARER, WRONG_IN_FORM as PER_ADDRESS } from '../../src/facade/wrong-keys.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const TYPED = 'owop_typed_by_somebody';
let host: FaultHost;

beforeAll(async () => {
  host = await startFaultHost({ trustedProxies: ['127.0.0.1'] });
});
afterAll(() => host.stop());

function signIn(fields: Record<string, string>, client: string, url = host.url) {
  return fetch(`${url}/pages/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams(fields).toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-forwarded-for': client,
    },
  });
}

describe('a wrong key', () => {
  it('gets the same answer whatever is wrong with it', async () => {
    const wrong = ['', TYPED, KEY.slice(0, -1), `${KEY}x`, KEY.toUpperCase(), 'ä'.repeat(1_000)];
    const answers = await Promise.all(
      [...wrong.map((key) => ({ key })), {}].map(async (fields) => {
        const answer = await signIn(fields, '10.0.0.1');
        expect(answer.headers.getSetCookie()).toEqual([]);
        return `${answer.status} ${await answer.text()}`;
      }),
    );
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toMatch(/^401 [^]*This is not the key of this host\./);
  });

  // [I56]
  it('beyond the limit of one client, attempts at once included, it is 429; the right one is taken, there too', async () => {
    const answers = await Promise.all(
      Array.from({ length: 2 * PER_ADDRESS }, () => signIn({ key: TYPED }, '10.0.0.2')),
    );
    const statuses = answers.map(({ status }) => status).sort((a, b) => a - b);
    expect(statuses).toEqual([
      ...Array.from({ length: PER_ADDRESS }, () => 401),
      ...Array.from({ length: PER_ADDRESS }, () => 429),
    ]);
    const refused = await signIn({ key: TYPED }, '10.0.0.2');
    expect([refused.status, refused.headers.getSetCookie()]).toEqual([429, []]);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(Number.isInteger(seconds) && seconds > 0 && seconds <= 15 * 60).toBe(true);
    expect(await refused.text()).toMatch(
      /Too many wrong keys\. Wait \d+ min.* before the next guess/,
    );
    for (const client of ['10.0.0.2', '10.0.0.3'])
      expect((await signIn({ key: KEY }, client)).status).toBe(303);
  });

  it('[I56] as a bearer it counts with those of the form, and the right one is taken at any time', async () => {
    const ask = (key: string, client = '10.0.0.8') =>
      fetch(`${host.url}/v1/runs`, {
        headers: { authorization: `Bearer ${key}`, 'x-forwarded-for': client },
      });
    // Who names no key, or none of a bearer, tries none.
    const none = await fetch(`${host.url}/v1/runs`, { headers: { 'x-forwarded-for': '10.0.0.8' } });
    expect(none.status).toBe(401);
    expect((await signIn({ key: TYPED }, '10.0.0.8')).status).toBe(401);
    for (let time = 1; time < WRONG_AS_BEARER; time += 1)
      expect((await ask(TYPED)).status).toBe(401);
    const refused = await ask(TYPED);
    expect(refused.status).toBe(429);
    // Nearly a window: more than the usual two seconds.
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(60);
    expect(await refused.json()).toMatchObject({
      error: 'rate_limited',
      details: { scope: 'key', reason: expect.stringContaining('at any time') as unknown },
    });
    expect((await signIn({ key: TYPED }, '10.0.0.8')).status).toBe(429);
    expect((await ask(KEY)).status).toBe(200);
    expect((await ask(TYPED, '10.0.0.9')).status).toBe(401);
    expect(host.lines.filter(({ message }) => message === 'many wrong keys')).toContainEqual({
      message: 'many wrong keys',
      fields: expect.objectContaining({ address: '10.0.0.8', count: WRONG_AS_BEARER }) as unknown,
    });
  });

  it('a right key is taken within the limit, and does not count', async () => {
    await Promise.all(
      Array.from({ length: PER_ADDRESS - 1 }, () => signIn({ key: TYPED }, '10.0.0.4')),
    );
    for (let time = 0; time < PER_ADDRESS; time += 1)
      expect((await signIn({ key: KEY }, '10.0.0.4')).status).toBe(303);
    expect((await signIn({ key: TYPED }, '10.0.0.4')).status).toBe(401);
    expect((await signIn({ key: TYPED }, '10.0.0.4')).status).toBe(429);
  });

  it('nothing that was typed stands in a page or a log, nor a link that signs in', async () => {
    const answer = await signIn({ key: TYPED, to: '/pages' }, '10.0.0.5');
    expect(await answer.text()).not.toContain(TYPED);
    await signIn({ key: KEY }, '10.0.0.5');
    const { body } = await host.api<{ url: string }>('/v1/host/openwop-temporal/sign-in-link', {
      method: 'POST',
    });
    expect((await fetch(body.url)).status).toBe(200);
    expect((await fetch(body.url, { method: 'POST', redirect: 'manual' })).status).toBe(303);
    expect((await fetch(body.url, { method: 'POST' })).status).toBe(410);
    const link = new URL(body.url).searchParams.get('link') ?? '';
    await expect
      .poll(() => host.lines.filter(({ fields }) => fields.status === 410))
      .toHaveLength(1);
    const told = JSON.stringify(host.lines);
    for (const secret of [TYPED, KEY, link]) expect(told).not.toContain(secret);
  });
});

describe('a session', () => {
  it('survives a restart of the facade and ends with another API key', async () => {
    const cookie =
      (await signIn({ key: KEY }, '10.0.0.6')).headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const visited = async (apiKey: string) => {
      const deps = { ...host.deps, config: { ...host.deps.config, apiKey } };
      const server = await listen(deps, { host: '127.0.0.1', port: 0 });
      const { status } = await fetch(`${server.url}/pages`, { headers: { cookie } });
      await server.stop();
      return status;
    };
    expect(await visited(KEY)).toBe(200);
    expect(await visited(`${KEY}_another`)).toBe(401);
    expect(await visited(KEY)).toBe(200);
  });

  it('over TLS its cookies have the prefix and Secure', async () => {
    const answer = await fetch(`${host.url}/pages/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ key: KEY }).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...{ 'x-forwarded-for': '10.0.0.7', 'x-forwarded-proto': 'https' },
      },
    });
    const cookies = answer.headers.getSetCookie();
    expect(cookies.length).toBe(2);
    for (const cookie of cookies)
      expect(cookie).toMatch(
        /^__Secure-openwop_host=[\w-]+; .*; HttpOnly; Secure; SameSite=Strict$/,
      );
    const [bare = ''] = (cookies[0] ?? '').replace('__Secure-', '').split(';');
    const headers = { cookie: bare, 'x-forwarded-proto': 'https' };
    expect((await fetch(`${host.url}/pages`, { headers })).status).toBe(401);
  });
});
