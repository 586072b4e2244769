// `npm run pictures`: the pictures of docs/, taken in Chromium of a host of its own with the examples, so that they show
// what there is.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page } from 'playwright-core';
import { createDemo, demoRunRequest } from '../../src/demo/index.ts';
import { ended, waiting } from '../facade/suite-parts.ts';
import { launchChromium } from './chromium.ts';
import { startTestHost, type TestHost } from './host.ts';
import { SHOTS, type Runs, type Shot } from './picture-shots.ts';
import { quietLogger } from './quiet-logger.ts';
import { ROOT } from './root.ts';

const ACCESS = { person: 'Ada', why: 'The invoice of May is wrong.' };
const DESKTOP = { width: 1100, height: 860 };
const PHONE = { width: 390, height: 844 };

/** Writes `<name>.png` of each into `folder`; the names. */
export async function takePictures(folder: string): Promise<readonly string[]> {
  mkdirSync(folder, { recursive: true });
  const dataDir = mkdtempSync(join(tmpdir(), 'pictures-'));
  const demo = await createDemo({ dataDir, logger: quietLogger });
  const host = await startTestHost({
    dataDir,
    builtIn: demo,
    fixturesDir: examples('definitions', dataDir),
    agentsDir: examples('agents', dataDir),
    env: { OPENWOP_TEST_MODE: undefined },
  });
  const browser = await launchChromium();
  try {
    const runs = await startRuns(host);
    for (const shot of SHOTS) {
      const context = await browser.newContext({
        viewport: shot.phone ? PHONE : DESKTOP,
        deviceScaleFactor: shot.phone ? 2 : 1,
        colorScheme: shot.phone ? 'dark' : 'light',
      });
      await take(await signedIn(host, context), shot, { runs, folder });
      await context.close();
    }
  } finally {
    await browser.close();
    await host.stop();
    await demo.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
  return SHOTS.map(({ name }) => `${name}.png`);
}

/** Those of the stories whose runs are shown, in one folder. */
function examples(kind: 'definitions' | 'agents', dataDir: string): string {
  const into = join(dataDir, 'examples', kind);
  for (const story of ['access', 'team'])
    cpSync(join(ROOT, 'examples', story, kind), into, { recursive: true });
  return into;
}

async function startRuns(host: TestHost): Promise<Runs> {
  const request = (system: string) =>
    host.startRun({ workflowId: 'access-request', inputs: { ...ACCESS, system } });
  await host.waitFor(await request('wiki'), ended);
  const access = await request('production');
  await host.waitFor(access, waiting);
  const refund = await host.startRun(demoRunRequest);
  await host.waitFor(refund, waiting);
  const research = await host.startRun({ workflowId: 'research' });
  return { refund, access, research };
}

/** A page of who has signed in, at the host's own. */
export async function signedIn(host: TestHost, context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${host.url}/pages`);
  await page.getByLabel('API key').fill(host.apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`${host.url}/pages`);
  return page;
}

async function take(
  page: Page,
  { name, path, shows }: Shot,
  { runs, folder }: { readonly runs: Runs; readonly folder: string },
): Promise<void> {
  await page.goto(new URL(path(runs), page.url()).href);
  if (shows) await page.locator(shows).first().waitFor();
  // What is drawn by the script, too: local times.
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => resolve()))');
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = join(ROOT, 'docs', 'pictures');
  for (const name of await takePictures(folder)) process.stdout.write(`docs/pictures/${name}\n`);
}
