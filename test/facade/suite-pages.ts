// HTTP suite: the run's page, its one-time link, its session and its form (architecture §10).
import { describe, expect, it } from 'vitest';
import { ended, nextQuestion, waiting, type Suite } from './suite-parts.ts';
import { runRef } from '../support/run-ref.ts';

export function pageTests({ host, resolve }: Suite): void {
  const page = (path: string, init: RequestInit = {}) =>
    fetch(`${host().url}${path}`, { redirect: 'manual', ...init });
  const form = (fields: Record<string, string>) => ({
    method: 'POST',
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  /** Opens a run's page by a fresh link: its path and the cookie. */
  async function open(runId: string): Promise<{ cookie: string; html: string; link: string }> {
    const { status, body } = await host().api<{ url: string; expiresAt: string }>(
      `/v1/host/openwop-temporal/runs/${runId}/page-link`,
      { method: 'POST' },
    );
    expect(status).toBe(201);
    const { pathname, search } = new URL(body.url);
    const button = await page(pathname + search);
    expect([button.status, button.headers.get('set-cookie')]).toEqual([200, null]);
    const consumed = await page(pathname + search, { method: 'POST' });
    expect([consumed.status, consumed.headers.get('location')]).toEqual([303, pathname]);
    const cookies = consumed.headers.getSetCookie();
    expect(cookies.length).toBe(2);
    for (const cookie of cookies) expect(cookie).toMatch(/HttpOnly; SameSite=Strict$/);
    const cookie = cookies[0]?.split(';')[0] ?? '';
    return {
      cookie,
      html: await (await page(pathname, { headers: { cookie } })).text(),
      link: pathname + search,
    };
  }
  describe("the run's page (architecture §10)", () => {
    it('opens once by its link; used, unknown or foreign links are 410', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const { html, link, cookie } = await open(runId);
      expect(html).toContain(runId);
      expect(html).toContain('Ship it?');
      for (const bad of [link, link.replace(/link=.*/, 'link=nonsense'), `/pages/runs/${runId}`]) {
        const answer = await page(bad, { method: 'POST' });
        expect([answer.status, answer.headers.get('content-type')]).toEqual([
          410,
          'text/html; charset=utf-8',
        ]);
      }
      expect((await page(`/pages/runs/${runId}`)).status).toBe(401);
      const csp = (await page(`/pages/runs/${runId}`, { headers: { cookie } })).headers.get(
        'content-security-policy',
      );
      expect(csp).toContain("default-src 'none'");
      expect(csp).not.toContain('unsafe');
      await resolve(runId, 'gate', { action: 'accept' });
    });

    it('what it loads is answered to anybody: its style and its script, module by module', async () => {
      const runId = await host().startRun({ workflowId: 'noop' });
      await host().waitFor(runId, ended);
      const { html } = await open(runId);
      // A link to another page (`<a>`) is followed by whom it is for; it is not loaded.
      const loading = /<(?:link|script|img)\b[^>]*?\s(?:src|href)="(\/[^"]*)"/g;
      const loaded = [...html.matchAll(loading)].map(([, path]) => path ?? '');
      expect(loaded).toEqual(expect.arrayContaining(['/pages/run.css', '/pages/live.js']));
      for (const path of loaded) {
        const { status, headers } = await page(path);
        const type = path.endsWith('.css') ? 'text/css' : 'text/javascript';
        expect([path, status, headers.get('content-type')]).toEqual([
          ...[path, 200, `${type}; charset=utf-8`],
        ]);
        expect(headers.get('content-security-policy')).toContain("script-src 'self'");
      }
    });

    it('its cookie opens the page and the events of that run by GET, and no other route', async () => {
      const runId = await host().startRun({ workflowId: 'noop' });
      const other = await host().startRun({ workflowId: 'noop' });
      await host().waitFor(runId, ended);
      const { cookie } = await open(runId);
      const headers = { cookie, accept: 'application/json' };
      expect((await page(`/v1/runs/${runId}/events`, { headers })).status).toBe(200);
      for (const path of [
        `/v1/runs/${runId}`,
        `/v1/runs/${runId}/events/poll`,
        `/v1/runs/${other}/events`,
        '/v1/runs',
        `/pages/runs/${other}`,
      ]) {
        expect([path, (await page(path, { headers })).status]).toEqual([path, 401]);
      }
      for (const path of [
        `/v1/runs/${runId}/cancel`,
        `/v1/runs/${runId}/interrupts/gate`,
        '/v1/runs',
      ]) {
        expect([path, (await page(path, { method: 'POST', headers })).status]).toEqual([path, 401]);
      }
    });

    it('a click reaches the question that the card shows, also when the next one opens while it is read', async () => {
      const runId = await host().startRun({ workflowId: 'asking-again' });
      const first = await nextQuestion(host(), runId);
      const { cookie, html } = await open(runId);
      const csrf = /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? '';
      const { log } = host();
      const fresh = log.fresh.bind(log);
      /** A click whose first read of the log is `read`. */
      const click = async (interruptId: string, read: typeof fresh) => {
        log.fresh = (asked) => {
          log.fresh = fresh;
          return read(asked);
        };
        const fields = form({ csrf, interruptId, action: 'accept' });
        const headers = { ...fields.headers, cookie };
        const path = `/pages/runs/${runId}/interrupts/gate`;
        const answer = await page(path, { ...fields, headers });
        // A form sends no key: nothing is said of one.
        expect(await answer.text()).not.toContain('Idempotency-Key');
        return answer.status;
      };
      const before = await fresh(runRef(runId));
      // The read stalls: meanwhile somebody else answers, and the run asks again.
      const stalled = await click(first, async () => {
        await resolve(runId, 'gate', { action: 'accept' });
        await nextQuestion(host(), runId, first);
        return before;
      });
      expect(stalled).toBe(409);
      const second = await nextQuestion(host(), runId);
      expect(second).not.toBe(first);
      // Temporal is away: what is stored is no ground to say that a question is answered.
      expect(await click(second, async () => ({ ...before, stale: true }))).toBe(503);
      expect(await click(second, fresh)).toBe(303);
      await nextQuestion(host(), runId, second);
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      await host().waitFor(runId, ended);
    });

    it('answers without JavaScript, with its CSRF token only, and once', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const { cookie, html } = await open(runId);
      const field = (name: string) =>
        new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '';
      const fields = { csrf: field('csrf'), interruptId: field('interruptId'), action: 'accept' };
      const path = `/pages/runs/${runId}/interrupts/gate`;
      const send = (changed: Record<string, string>, more: Record<string, string> = { cookie }) => {
        const request = form({ ...fields, ...changed });
        return page(path, { ...request, headers: { ...request.headers, ...more } });
      };
      expect((await send({}, {})).status).toBe(401);
      expect((await send({ csrf: 'forged' })).status).toBe(403);
      expect((await send({}, { cookie, origin: 'https://evil.example' })).status).toBe(403);
      expect((await send({ action: 'dance' })).status).toBe(400);
      expect((await send({ interruptId: 'int-older' })).status).toBe(404);
      const answered = await send({});
      expect([answered.status, answered.headers.get('location')]).toEqual([
        303,
        `/pages/runs/${runId}?notice=answered`,
      ]);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      const again = await send({ action: 'reject' });
      expect(again.status).toBe(409);
      expect(await again.text()).toContain('You have answered this already.');
    });

    it('has a button for each answer, tells what follows from it, and calls a no that is taken up declined', async () => {
      const runId = await host().startRun({ workflowId: 'payment' });
      const interruptId = await nextQuestion(host(), runId);
      const { cookie, html } = await open(runId);
      expect(
        html.match(/(?<=<button class="(?:primary|danger)"[^>]*>|Then:<\/span> <ul><li><b>)[^<]*/g),
      ).toEqual(['Pay it', 'pay', 'Do not pay', 'tell']);
      const csrf = /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? '';
      const fields = form({ csrf, interruptId, action: 'deny', reason: 'Too late.' });
      const path = `/pages/runs/${runId}`;
      const headers = { ...fields.headers, cookie };
      expect((await page(`${path}/interrupts/gate`, { ...fields, headers })).status).toBe(303);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      const after = await (await page(path, { headers: { cookie } })).text();
      expect(after).toContain('<b>declined</b>');
      expect(after).not.toContain('<b>failed</b>');
    });

    // [I94]
    it('interrupt-profiles.md §quorum: who votes, changes the vote and changes it back has voted so', async () => {
      const runId = await host().startRun({ workflowId: 'quorum-of-three' });
      const interruptId = await nextQuestion(host(), runId);
      const { cookie, html: first } = await open(runId);
      const path = `/pages/runs/${runId}`;
      const shown = async () => (await page(path, { headers: { cookie } })).text();
      const field = (html: string, name: string) =>
        new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '';
      const vote = async (html: string, action: string, reason: string) => {
        const csrf = field(html, 'csrf');
        const fields = form({ csrf, interruptId, heard: field(html, 'heard'), action, reason });
        const headers = { ...fields.headers, cookie };
        return (await page(`${path}/interrupts/gate`, { ...fields, headers })).status;
      };
      const votes = async () => {
        const { body } = await host().api<{ interrupt: { votes: { reason?: string }[] } }>(
          `/v1/runs/${runId}`,
        );
        return body.interrupt.votes.map(({ reason }) => reason);
      };
      expect(await vote(first, 'reject', 'Too dear.')).toBe(303);
      expect(await vote(first, 'reject', 'Too dear.')).toBe(303);
      const second = await shown();
      expect(second).toContain('you have voted so already: 1 of 2 against it.');
      expect(second).toContain('Too dear.');
      expect(await vote(second, 'accept', '')).toBe(303);
      expect(await votes()).toEqual([undefined]);
      expect(await vote(await shown(), 'reject', 'Too dear.')).toBe(303);
      expect(await votes()).toEqual(['Too dear.']);
      expect(await vote(second, 'accept', '')).toBe(400);
      expect(await votes()).toEqual(['Too dear.']);
      expect(await shown()).toContain('your vote is counted: 1 of 3 for it.');
      await resolve(runId, 'gate', { action: 'reject', voter: 'bob' });
      expect((await host().waitFor(runId, ended)).status).toBe('failed');
    });

    it.each([
      ['approval', 'by somebody else', 409, 'Somebody else has answered this.'],
      ['approval', 'by a cancel', 422, 'The run was cancelled'],
      ['expiring-later', 'by its deadline', 410, 'nobody answered in time'],
    ])(
      'of a question that is over (%s, %s) the form says how',
      async (workflowId, how, status, text) => {
        const runId = await host().startRun({ workflowId });
        const interruptId = await nextQuestion(host(), runId);
        const { cookie, html } = await open(runId);
        const csrf = /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? '';
        if (how === 'by somebody else') await resolve(runId, 'gate', { action: 'accept' });
        if (how === 'by a cancel') await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
        await host().waitFor(runId, ended);
        const fields = form({ csrf, interruptId, action: 'accept' });
        const headers = { ...fields.headers, cookie };
        const answer = await page(`/pages/runs/${runId}/interrupts/gate`, { ...fields, headers });
        expect(answer.status).toBe(status);
        expect(await answer.text()).toContain(text);
      },
    );
  });
}
