// A run is forked from its page, on a real host (replay.md): a form at each event, the way of the API's route behind it, and
// the fork's page, which says where it left its source.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import type { LogRow } from '../../src/ports/log.ts';
import { ended, waiting } from '../facade/suite-parts.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { signedIn } from '../support/pictures.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.fork-pages.judge';
const CLERK = 'local.fork-pages.clerk';
const ASKED = definition('asked', [agentNode('clerk', CLERK)]);
const WORKFLOW = definition(
  'judged',
  [
    agentNode('judge', AGENT),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
    node('end', 'core.noop'),
  ],
  [edge('judge', 'gate'), edge('gate', 'end')],
  {
    variables: [
      { name: 'amount', type: 'number', defaultValue: 10 },
      { name: 'card', type: 'string', defaultValue: 'card-4711', sensitive: true },
    ],
  },
);

let host: TestHost;
let folder: string;
let cookie: string;
let sourceRunId: string;
let source: readonly LogRow[];

const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const at = (type: string) => source.findIndex((row) => row.type === type);
const payloads = (rows: readonly LogRow[], type: string) =>
  rows.filter((row) => row.type === type).map(({ payload }) => JSON.parse(payload) as JsonObject);
const cookiesOf = (answer: Response): string =>
  answer.headers
    .getSetCookie()
    .map((each) => each.split(';')[0] ?? '')
    .join('; ');
const page = (path: string, init: RequestInit = {}) =>
  fetch(`${host.url}${path}`, { redirect: 'manual', ...init });
const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  page(path, {
    method: 'POST',
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-fork-pages-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [
      { chunks: ['Let ', 'me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      {
        cases: [
          {
            ...{ path: 'prompt.rule', equals: 'strict' },
            turn: { chunks: ['Strictly.'], final: { decision: { refund: false }, confidence: 1 } },
          },
        ],
        ...{ chunks: ['Kindly.'], final: { decision: { refund: true }, confidence: 1 } },
      },
    ],
  });
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: CLERK, toolAllowlist: [`agent:${AGENT}`] },
    turns: [
      { calls: [{ toolId: `agent:${AGENT}`, arguments: {} }] },
      { final: { decision: { done: true }, confidence: 1 } },
    ],
  });
  for (const each of [WORKFLOW, ASKED]) await writeDefinition(join(folder, 'definitions'), each);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    env: { OPENWOP_TEST_MODE: 'true' },
  });
  cookie = cookiesOf(await post('/pages/sign-in', { key: host.apiKey }));
  sourceRunId = await host.startRun({ workflowId: WORKFLOW.id });
  await host.waitFor(sourceRunId, waiting);
  await accept(sourceRunId);
  await host.waitFor(sourceRunId, ended);
  source = await rowsOf(sourceRunId);
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function accept(runId: string): Promise<void> {
  const body = { resumeValue: { action: 'accept' } };
  await host.api(`/v1/runs/${runId}/interrupts/gate`, { body });
}

/** The cookie of a link to this run alone. */
async function linkedTo(runId: string): Promise<string> {
  const { body } = await host.api<{ url: string }>(
    `/v1/host/openwop-temporal/runs/${runId}/page-link`,
    { body: {} },
  );
  const { pathname, search } = new URL(body.url);
  return cookiesOf(await page(pathname + search, { method: 'POST' }));
}

const formPath = (from: number | string, runId = sourceRunId) =>
  `/pages/runs/${runId}/fork?from=${from}`;

interface Form {
  readonly path: string;
  readonly csrf: string;
  readonly html: string;
}

async function formAt(from: number, runId = sourceRunId): Promise<Form> {
  const numbered = await page(formPath(from, runId), { headers: { cookie } });
  const path = numbered.headers.get('location') ?? '';
  expect([numbered.status, path]).toEqual([303, expect.stringContaining(formPath(from, runId))]);
  const shown = await page(path, { headers: { cookie } });
  const html = await shown.text();
  expect(shown.status).toBe(200);
  return { path, html, csrf: /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? '' };
}

/** The fork's runId. */
async function forked({ path, csrf }: Form, fields: Record<string, string>): Promise<string> {
  const answer = await post(path, { csrf, ...fields }, { cookie });
  const to = answer.headers.get('location') ?? '';
  expect([answer.status, to]).toEqual([303, expect.stringMatching(/\?notice=forked$/)]);
  return /runs\/([^?]*)/.exec(to)?.[1] ?? '';
}

async function forkAt(from: number, fields: Record<string, string>): Promise<string> {
  return forked(await formAt(from), { mode: 'branch', ...fields });
}

async function endOf(runId: string): Promise<readonly LogRow[]> {
  const { status } = await host.waitFor(runId, (run) => waiting(run) || ended(run));
  if (status === 'waiting-approval') await accept(runId);
  expect((await host.waitFor(runId, ended)).status).toBe('completed');
  return rowsOf(runId);
}

type Refused = readonly [
  what: string,
  of: () => number,
  fields: Record<string, string>,
  status: number,
  id: string,
  words: string,
];

const REFUSED: readonly Refused[] = [
  ['no mode', () => 0, { mode: 'x' }, 400, 'mode', 'must be chosen'],
  ['what is no JSON', () => 0, { inputs: '{' }, 400, 'inputs', 'is not valid JSON'],
  [
    'what is no object',
    () => 0,
    { configurable: '3' },
    400,
    'configurable',
    'must be a JSON object',
  ],
  [
    'an input of a wrong type',
    () => 0,
    { inputs: '{"amount":"x"}' },
    400,
    'inputs',
    '(amount) must be of type number',
  ],
  [
    'a configuration out of range',
    () => 0,
    { configurable: '{"temperature":9}' },
    400,
    'configurable',
    '(temperature)',
  ],
  [
    'a replay that goes by something',
    () => 0,
    { mode: 'replay', model: 'm' },
    400,
    'mode',
    'a replay runs as its source did',
  ],
  [
    'an answer of the wrong shape',
    () => at('interrupt.resolved'),
    { answer: '7' },
    400,
    'answer',
    '',
  ],
  [
    'an answer that is too large',
    () => at('agent.toolReturned'),
    { answer: JSON.stringify('x'.repeat(100_000)) },
    413,
    'answer',
    'larger than permitted',
  ],
  [
    'a prompt that is too long',
    () => 0,
    { [`prompt.${AGENT}`]: 'x'.repeat(70_000) },
    400,
    'prompt0',
    '',
  ],
  ['a provider that is not here', () => 0, { provider: 'nowhere' }, 400, 'provider', ''],
];

describe('replay.md: a run is forked by a form', () => {
  it('a replay performs nothing and says the same', async () => {
    const runId = await forked(await formAt(0), { mode: 'replay' });
    await host.waitFor(runId, ended);
    const { body } = await host.api<{ fork: JsonObject }>(`/v1/runs/${runId}`);
    expect(body.fork).toEqual({ sourceRunId, fromSeq: 0, mode: 'replay' });
    const shown = await (await page(`/pages/runs/${runId}`, { headers: { cookie } })).text();
    expect(shown).toContain(`A replay of <a href="/pages/runs/${sourceRunId}">`);
  });

  it('another answer of a tool, where an event tells one', async () => {
    const fromSeq = at('agent.toolReturned');
    const { html } = await formAt(fromSeq);
    expect(html).toContain('What the tool gives here');
    expect(html).toContain('What the run had');
    const rows = await endOf(await forkAt(fromSeq, { answer: '{"now":"long ago"}' }));
    const [returned, ...more] = payloads(rows, 'agent.toolReturned');
    expect([returned, more]).toMatchObject([{ outcome: { now: 'long ago' } }, []]);
  });

  it('another answer of an agent that was called as a tool: its form says what becomes of its run', async () => {
    const runId = await host.startRun({ workflowId: ASKED.id });
    await host.waitFor(runId, ended);
    const from = (await rowsOf(runId)).findIndex(({ type }) => type === 'agent.toolReturned');
    const { html } = await formAt(from, runId);
    expect(html).toContain('What the agent gives here');
    expect(html).not.toContain('the tool is called again');
  });

  it('another answer of a model and of a human, and none elsewhere', async () => {
    const said = source.findLastIndex(({ type }) => type === 'agent.reasoned');
    expect((await formAt(said)).html).toContain('What the model says here');
    const resolved = at('interrupt.resolved');
    expect((await formAt(resolved)).html).toContain('What is answered here');
    for (const from of [0, at('agent.toolCalled'), source.length])
      expect((await formAt(from)).html).not.toContain('name="answer"');
    const runId = await forkAt(resolved, { answer: '{"action":"reject"}' });
    await host.waitFor(runId, ended);
    const rows = await rowsOf(runId);
    expect(payloads(rows, 'interrupt.resolved')).toMatchObject([
      { resumeValue: { action: 'reject' } },
    ]);
  });

  it('another prompt, model and configuration; what is left as it is, is not asked for', async () => {
    const form = await formAt(0);
    expect(form.html).toContain('Do what the script says.');
    const control = `prompt.${AGENT}`;
    const same = await forked(form, { mode: 'branch', [control]: 'Do what the script says.' });
    await endOf(same);
    const { body: plain } = await host.api<{ fork: JsonObject }>(`/v1/runs/${same}`);
    expect(plain.fork).toEqual({ sourceRunId, fromSeq: 0, mode: 'branch' });
    const runId = await forkAt(0, {
      [control]: 'Be careful.\r\nrule: strict',
      ...{ provider: 'scripted', model: 'another', configurable: '{"temperature":0.5}' },
    });
    const rows = await endOf(runId);
    expect(payloads(rows, 'agent.decided')).toMatchObject([{ decision: { refund: false } }]);
    const { body } = await host.api<{ fork: JsonObject }>(`/v1/runs/${runId}`);
    expect(body.fork.runOptionsOverlay).toEqual({
      agents: { [AGENT]: { systemPrompt: 'Be careful.\nrule: strict' } },
      configurable: { temperature: 0.5, ai: { provider: 'scripted', model: 'another' } },
    });
    // A fork of the fork begins with the prompt that this one goes by.
    const again = await page(formPath(0, runId), { headers: { cookie } });
    const html = await (
      await page(again.headers.get('location') ?? '', { headers: { cookie } })
    ).text();
    expect(html).toContain('Be careful.\nrule: strict');
  });

  it('tools as recorded', async () => {
    const runId = await forkAt(0, { tools: 'recorded' });
    const rows = await endOf(runId);
    expect(payloads(rows, 'agent.toolReturned').map(({ outcome }) => outcome)).toEqual(
      payloads(source, 'agent.toolReturned').map(({ outcome }) => outcome),
    );
    const { body } = await host.api<{ fork: JsonObject }>(`/v1/runs/${runId}`);
    expect(body.fork.runOptionsOverlay).toEqual({ tools: 'recorded' });
  });

  it('other inputs, from 0 alone; what is sensitive is not shown', async () => {
    const form = await formAt(0);
    expect(form.html).toContain('name="inputs"');
    expect(form.html).not.toContain('card-4711');
    expect((await formAt(1)).html).not.toContain('name="inputs"');
    const rows = await endOf(await forked(form, { mode: 'branch', inputs: '{"amount":99}' }));
    expect(payloads(rows, 'run.started')).toMatchObject([{ inputs: { amount: 99 } }]);
  });

  it('one form makes one fork, however often it is sent', async () => {
    const form = await formAt(0);
    const [one, two] = await Promise.all([
      forked(form, { mode: 'replay' }),
      forked(form, { mode: 'replay' }),
    ]);
    expect(two).toBe(one);
    const other = await post(form.path, { csrf: form.csrf, mode: 'branch' }, { cookie });
    expect([other.status, await other.text()]).toEqual([
      409,
      expect.stringContaining('has made a fork before, with other values'),
    ]);
  });

  it.each(REFUSED)(
    'what is wrong is told at its field: %s',
    async (_what, of, fields, status, id, words) => {
      const { path, csrf } = await formAt(of());
      const sent: Record<string, string> = { csrf, mode: 'branch', ...fields };
      const answer = await post(path, sent, { cookie });
      const html = await answer.text();
      expect(answer.status).toBe(status);
      expect(html).toContain('Not forked');
      expect(html).toContain('role="alert"');
      expect(html).toContain(`id="${id}-fault">`);
      expect(html).toContain(words);
    },
  );
});

describe('who may fork by a page', () => {
  it('who is signed in: nobody else is offered it, nor has it taken', async () => {
    const linked = await linkedTo(sourceRunId);
    const own = await (await page(`/pages/runs/${sourceRunId}`, { headers: { cookie } })).text();
    expect(own).toContain(`href="/pages/runs/${sourceRunId}/fork?from=0"`);
    expect(own).toContain(`fork?from=${at('agent.toolReturned')}">Other answer`);
    const alone = await (
      await page(`/pages/runs/${sourceRunId}`, { headers: { cookie: linked } })
    ).text();
    expect(alone).toContain(sourceRunId);
    expect(alone).not.toMatch(/\/fork|data-can-fork/);
    const { path, csrf } = await formAt(0);
    for (const other of [{}, { cookie: linked }] as Record<string, string>[]) {
      expect((await page(formPath(0), { headers: other })).status).toBe(401);
      expect((await post(path, { csrf, mode: 'replay' }, other)).status).toBe(401);
    }
    const send = async (fields: Record<string, string>, more: Record<string, string>) =>
      (await post(path, { mode: 'replay', ...fields }, { cookie, ...more })).status;
    expect(await send({ csrf: 'forged' }, {})).toBe(403);
    expect(await send({ csrf }, { origin: 'https://evil.example' })).toBe(403);
  });

  it('of runs of their own, from events that there are', async () => {
    const status = async (path: string) => (await page(path, { headers: { cookie } })).status;
    expect(await status(formPath(0, 'run-unknown'))).toBe(404);
    for (const from of [source.length + 1, -1, 'x', '1.5', '9'.repeat(30)])
      expect([from, await status(formPath(from))]).toEqual([from, 422]);
    expect(await status(formPath(source.length))).toBe(303);
  });
});

describe("the fork's page", () => {
  it('says where it left its source, and marks it; who sees it alone has no way to its source', async () => {
    const fromSeq = at('agent.toolReturned');
    const runId = await forkAt(fromSeq, { answer: '{"now":"a-secret-time"}' });
    await endOf(runId);
    const shownTo = async (own: string) =>
      (await page(`/pages/runs/${runId}`, { headers: { cookie: own } })).text();
    const html = await shownTo(cookie);
    expect(html).toContain(`/pages/runs/${runId}/diff?against=${sourceRunId}`);
    expect(html).toContain('It goes by another answer.');
    expect(html).toContain(`data-fork="{&quot;fromSeq&quot;:${fromSeq},`);
    expect(html.match(/class="left"/g)?.length).toBe(1);
    const alone = await shownTo(await linkedTo(runId));
    expect(alone).toContain(`A branch of <code>${sourceRunId}</code>`);
    expect(alone).not.toContain(`/pages/runs/${sourceRunId}`);
  });
});

describe.skipIf(!chromiumPath)('[chromium] from an event to the fork that it makes', () => {
  it.each([
    ['with its script', true],
    ['without script', false],
  ])('%s', async (_how, javaScriptEnabled) => {
    const browser = await launchChromium();
    try {
      const context = await browser.newContext({ javaScriptEnabled });
      const tab = await signedIn(host, context);
      const complaints: string[] = [];
      tab.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      await tab.goto(`${host.url}/pages/runs/${sourceRunId}`);
      const call = tab.locator('.item.tool');
      await call.getByRole('link', { name: 'Other answer' }).click();
      await tab.getByRole('heading', { name: /^Fork from event/ }).waitFor();
      await tab.getByLabel('What the tool gives here').fill('{"now": ');
      await tab.getByRole('button', { name: 'Fork the run' }).click();
      await tab.getByText('What the tool gives here is not valid JSON').waitFor();
      expect(await tab.getByLabel('What the tool gives here').inputValue()).toBe('{"now": ');
      if (javaScriptEnabled) expect(await graveFindings(tab)).toEqual([]);
      const picture = process.env.OPENWOP_TEST_PICTURES;
      if (picture) await tab.screenshot({ path: `${picture}/fork.png`, fullPage: true });
      await tab.getByLabel('What the tool gives here').fill('{"now": "long ago"}');
      await tab.getByRole('button', { name: 'Fork the run' }).click();
      await tab.getByText('this is the fork').waitFor();
      await endOf(/runs\/([^?]*)/.exec(tab.url())?.[1] ?? '');
      await tab.reload();
      await tab.locator('.item.end').waitFor();
      expect(await tab.locator('.left').count()).toBe(1);
      if (javaScriptEnabled) expect(await graveFindings(tab)).toEqual([]);
      if (picture) await tab.screenshot({ path: `${picture}/forked.png`, fullPage: true });
      await tab.getByRole('link', { name: 'Compare with its source' }).click();
      await tab.getByText('a tool gave another result (its overlay has this answer)').waitFor();
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
