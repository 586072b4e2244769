// What the escalation desk does, with everything real: the demo's run on Temporal, its page in Chromium, opened by a
// one-time link, watched live, answered (issue: "The run's page"; RFC 0002 §F, RFC 0024). And the way of a newcomer, whole:
// from the host's bare address to a run that they started, answered and found again (architecture §10).
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDemo, demoRunRequest, type Demo } from '../../src/demo/index.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { patient } from '../support/machine.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };
const LIMIT_MS = patient(60_000);
const WAYS = [
  ['phone', true, PHONE],
  ['desktop', false, DESKTOP],
] as const;

describe.skipIf(!chromiumPath)('[chromium] the refund desk, real', () => {
  let browser: Browser;
  let host: TestHost;
  let demo: Demo;
  const dataDir = mkdtempSync(join(tmpdir(), 'openwop-desk-'));

  beforeAll(async () => {
    browser = await launchChromium();
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    demo = await createDemo({ dataDir, logger });
    host = await startTestHost({ builtIn: demo });
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
    await demo?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function linkTo(runId: string): Promise<string> {
    const path = `/v1/host/openwop-temporal/runs/${runId}/page-link`;
    const { status, body } = await host.api<{ url: string }>(path, { method: 'POST', body: {} });
    expect(status).toBeLessThan(300);
    return body.url;
  }

  async function openPage(
    runId: string,
    options: Parameters<Browser['newContext']>[0],
  ): Promise<{ page: Page; complaints: string[]; close: () => Promise<void> }> {
    const context = await browser.newContext({ viewport: PHONE, ...options });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(await linkTo(runId));
    await page.getByRole('button', { name: 'Open the run' }).click();
    await page.locator('#timeline').waitFor();
    return { page, complaints, close: () => context.close() };
  }

  async function paid(): Promise<number> {
    const answer = await fetch(`${demo.ordersUrl}/refunds`);
    return ((await answer.json()) as { count: number }).count;
  }

  it('opened while the agent thinks, live to the question, accepted, live to the end; paid once', async () => {
    const before = await paid();
    const runId = await host.startRun(demoRunRequest);
    const { page, complaints, close } = await openPage(runId, {});
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Accept the decision' }).waitFor();
    await page.getByText('55 % sure, below the required 70 %').first().waitFor();
    await page.getByText(/days left/).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
      PHONE.width,
    );
    const folder = process.env.OPENWOP_TEST_PICTURES;
    if (folder) await page.screenshot({ path: `${folder}/real-question.png`, fullPage: true });
    await page.getByRole('button', { name: 'Accept the decision' }).click();
    await page.getByText('Your answer is taken.').waitFor();
    await page.getByRole('heading', { name: 'Run completed' }).waitFor();
    await page.locator('.badge', { hasText: 'Completed' }).waitFor();
    if (folder) await page.screenshot({ path: `${folder}/real-end.png`, fullPage: true });
    expect(await page.locator('[data-interrupt]').count()).toBe(0);
    const live = await page.locator('#timeline').innerText();
    await page.reload();
    expect(await page.locator('#timeline').innerText()).toBe(live);
    expect(await paid()).toBe(before + 1);
    expect(complaints).toEqual([]);
    await close();
  });

  it('answered without JavaScript, with a smaller amount: that is what is paid', async () => {
    const runId = await host.startRun(demoRunRequest);
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const { page, close } = await openPage(runId, { javaScriptEnabled: false });
    await page.locator('summary', { hasText: 'Change it first' }).click();
    await page.getByLabel('amountCents').fill('3000');
    await page.getByRole('button', { name: 'Accept with changes' }).click();
    await page.getByText('Your answer is taken.').waitFor();
    await host.waitFor(runId, ({ status }) => status === 'completed');
    const { refunds } = (await (await fetch(`${demo.ordersUrl}/refunds`)).json()) as {
      refunds: { amountCents: number }[];
    };
    expect(refunds.at(-1)?.amountCents).toBe(3000);
    await close();
  });

  it('a wrong answer is told on the page and changes nothing; then it is rejected, and nothing is paid', async () => {
    const before = await paid();
    const runId = await host.startRun(demoRunRequest);
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const { page, close } = await openPage(runId, {});
    await page.locator('summary', { hasText: 'Change it first' }).click();
    await page.getByLabel('action', { exact: true }).fill('give everything');
    await page.getByRole('button', { name: 'Accept with changes' }).click();
    await page.locator('.notice.error').waitFor();
    expect((await host.api<{ status: string }>(`/v1/runs/${runId}`)).body.status).toBe(
      'waiting-approval',
    );
    await page.locator('summary', { hasText: 'Reject' }).click();
    await page.getByLabel('Reason (optional)').fill('Too late');
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByRole('heading', { name: 'Run failed' }).waitFor();
    expect(await paid()).toBe(before);
    await close();
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

  it.each(WAYS)(
    'from the bare address to an answered run, on the %s (JavaScript: %s)',
    async (_name, javaScriptEnabled, viewport) => {
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
    },
  );
});
