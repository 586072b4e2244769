// A run's page with the runs below it: threads by call, live, their questions, and why each thing happened, by a click
// (seed 003 §1.2, §3.4), on a host of its own with examples/team.
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { ended } from '../facade/suite-parts.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { signedIn } from '../support/pictures.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
let host: TestHost;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: string[];

beforeAll(async () => {
  host = await startTestHost({
    fixturesDir: at('examples/team/definitions'),
    agentsDir: at('examples/team/agents'),
  });
});
afterAll(() => host.stop());

const startResearch = () => host.startRun({ workflowId: 'research' });
async function answer(runId: string): Promise<void> {
  await host.api(`/v1/runs/${runId}/interrupts/agent`, {
    body: { resumeValue: { action: 'accept' } },
  });
}

describe.skipIf(!chromiumPath)('[chromium] the page of a run that started others', () => {
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    page = await signedIn(host, context);
    complaints = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
  });
  afterEach(() => context.close());

  /** Both researchers ask a person, each in a thread below its call. */
  async function untilAsked(runId: string): Promise<string[]> {
    await page.goto(`${host.url}/pages/runs/${runId}`);
    const questions = page.locator('.item.tool > .thread .item.question.waiting');
    await expect.poll(() => questions.count()).toBe(2);
    const threads = await page.locator('.item.tool > .thread').all();
    return Promise.all(threads.map(async (each) => (await each.getAttribute('data-run')) ?? ''));
  }

  const idsOf = (selector: string) =>
    page.evaluate<string[]>(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => each.id)`,
    );

  it('each stands below the call that started it, and goes on live to its end', async () => {
    const runId = await startResearch();
    const children = await untilAsked(runId);
    expect(new Set(children).size).toBe(2);
    // What they ask stands on the page of who waits for them, with the way to where it is answered.
    await expect.poll(() => page.locator('#questions .question').count()).toBe(2);
    const ways = await page.getByRole('link', { name: 'Answer on its page' }).all();
    const hrefs = await Promise.all(ways.map((way) => way.getAttribute('href')));
    expect(hrefs.sort()).toEqual(children.map((id) => `/pages/runs/${id}`).sort());
    expect(await graveFindings(page)).toEqual([]);
    if (process.env.OPENWOP_TEST_PICTURES)
      await page.screenshot({
        path: `${process.env.OPENWOP_TEST_PICTURES}/threads.png`,
        fullPage: true,
      });
    for (const child of children) await answer(child);
    const ends = page.locator('.thread .item.end.done');
    await expect.poll(() => ends.count()).toBe(2);
    await page.locator('#timeline > .item.end.done').waitFor();
    await expect.poll(() => page.locator('#questions .question').count()).toBe(0);
    const ids = await idsOf('[id]');
    expect(ids.filter((id, place) => ids.indexOf(id) !== place)).toEqual([]);
    expect(await page.locator('.thread[data-running]').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('a thread that was closed is not opened again, and goes on where it stood when a reader opens it', async () => {
    const runId = await startResearch();
    const children = await untilAsked(runId);
    const thread = page.locator(`.thread[data-run="${children[0]}"]`);
    const before = await thread.locator('.item').count();
    await thread.locator('> summary').click();
    for (const child of children) await answer(child);
    await page.locator('#timeline > .item.end.done').waitFor();
    expect(await thread.getAttribute('open')).toBeNull();
    expect(await thread.locator('.item').count()).toBe(before);
    await thread.locator('> summary').click();
    await thread.locator('.item.end.done').waitFor();
    const keys = await idsOf(`.thread[data-run="${children[0]}"] .item`);
    expect(keys.length).toBeGreaterThan(before);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('a run that has ended opens its threads when they are asked for', async () => {
    const runId = await startResearch();
    for (const child of await untilAsked(runId)) await answer(child);
    await host.waitFor(runId, ended);
    await page.reload();
    await page.locator('#timeline > .item.end.done').waitFor();
    expect(await page.locator('.thread[open]').count()).toBe(0);
    await page.locator('.thread > summary').first().click();
    await page.locator('.thread .item.end.done').waitFor();
    expect(await page.locator('.thread .item.end.done').count()).toBe(1);
  });

  it('why: the chain of causes stands below the event, and a click leads to where each is shown', async () => {
    const runId = await startResearch();
    const [child = ''] = await untilAsked(runId);
    const first = page.locator(`.thread[data-run="${child}"] .item.run`);
    await first.locator('.why').click();
    const causes = first.locator('> .causes');
    await causes.waitFor();
    const types = await causes.locator('li code').allTextContents();
    expect(types[0]).toBe('agent.toolCalled');
    expect(types.at(-1)).toBe('run.started');
    expect(await causes.textContent()).toContain('Here it began');
    await causes.locator('li a').first().click();
    const marked = page.locator('.item.cause');
    expect(await marked.count()).toBe(1);
    expect(await marked.locator(`> .thread[data-run="${child}"]`).count()).toBe(1);
    expect(new URL(page.url()).pathname).toBe(`/pages/runs/${runId}`);
    await first.locator('.why').click();
    expect(await causes.count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.goto(`${host.url}/pages/runs/${child}`);
    await page.locator('.item.run .why').waitFor();
    await context.route('**/*.js', (route) => route.abort());
    await page.reload();
    await page.locator('.item.run .why').click();
    await page.getByRole('heading', { name: 'Why?' }).waitFor();
    expect(await graveFindings(page)).toEqual([]);
  });
});

describe('the page of an event’s causes', () => {
  async function linked(runId: string): Promise<string> {
    const { body } = await host.api<{ url: string }>(
      `/v1/host/openwop-temporal/runs/${runId}/page-link`,
      { body: {} },
    );
    const opened = await fetch(body.url, { method: 'POST', redirect: 'manual' });
    return opened.headers
      .getSetCookie()
      .map((each) => each.split(';')[0] ?? '')
      .join('; ');
  }

  it('a one-time link tells of its run alone: where the chain leaves it, the page says so', async () => {
    const runId = await startResearch();
    let child = '';
    await until(async () => {
      const path = `/v1/host/openwop-temporal/runs/${runId}/children`;
      const { body } = await host.api<{ runs: { runId: string }[] }>(path);
      child = body.runs[0]?.runId ?? '';
      return child !== '';
    }, 'the run has a child');
    await host.waitFor(child, ({ status }) => status === 'waiting-approval');
    const { body } = await host.api<{ events: { eventId: string }[] }>(
      `/v1/runs/${child}/events/poll`,
    );
    const cookie = await linked(child);
    const ask = (of: string, eventId: string) =>
      fetch(`${host.url}/pages/runs/${of}/events/${encodeURIComponent(eventId)}/causes`, {
        headers: { cookie },
      });
    const eventId = body.events.at(-1)?.eventId ?? '';
    const shown = await ask(child, eventId);
    expect(shown.status).toBe(200);
    const html = await shown.text();
    expect(html).toContain('It follows from another run, which this link does not show.');
    expect(html).not.toContain(runId);
    expect((await ask(runId, eventId)).status).toBe(401);
    for (const unknown of ['evt-none', 'ü', 'x'.repeat(2_000)])
      expect((await ask(child, unknown)).status).toBe(404);
    // Nor does it say what another run asks.
    const parents = await fetch(`${host.url}/pages/runs/${runId}`, {
      headers: { cookie: await linked(runId) },
    });
    expect(parents.status).toBe(200);
    expect(await parents.text()).not.toContain('Answer on its page');
  });
});
