// Signing in, in a real browser: by the key and by a link, with and without JavaScript, wide and narrow, light and dark;
// axe finds nothing grave on any of these pages (architecture §10).
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };
/** Each width and each scheme once: neither changes what the other does. */
const LOOKS = [
  { viewport: PHONE, colorScheme: 'light' },
  { viewport: DESKTOP, colorScheme: 'dark' },
] as const;

describe.skipIf(!chromiumPath)('[chromium] signing in', () => {
  let browser: Browser;
  let host: FaultHost;
  let runId: string;

  beforeAll(async () => {
    browser = await launchChromium();
    host = await startFaultHost({ streamLimits: { perSession: 1 } });
    runId = await host.startRun({ workflowId: 'noop' });
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  async function within(
    options: BrowserContextOptions,
    visit: (page: Page) => Promise<void>,
  ): Promise<void> {
    const context = await browser.newContext(options);
    try {
      await visit(await context.newPage());
    } finally {
      await context.close();
    }
  }

  async function linkOf(path: string): Promise<string> {
    const { body } = await host.api<{ url: string }>(`/v1/host/openwop-temporal/${path}`, {
      method: 'POST',
    });
    return body.url;
  }

  it.each([true, false])(
    'by the key, after a wrong one, to the address that was asked for; out again (JavaScript: %s)',
    (javaScriptEnabled) =>
      within({ viewport: PHONE, javaScriptEnabled }, async (page) => {
        const asked = `${host.url}/pages/runs/${runId}?notice=answered`;
        expect((await page.goto(asked))?.status()).toBe(401);
        // The keyboard alone.
        await page.getByLabel('API key').focus();
        await page.keyboard.type('wrong');
        await page.keyboard.press('Enter');
        await page.getByRole('alert').getByText('This is not the key of this host.').waitFor();
        expect(await page.getByLabel('API key').inputValue()).toBe('');
        await page.getByLabel('API key').fill(KEY);
        await page.keyboard.press('Enter');
        await page.locator('#timeline').waitFor({ state: 'attached' });
        expect(page.url()).toBe(asked);
        await page.getByRole('link', { name: 'All runs' }).click();
        await page.waitForURL('**/pages');
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByText('You are signed out.').waitFor();
        expect((await page.goto(`${host.url}/pages`))?.status()).toBe(401);
      }),
  );

  it.each([true, false])(
    "by a link, once; the host's bare address leads to its pages (JavaScript: %s)",
    (javaScriptEnabled) =>
      within({ viewport: DESKTOP, javaScriptEnabled }, async (page) => {
        const link = await linkOf('sign-in-link');
        await page.goto(link);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('button', { name: 'Sign out' }).waitFor();
        await page.goto(host.url);
        expect(new URL(page.url()).pathname).toBe('/pages');
        await within({}, async (other) => {
          await other.goto(link);
          await other.getByRole('button', { name: 'Sign in' }).click();
          await other.getByText('This link no longer works').waitFor();
          await other.getByRole('link', { name: 'Sign in' }).click();
          await other.getByLabel('API key').waitFor();
        });
      }),
  );

  it('says why a page is not live where more are open than may be, and becomes live in its turn', () =>
    within({ viewport: DESKTOP }, async (page) => {
      await page.goto(await linkOf('sign-in-link'));
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('#live.on').waitFor();
      const second = await page.context().newPage();
      await second.goto(`${host.url}/pages/runs/${runId}`);
      await second.getByText('Not live: too many pages are open.').waitFor();
      await page.close();
      await second.locator('#live.on').waitFor();
    }));

  it('a page whose link is revoked says that it is signed out', () =>
    within({ viewport: PHONE }, async (page) => {
      await page.goto(await linkOf(`runs/${runId}/page-link`));
      await page.getByRole('button').click();
      await page.locator('#live.on').waitFor();
      await linkOf(`runs/${runId}/page-links:revoke`);
      await page.getByText('You are signed out.').waitFor();
      expect((await page.reload())?.status()).toBe(401);
    }));

  it.each(LOOKS)('axe finds nothing grave: $colorScheme, $viewport.width px', (look) =>
    within(look, async (page) => {
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      const findings = async (address: string) => {
        await page.goto(address);
        return [address, ...(await graveFindings(page))];
      };
      for (const address of [
        `${host.url}/pages/sign-in`,
        `${host.url}/pages/sign-in?notice=signed-out`,
        await linkOf('sign-in-link'),
        await linkOf(`runs/${runId}/page-link`),
        `${host.url}/pages/nowhere`,
      ])
        expect(await findings(address)).toEqual([address]);
      await page.goto(`${host.url}/pages/sign-in?link=used`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('This link no longer works').waitFor();
      expect(await graveFindings(page)).toEqual([]);
      await page.goto(`${host.url}/pages/sign-in`);
      await page.getByLabel('API key').fill('wrong');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').waitFor();
      expect(await graveFindings(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
        look.viewport.width,
      );
      await page.getByLabel('API key').fill(KEY);
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      expect(await graveFindings(page)).toEqual([]);
      await page.goto(`${host.url}/pages/runs/${runId}`);
      await page.locator('#timeline').waitFor({ state: 'attached' });
      expect(await graveFindings(page)).toEqual([]);
      expect(complaints).toEqual([]);
    }),
  );
});
