// The host's page, real: signed in with the key, live over the feed, with and without JavaScript, on phone and desktop
// (architecture §10).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { chain, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { sharedDatabase } from '../support/shared-postgres.ts';
import { startTestTemporal } from '../support/temporal.ts';
import { quietFor } from '../support/waiting.ts';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };
const gate = { title: 'Ship it?', actions: ['accept', 'reject'] };
const builtIn = {
  definitions: [
    {
      ...chain('approval', [node('gate', 'core.approvalGate', { config: gate })]),
      ...{ name: 'Release <b>desk</b>', description: 'Asks before it ships.' },
    },
    chain('noop', [node('only', 'core.noop')]),
  ],
};

describe.skipIf(!chromiumPath)("[chromium] the host's page, real", () => {
  let browser: Browser;
  let host: TestHost;
  let contexts: BrowserContext[] = [];
  let complaints: string[] = [];

  beforeAll(async () => {
    browser = await launchChromium();
    host = await startTestHost({ builtIn });
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });
  afterEach(async () => {
    for (const context of contexts) await context.close();
    contexts = [];
    complaints = [];
  });

  async function signIn(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: DESKTOP, ...options });
    contexts.push(context);
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    await page.goto(`${host.url}/pages/sign-in`);
    await page.getByLabel('API key').fill(host.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/pages');
    complaints = [];
    return page;
  }
  const asking = () => host.startRun({ workflowId: 'approval' });
  const ask = (page: Page, runId: string) => page.locator(`.ask[data-key^="${runId} "]`);
  const row = (page: Page, runId: string) => page.locator(`.run-row[data-key="${runId}"]`);

  it.each([
    ['desktop', DESKTOP],
    ['phone', PHONE],
  ])(
    'on the %s a run that begins to wait appears on top without reload; answered in another window it goes',
    async (_name, viewport) => {
      const page = await signIn({ viewport });
      await page.getByText('Live', { exact: true }).waitFor();
      await page.evaluate('window.untouched = true');
      const runId = await asking();
      await ask(page, runId).getByRole('link', { name: 'Ship it?' }).waitFor();
      await ask(page, runId).getByText('Release <b>desk</b>').waitFor();
      await row(page, runId).getByText('Waiting for you').waitFor();
      await expect.poll(() => page.locator('#announce').textContent()).toContain('Ship it?');
      expect(await page.title()).toContain('waiting');
      const other = await page.context().newPage();
      await other.goto(`${host.url}/pages`);
      await ask(other, runId).getByRole('link').click();
      await other.getByRole('button', { name: 'Accept' }).first().click();
      await ask(page, runId).waitFor({ state: 'detached' });
      await row(page, runId).getByText('Completed').waitFor();
      expect(await page.evaluate('window.untouched')).toBe(true);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width).toBeLessThanOrEqual(viewport.width);
      expect(complaints).toEqual([]);
    },
  );

  it('what is chosen in the filter and the focus stay while runs come', async () => {
    const page = await signIn();
    await page.getByText('Live', { exact: true }).waitFor();
    const first = await asking();
    await ask(page, first).waitFor();
    await page.getByLabel('Status').selectOption('failed');
    await ask(page, first).getByRole('link').focus();
    const second = await asking();
    await ask(page, second).waitFor();
    expect(await page.getByLabel('Status').inputValue()).toBe('failed');
    const focused = await page.evaluate('document.activeElement.getAttribute("href")');
    expect(focused).toBe(`/pages/runs/${first}`);
    for (const runId of [first, second])
      await host.api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
    await ask(page, first).waitFor({ state: 'detached' });
  });

  it('a page that is hidden reads nothing; seen again it shows what is so', async () => {
    const page = await signIn();
    await page.getByText('Live', { exact: true }).waitFor();
    const hide = (hidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'));`,
      );
    await hide(true);
    await expect.poll(() => page.locator('#live').textContent()).toBe('');
    let asked = 0;
    page.on('request', () => (asked += 1));
    const runId = await asking();
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    await quietFor(2_000);
    expect([asked, await ask(page, runId).count()]).toEqual([0, 0]);
    await hide(false);
    await ask(page, runId).waitFor();
    await host.api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
  });

  it('without JavaScript: what waits, the filter, and the way to a run and to a start, by keyboard', async () => {
    const runId = await asking();
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const page = await signIn({ javaScriptEnabled: false, viewport: PHONE });
    await ask(page, runId)
      .getByText(/days left/)
      .waitFor();
    await page.getByLabel('Status').selectOption('waiting-approval');
    await page.locator('select[name=workflow]').selectOption('approval');
    await page.locator('select[name=workflow]').focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/pages?status=waiting-approval&workflow=approval');
    await row(page, runId).waitFor();
    expect(await page.getByLabel('Status').inputValue()).toBe('waiting-approval');
    const start = page.getByRole('link', { name: /Start a run of Release/ });
    expect(await start.getAttribute('href')).toBe('/pages/start/approval');
    await row(page, runId).getByRole('link').focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/pages/runs/${runId}`);
    await host.api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
  });

  it('a host that goes away is told of; when it is back the page shows what came meanwhile, without reload', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'home-page-'));
    const server = await startTestTemporal();
    const temporal = { address: server.address, namespace: await server.namespace() };
    const shared = host;
    const databaseUrl = await sharedDatabase();
    const options = { builtIn, dataDir, temporal, ...(databaseUrl && { databaseUrl }) };
    host = await startTestHost(options);
    try {
      const page = await signIn();
      await page.getByText('Live', { exact: true }).waitFor();
      await page.evaluate('window.untouched = true');
      const { port } = new URL(host.url);
      await host.stop();
      await page.getByText('Connection lost, trying again…').waitFor();
      host = await startTestHost({ ...options, env: { OPENWOP_PORT: port } });
      const runId = await asking();
      await ask(page, runId).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      expect(await page.evaluate('window.untouched')).toBe(true);
    } finally {
      await host.stop();
      host = shared;
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  it.each([
    ['phone', PHONE, 'dark'],
    ['desktop', DESKTOP, 'light'],
  ] as const)(
    'nothing is wider than the %s (%o, %s), and axe finds nothing serious',
    async (name, viewport, colorScheme) => {
      const runId = await asking();
      await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
      const page = await signIn({ viewport, colorScheme });
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width).toBeLessThanOrEqual(viewport.width);
      await page.getByText('Live', { exact: true }).waitFor();
      expect(await graveFindings(page)).toEqual([]);
      const folder = process.env.OPENWOP_TEST_PICTURES;
      if (folder)
        await page.screenshot({
          path: `${folder}/home-${name}-${colorScheme}.png`,
          fullPage: true,
        });
    },
  );
});
