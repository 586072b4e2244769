// A rehearsal in a real browser, with and without JavaScript (architecture §10): started by the form, skipped by its page.
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { chain, node } from '../support/definitions.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { ended, waiting } from './suite-parts.ts';

const PHONE = { width: 390, height: 844 };
const DAY_MS = 24 * 3600 * 1000;
const WORKFLOW = chain('rehearsed', [
  node('delay', 'core.delay', { config: { ms: 2 * DAY_MS } }),
  node('gate', 'core.approvalGate', { config: { title: 'Shall it?', timeoutMs: 7 * DAY_MS } }),
]);

describe.skipIf(!chromiumPath)('[chromium] a rehearsal', () => {
  let browser: Browser;
  let host: TestHost;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    [browser, host] = await Promise.all([
      launchChromium(),
      startTestHost({ rehearsals: true, builtIn: { definitions: [WORKFLOW] } }),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });
  afterEach(() => context.close());

  async function signIn(javaScriptEnabled: boolean): Promise<void> {
    context = await browser.newContext({ viewport: PHONE, javaScriptEnabled });
    page = await context.newPage();
    await page.goto(`${host.url}/pages/start/${WORKFLOW.id}`);
    await page.getByLabel('API key').fill(host.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Start the run' }).waitFor();
  }

  const runIdOf = () => new URL(page.url()).pathname.split('/').at(-1) ?? '';

  it.each([true, false])(
    'is started as one, skips 3 days and to the deadline (JavaScript: %s)',
    async (javaScriptEnabled) => {
      await signIn(javaScriptEnabled);
      await page.getByLabel('As a rehearsal').check();
      await page.getByRole('button', { name: 'Start the run' }).click();
      await page.getByText('This is a rehearsal.').waitFor();
      const runId = runIdOf();
      await page.getByRole('button', { name: 'Skip 3 days' }).click();
      await page.getByText('The clock of the rehearsal moves.').waitFor();
      await host.waitFor(runId, waiting);
      if (!javaScriptEnabled) await page.reload();
      // It asked behind two days, for a week.
      await page.getByText('The deadline of what it asks is in 6 days.').waitFor();
      await page.getByText('by the clock of the rehearsal').waitFor();
      if (javaScriptEnabled) expect(await graveFindings(page)).toEqual([]);
      const width = await page.evaluate('document.documentElement.scrollWidth').catch(() => 390);
      expect(width).toBeLessThanOrEqual(PHONE.width);
      // The run may have ended before the browser has the page that the click leads to.
      const skipped = page.waitForEvent('load');
      await page.getByRole('button', { name: 'Skip to the deadline' }).click();
      await skipped;
      expect((await host.waitFor(runId, ended)).error?.code).toBe('interrupt_timeout');
      await page.reload();
      expect(await page.getByRole('button', { name: /^Skip/ }).count()).toBe(0);
      await page.goto(`${host.url}/pages`);
      await page.getByText('rehearsal', { exact: true }).first().waitFor();
    },
  );

  it('an ordinary run has no such buttons, and its address refuses; a form of nobody is refused', async () => {
    await signIn(true);
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.getByText('The run is started.').waitFor();
    const runId = runIdOf();
    expect(await page.getByRole('button', { name: /^Skip/ }).count()).toBe(0);
    const csrf = await page.locator('#controls input[name=csrf]').first().inputValue();
    const post = (form: Record<string, string>) =>
      context.request.post(`${host.url}/pages/runs/${runId}/skip`, {
        form,
        headers: { origin: host.url },
        maxRedirects: 0,
      });
    expect((await post({ forMs: '1' })).status()).toBe(403);
    const refused = await post({ csrf, forMs: '1' });
    expect([refused.status(), await refused.text()]).toEqual([
      409,
      expect.stringContaining('The run is no rehearsal'),
    ]);
    expect((await post({ csrf, forMs: 'many' })).status()).toBe(400);
  });
});
