// A run is started and cancelled in a real browser, with and without JavaScript, on a phone, by the keyboard alone
// (architecture §10).
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { SUITE } from './suite-workflows.ts';

const PHONE = { width: 390, height: 844 };

describe.skipIf(!chromiumPath)('[chromium] a run is started by a form', () => {
  let browser: Browser;
  let host: TestHost;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    [browser, host] = await Promise.all([launchChromium(), startTestHost({ builtIn: SUITE })]);
  });
  afterAll(async () => {
    await browser.close();
    await host.stop();
  });
  afterEach(() => context.close());

  /** Asks for the page, signs in by the form that stands in its place, and is led there. */
  async function open(path: string, javaScriptEnabled: boolean): Promise<void> {
    context = await browser.newContext({ viewport: PHONE, javaScriptEnabled });
    page = await context.newPage();
    await page.goto(`${host.url}${path}`);
    await page.getByLabel('API key').fill(host.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Start the run' }).waitFor();
  }

  it.each([true, false])(
    'wrong input keeps what was typed; once mended, the run is seen (JavaScript: %s)',
    async (javaScriptEnabled) => {
      await open('/pages/start/typed', javaScriptEnabled);
      await page.getByLabel('note').first().fill('first line\nsecond line');
      await page.getByLabel('count').first().fill('twelve');
      await page.getByLabel('gift').selectOption('no');
      await page.getByLabel('pin').first().fill('hush-1234');
      await page.getByLabel('count').first().press('Enter');
      const summary = page.getByRole('alert');
      await summary.getByText('2 things are not right').waitFor();
      expect(await page.title()).toContain('Not started');
      expect(await page.getByLabel('note').first().inputValue()).toBe('first line\nsecond line');
      expect(await page.getByLabel('gift').inputValue()).toBe('false');
      expect(await page.getByLabel('pin').first().inputValue()).toBe('');
      await summary.getByRole('link', { name: 'count must be a number' }).click();
      await page.keyboard.press('Control+A');
      await page.keyboard.type('12');
      expect(await page.getByLabel('count').first().inputValue()).toBe('12');
      await page.getByLabel('lines').fill('["a"]');
      if (javaScriptEnabled) expect(await graveFindings(page)).toEqual([]);
      const width = await page.evaluate('document.documentElement.scrollWidth').catch(() => 390);
      expect(width).toBeLessThanOrEqual(PHONE.width);
      await page.getByRole('button', { name: 'Start the run' }).click();
      await page.getByText('The run is started.').waitFor();
      const { variables } = await host.waitFor(
        runIdOf(page),
        ({ status }) => status === 'completed',
      );
      expect(variables).toMatchObject({ note: 'first line\nsecond line', count: 12, gift: false });
    },
  );

  it.each([true, false])(
    'by the keyboard alone it is started, once behind Back too, and cancelled (JavaScript: %s)',
    async (javaScriptEnabled) => {
      await open('/pages/start/approval', javaScriptEnabled);
      await page.getByRole('button', { name: 'Start the run' }).focus();
      await page.keyboard.press('Enter');
      await page.getByText('The run is started.').waitFor();
      const runId = runIdOf(page);
      // Behind Back stands the form that was sent, not a new one.
      await page.goBack();
      await page.getByRole('button', { name: 'Start the run' }).click();
      await page.getByText('The form had started this run already').waitFor();
      expect(runIdOf(page)).toBe(runId);
      await page.getByText('Cancel the run…').focus();
      await page.keyboard.press('Enter');
      if (javaScriptEnabled) expect(await graveFindings(page)).toEqual([]);
      await page.keyboard.press('Tab');
      await page.keyboard.type('Nobody needs it.');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByText('The run is being cancelled').waitFor();
      await host.waitFor(runId, ({ status }) => status === 'cancelled');
      await page.reload();
      await page.getByRole('link', { name: 'Start another like this' }).click();
      await page.getByRole('button', { name: 'Start the run' }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/pages/start/approval');
    },
  );
});

function runIdOf(page: Page): string {
  return new URL(page.url()).pathname.split('/').at(-1) ?? '';
}
