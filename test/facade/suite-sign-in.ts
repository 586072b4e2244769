// HTTP suite: who may see the host's pages: signing in by key or link, what the session opens, and signing out
// (architecture §10).
import { describe, expect, it } from 'vitest';
import { hashOf } from '../../src/facade/page-tokens.ts';
import { ended, waiting, type Suite } from './suite-parts.ts';

export function signInTests({ host, resolve }: Suite): void {
  const page = (path: string, init: RequestInit = {}) =>
    fetch(`${host().url}${path}`, { redirect: 'manual', ...init });
  const post = (path: string, fields: Record<string, string>, headers = {}) =>
    page(path, {
      method: 'POST',
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    });
  const cookieOf = (answer: Response) => answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const signIn = async () => cookieOf(await post('/pages/sign-in', { key: host().apiKey }));
  const csrfOf = async (path: string, cookie: string) =>
    /name="csrf" value="([^"]*)"/.exec(
      await (await page(path, { headers: { cookie } })).text(),
    )?.[1] ?? '';
  async function link(): Promise<string> {
    const path = '/v1/host/openwop-temporal/sign-in-link';
    const { status, body } = await host().api<{ url: string }>(path, { method: 'POST' });
    expect(status).toBe(201);
    const { pathname, search } = new URL(body.url);
    return pathname + search;
  }

  describe("the host's pages (architecture §10)", () => {
    it('a browser that asks for the bare address is led there; who takes anything gets what it always got', async () => {
      const asBrowser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
      const led = await page('/', { headers: { accept: asBrowser } });
      expect([led.status, led.headers.get('location')]).toEqual([303, '/pages']);
      for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.9']) {
        const answer = await page('/', { headers: { accept } });
        expect([answer.status, await answer.json()]).toMatchObject([
          400,
          { error: 'validation_error' },
        ]);
      }
      expect((await page('/nowhere', { headers: { accept: asBrowser } })).status).toBe(400);
    });

    it('without a session each shows the form, which leads back to it; a form that is sent is refused', async () => {
      for (const path of ['/pages', '/pages/runs/run-1?notice=%22', '/pages/?status=running']) {
        const answer = await page(path);
        expect([answer.status, answer.headers.get('content-type')]).toEqual([
          401,
          'text/html; charset=utf-8',
        ]);
        const to = /name="to" value="([^"]*)"/.exec(await answer.text())?.[1];
        expect(to).toBe(path);
      }
      expect((await post('/pages/sign-out', { csrf: 'x' })).status).toBe(401);
    });

    it('the key opens a session, whose cookies go to the pages and the streams alone', async () => {
      const form = await page('/pages/sign-in');
      expect([form.status, await form.text()]).toEqual([200, expect.stringContaining('API key')]);
      const to = '/pages/runs/run-1?notice=answered';
      const answer = await post('/pages/sign-in', { key: ` ${host().apiKey}\n`, to });
      expect([answer.status, answer.headers.get('location')]).toEqual([303, to]);
      const cookies = answer.headers.getSetCookie();
      expect(cookies.map((cookie) => /Path=([^;]*)/.exec(cookie)?.[1])).toEqual([
        '/pages',
        '/v1/runs',
      ]);
      for (const cookie of cookies) {
        expect(cookie).toMatch(/HttpOnly; SameSite=Strict$/);
        expect(cookie).not.toContain(host().apiKey);
      }
      const cookie = cookieOf(answer);
      expect((await page('/pages', { headers: { cookie } })).status).toBe(200);
      const again = await page('/pages/sign-in', { headers: { cookie } });
      expect([again.status, again.headers.get('location')]).toEqual([303, '/pages']);
    });

    it.each([
      '//evil.example',
      '/\\evil.example',
      '\\\\evil.example',
      'https://evil.example/pages/runs/run-1',
      '/pages/..//evil.example',
      '/pages/%2e%2e//evil.example',
      '\t//evil.example',
      'javascript:alert(1)',
      '/v1/runs',
      '/pagesx',
      '/pages/sign-out',
      `/pages/${'x'.repeat(3_000)}`,
      '',
    ])('it leads to pages of this host alone: %j is not one', async (to) => {
      const answer = await post('/pages/sign-in', { key: host().apiKey, to });
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/pages']);
    });

    it('a form that another site sends signs in nobody', async () => {
      for (const origin of ['https://evil.example', 'null']) {
        const answer = await post('/pages/sign-in', { key: host().apiKey }, { origin });
        expect([answer.status, answer.headers.getSetCookie()]).toEqual([403, []]);
        const byLink = await post(await link(), {}, { origin });
        expect([byLink.status, byLink.headers.getSetCookie()]).toEqual([403, []]);
      }
    });

    it('a link signs in once; to look at it consumes nothing', async () => {
      const address = await link();
      const button = await page(address);
      expect([button.status, button.headers.getSetCookie()]).toEqual([200, []]);
      const answer = await post(address, {});
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/pages']);
      const cookie = cookieOf(answer);
      expect((await page('/pages', { headers: { cookie } })).status).toBe(200);
      for (const bad of [address, address.replace(/link=.*/, 'link=nonsense')])
        expect((await post(bad, {})).status).toBe(410);
    });

    it('a link needs the key: neither a stranger nor who is signed in makes one', async () => {
      const path = '/v1/host/openwop-temporal/sign-in-link';
      const cookie = await signIn();
      for (const given of ['', cookie])
        expect((await post(path, {}, { cookie: given })).status).toBe(401);
    });

    it('a session opens the page and the events of each run of its tenant, by GET, and no other route', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const cookie = await signIn();
      const headers = { cookie, accept: 'application/json' };
      const shown = await page(`/pages/runs/${runId}`, { headers });
      const html = await shown.text();
      expect([shown.status, html]).toEqual([200, expect.stringContaining('href="/pages"')]);
      const field = (name: string) =>
        new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '';
      const fields = { interruptId: field('interruptId'), action: 'accept' };
      const to = `/pages/runs/${runId}/interrupts/gate`;
      expect((await post(to, { ...fields, csrf: 'forged' }, { cookie })).status).toBe(403);
      const answered = await post(to, { ...fields, csrf: field('csrf') }, { cookie });
      expect(answered.status).toBe(303);
      await host().waitFor(runId, ended);
      expect((await page(`/v1/runs/${runId}/events`, { headers })).status).toBe(200);
      for (const path of [
        `/v1/runs/${runId}`,
        `/v1/runs/${runId}/events/poll`,
        '/v1/runs',
        '/v1/host/openwop-temporal/workflows',
        '/v1/anything',
      ])
        expect([path, (await page(path, { headers })).status]).toEqual([path, 401]);
      for (const path of [`/v1/runs/${runId}/cancel`, '/v1/runs', `/v1/runs/${runId}/events`])
        expect([path, (await page(path, { method: 'POST', headers })).status]).toEqual([path, 401]);
    });

    it('a session of another tenant opens no run of this one', async () => {
      const runId = await host().startRun({ workflowId: 'noop' });
      await host().waitFor(runId, ended);
      const cookie = await signIn();
      const token = cookie.split('=')[1] ?? '';
      const { pageSessions } = host().stores;
      await pageSessions.endHostSession(hashOf(token));
      await pageSessions.createHostSession('other', {
        ...{ sessionHash: hashOf(token), lifeMs: 60_000 },
      });
      const headers = { cookie };
      expect((await page('/pages', { headers })).status).toBe(200);
      for (const path of [`/pages/runs/${runId}`, `/v1/runs/${runId}/events`])
        expect([path, (await page(path, { headers })).status]).toEqual([path, 404]);
      const csrf = await csrfOf('/pages', cookie);
      const answer = { csrf, interruptId: 'int-1', action: 'accept' };
      const sent = await post(`/pages/runs/${runId}/interrupts/gate`, answer, { cookie });
      expect(sent.status).toBe(404);
      // With a link of its own the run is seen, but the other tenant's pages are not offered there.
      const { body } = await host().api<{ url: string }>(
        `/v1/host/openwop-temporal/runs/${runId}/page-link`,
        { method: 'POST' },
      );
      const { pathname, search } = new URL(body.url);
      const both = `${cookie}; ${cookieOf(await page(pathname + search, { method: 'POST' }))}`;
      const shown = await page(pathname, { headers: { cookie: both } });
      expect(shown.status).toBe(200);
      expect(await shown.text()).not.toContain('href="/pages"');
    });

    it('who has a link to one run sees no way to the others until signed in', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const { body } = await host().api<{ url: string }>(
        `/v1/host/openwop-temporal/runs/${runId}/page-link`,
        { method: 'POST' },
      );
      const { pathname, search } = new URL(body.url);
      const ofRun = cookieOf(await page(pathname + search, { method: 'POST' }));
      const alone = await (await page(pathname, { headers: { cookie: ofRun } })).text();
      expect(alone).not.toContain('href="/pages"');
      expect((await page('/pages', { headers: { cookie: ofRun } })).status).toBe(401);
      const both = { cookie: `${ofRun}; ${await signIn()}` };
      const shown = await (await page(pathname, { headers: both })).text();
      expect(shown).toContain('href="/pages"');
      const events = `/v1/runs/${runId}/events`;
      await resolve(runId, 'gate', { action: 'accept' });
      await host().waitFor(runId, ended);
      expect((await page(events, { headers: both })).status).toBe(200);
    });

    it('signing out ends the session, by its own form only', async () => {
      const cookie = await signIn();
      const csrf = await csrfOf('/pages', cookie);
      const send = (given: string, headers = {}) =>
        post('/pages/sign-out', { csrf: given }, { cookie, ...headers });
      expect((await send('forged')).status).toBe(403);
      expect((await send(csrf, { origin: 'https://evil.example' })).status).toBe(403);
      expect((await page('/pages', { headers: { cookie } })).status).toBe(200);
      const answer = await send(csrf);
      expect(answer.status).toBe(303);
      const cleared = answer.headers.getSetCookie();
      expect(cleared.length).toBe(2);
      for (const each of cleared) expect(each).toMatch(/^openwop_host=;.*Expires=Thu, 01 Jan 1970/);
      const told = await page(answer.headers.get('location') ?? '');
      expect(await told.text()).toContain('You are signed out.');
      expect((await page('/pages', { headers: { cookie } })).status).toBe(401);
      expect((await send(csrf)).status).toBe(401);
    });

    it('a session ends at its time', async () => {
      const cookie = await signIn();
      const token = cookie.split('=')[1] ?? '';
      const { pageSessions } = host().stores;
      await pageSessions.endHostSession(hashOf(token));
      await pageSessions.createHostSession('default', {
        ...{ sessionHash: hashOf(token), lifeMs: -1 },
      });
      expect((await page('/pages', { headers: { cookie } })).status).toBe(401);
    });
  });
}
