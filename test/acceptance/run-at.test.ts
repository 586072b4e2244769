// A run as it was at an event, on a real host: by the API, by a page, and by the slider of the run's page.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import { ended, readLog, waiting } from '../facade/suite-parts.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { signedIn } from '../support/pictures.ts';

const WORKFLOW = definition(
  'stepwise',
  [
    node('set', 'core.setVariable', { config: { variableName: 'n', value: 3 } }),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
  ],
  [edge('set', 'gate')],
  {
    variables: [
      { name: 'n', type: 'number', defaultValue: 1 },
      { name: 'card', type: 'string', defaultValue: 'card-4711', sensitive: true },
    ],
  },
);

interface At {
  readonly status: string;
  readonly sequence: number;
  readonly length: number;
  readonly type: string;
  readonly error?: string;
  readonly variables: Record<string, unknown>;
  readonly nodeStates: Record<string, { status: string }>;
  readonly interrupt?: { title: string };
}

let host: TestHost;
let runId: string;
let types: string[];

const page = (path: string, init: RequestInit = {}) =>
  fetch(`${host.url}${path}`, { redirect: 'manual', ...init });
const cookiesOf = (answer: Response): string =>
  answer.headers
    .getSetCookie()
    .map((each) => each.split(';')[0] ?? '')
    .join('; ');
const at = (sequence: number | string, of = runId) =>
  host.api<At>(`/v1/host/openwop-temporal/runs/${of}/at/${sequence}`);

beforeAll(async () => {
  host = await startTestHost({ builtIn: { definitions: [WORKFLOW], agents: [] } });
  runId = await host.startRun({ workflowId: WORKFLOW.id });
  await host.waitFor(runId, waiting);
  const body = { resumeValue: { action: 'accept' } };
  await host.api(`/v1/runs/${runId}/interrupts/gate`, { body });
  await host.waitFor(runId, ended);
  types = (await readLog(host, runId)).events.map(({ type }) => type);
});

afterAll(() => host?.stop());

describe('a run as it was at an event', () => {
  it('at its last it is as it is', async () => {
    const now = await host.api<RunSnapshot>(`/v1/runs/${runId}`);
    const { status, body } = await at(types.length - 1);
    const { nodeStates, variables, outputs } = now.body;
    expect([status, body]).toMatchObject([
      200,
      { runId, status: 'completed', length: types.length, nodeStates, variables },
    ]);
    expect((body as unknown as RunSnapshot).outputs).toEqual(outputs);
  });

  it('tells status, steps, variables and the open question of that moment', async () => {
    const [first, asking] = [await at(0), await at(types.indexOf('interrupt.requested'))];
    expect(first.body).toMatchObject({ status: 'running', nodeStates: {}, variables: { n: 1 } });
    expect(first.body).not.toHaveProperty('interrupt');
    expect(asking.body).toMatchObject({
      ...{ status: 'waiting-approval', interrupt: { title: 'Shall it?' } },
      ...{ variables: { n: 3 }, nodeStates: { set: { status: 'completed' } } },
    });
    const answered = await at(types.indexOf('interrupt.resolved'));
    expect(answered.body.status).toBe('running');
    expect(answered.body).not.toHaveProperty('interrupt');
  });

  it('at each event it can be told, and nothing sensitive is', async () => {
    for (const [sequence, type] of types.entries()) {
      const { status, body, text } = await at(sequence);
      expect([status, body.sequence, body.type]).toEqual([200, sequence, type]);
      expect(text).not.toContain('card-4711');
    }
  });

  it('events that are not there, and runs of nobody, are not found', async () => {
    for (const none of [types.length, 999_999_999, -1, 'x', '1.5', '9'.repeat(20)]) {
      const { status, body } = await at(none);
      expect([none, status, body.error]).toEqual([none, 404, 'not_found']);
    }
    const { status, body } = await at(0, 'run-unknown');
    expect([status, body.error]).toEqual([404, 'run_not_found']);
    const path = `/v1/host/openwop-temporal/runs/${runId}/at/0`;
    expect((await host.api(path, { headers: { authorization: '' } })).status).toBe(401);
  });

  it('the page is for who is signed in; a link to the run alone is offered none', async () => {
    const path = `/pages/runs/${runId}/at?event=${types.indexOf('interrupt.requested')}`;
    const { body } = await host.api<{ url: string }>(
      `/v1/host/openwop-temporal/runs/${runId}/page-link`,
      { body: {} },
    );
    const { pathname, search } = new URL(body.url);
    const linked = { cookie: cookiesOf(await page(pathname + search, { method: 'POST' })) };
    for (const headers of [{}, linked] as Record<string, string>[])
      expect((await page(path, { headers })).status).toBe(401);
    const alone = await (await page(`/pages/runs/${runId}`, { headers: linked })).text();
    expect([alone.includes(runId), alone.includes('As it was')]).toEqual([true, false]);
    const signed = await page('/pages/sign-in', {
      method: 'POST',
      body: new URLSearchParams({ key: host.apiKey }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    const headers = { cookie: cookiesOf(signed) };
    const html = await (await page(path, { headers })).text();
    for (const words of ['Shall it?', 'Waiting for you', 'The event before'])
      expect(html).toContain(words);
    expect(html).not.toContain('card-4711');
    for (const none of [types.length, 'x', -1]) {
      const answer = await page(`/pages/runs/${runId}/at?event=${none}`, { headers });
      expect([none, answer.status]).toEqual([none, 404]);
    }
  });
});

it('a step where a person said no is declined, as in the timeline; to the API it failed', async () => {
  const declined = await host.startRun({ workflowId: WORKFLOW.id });
  await host.waitFor(declined, waiting);
  const body = { resumeValue: { action: 'reject' } };
  await host.api(`/v1/runs/${declined}/interrupts/gate`, { body });
  await host.waitFor(declined, ended);
  const last = (await readLog(host, declined)).events.length - 1;
  const signed = await page('/pages/sign-in', {
    method: 'POST',
    body: new URLSearchParams({ key: host.apiKey }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  const headers = { cookie: cookiesOf(signed) };
  const html = await (await page(`/pages/runs/${declined}/at?event=${last}`, { headers })).text();
  expect(html).toMatch(/<dt>gate<\/dt><dd>declined<\/dd>/);
  const { nodeStates } = (await at(last, declined)).body;
  expect(nodeStates.gate?.status).toBe('failed');
});

describe.skipIf(!chromiumPath)('[chromium] the slider over the log', () => {
  it.each([
    ['with its script, by the keyboard, in place', true],
    ['without script, by its form', false],
  ])('%s', async (_how, javaScriptEnabled) => {
    const browser = await launchChromium();
    try {
      const context = await browser.newContext({ javaScriptEnabled });
      const tab = await signedIn(host, context);
      const complaints: string[] = [];
      tab.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      await tab.goto(`${host.url}/pages/runs/${runId}`);
      await tab.locator('.item.end').waitFor();
      const slider = tab.getByRole('slider');
      await slider.focus();
      await tab.keyboard.press('Home');
      await tab.keyboard.press('ArrowRight');
      if (!javaScriptEnabled) await tab.getByRole('button', { name: 'Show' }).click();
      const state = tab.getByRole('region', { name: 'The run as it was at event 1' });
      await state.locator('.badge', { hasText: 'Running' }).waitFor();
      expect(new URL(tab.url()).pathname.endsWith('/at')).toBe(!javaScriptEnabled);
      if (javaScriptEnabled) {
        expect(await tab.locator('#at-shown').textContent()).toBe('1');
        expect(await tab.locator('.item.at').count()).toBe(1);
        expect(await graveFindings(tab)).toEqual([]);
      } else {
        await tab.getByRole('link', { name: 'The next event' }).click();
        await tab.getByRole('region', { name: 'The run as it was at event 2' }).waitFor();
      }
      const picture = process.env.OPENWOP_TEST_PICTURES;
      if (picture) await tab.screenshot({ path: `${picture}/at-${javaScriptEnabled}.png` });
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
