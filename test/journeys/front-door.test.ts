// The way of a newcomer in a browser, whole: from the host's bare address to a run that they started, answered and found
// again (architecture §10).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDemo, type Demo } from '../../src/demo/index.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { patient } from '../support/machine.ts';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };
const LIMIT_MS = patient(60_000);
const WAYS = [
  ['desktop', true, DESKTOP],
  ['phone', true, PHONE],
  ['desktop', false, DESKTOP],
  ['phone', false, PHONE],
] as const;

describe.skipIf(!chromiumPath)('[chromium] from the bare address to an answered run', () => {
  let browser: Browser;
  let host: TestHost;
  let demo: Demo;
  let dataDir = '';

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'front-door-'));
    demo = await createDemo({ dataDir, logger: quietLogger });
    browser = await launchChromium();
    host = await startTestHost({ builtIn: demo, dataDir });
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
    await demo?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** Waits for what comes live; without scripts as people do, by loading the page again. */
  async function seen(page: Page, live: boolean, text: string | RegExp): Promise<void> {
    const found = page.getByText(text).first();
    if (live) return found.waitFor();
    await expect
      .poll(
        async () => {
          if (!(await found.isVisible())) await page.reload();
          return found.isVisible();
        },
        { timeout: LIMIT_MS / 2, interval: 300 },
      )
      .toBe(true);
  }

  it.each(WAYS)('on the %s (JavaScript: %s)', async (_name, javaScriptEnabled, viewport) => {
    const context = await browser.newContext({ viewport, javaScriptEnabled });
    const page = await context.newPage();
    const lawful = async () => {
      if (javaScriptEnabled) expect(await graveFindings(page)).toEqual([]);
    };
    await page.goto(host.url);
    await lawful();
    await page.getByLabel('API key').fill(host.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/pages');
    await lawful();
    await page.getByRole('link', { name: /Start a run of Refund desk/ }).click();
    await lawful();
    await page.getByLabel(/^orderId/).fill('A-1007');
    await page.getByLabel(/^message/).fill('The lid is cracked.');
    await page.getByRole('button', { name: /Start/ }).click();
    await page.waitForURL(/\/pages\/runs\/run-/);
    const runId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    await seen(page, javaScriptEnabled, /Go on with the decision/);
    await lawful();
    await page.getByRole('button', { name: /Accept the decision/ }).click();
    await seen(page, javaScriptEnabled, 'Completed');
    await lawful();
    await page.getByRole('link', { name: 'All runs' }).click();
    await page.waitForURL('**/pages');
    const row = page.locator(`.run-row[data-key="${runId}"]`);
    await row.getByText('Completed').waitFor();
    await row.getByRole('link').click();
    await page.waitForURL(`**/pages/runs/${runId}`);
    await context.close();
  });
});
