// Two runs held against each other on a real host (RFC 0054): a replay and its source say the same; what differs is told
// where it stands, and why the runs went apart.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, BrowserContext } from 'playwright-core';
import type { RunComparison, RunDiffResponse } from '../../schemas/types.generated.ts';
import { ended } from '../facade/suite-parts.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { signedIn } from '../support/pictures.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';

const CLERK = 'local.diffs.clerk';
const CLOCK = 'local.diffs.clock';
const SECRETS = ['hunter2-is-secret', 'hunter3-is-secret'];
const asked = (id: string, agentId: string, value = 3) =>
  definition(
    id,
    [
      agentNode('think', agentId),
      node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
      node('set', 'core.setVariable', { config: { variableName: 'n', value } }),
    ],
    [edge('think', 'gate'), edge('gate', 'set')],
    {
      variables: [
        { name: 'n', type: 'number' },
        { name: 'who', type: 'string', defaultValue: 'Ada' },
        { name: 'secret', type: 'string', sensitive: true },
      ],
    },
  );

let temporal: TestTemporal;
let place: { readonly address: string; readonly namespace: string };
let folder: string;
let host: TestHost;
/** Runs that any test may read: two of them said yes, one said no, and one had asked for the time. */
let [a, alike, rejected, clocked] = ['', '', '', ''];

/** A host goes on with what another one did, by other files. */
async function start(): Promise<void> {
  host = await startTestHost({
    agentsDir: join(folder, 'agents'),
    fixturesDir: join(folder, 'definitions'),
    dataDir: join(folder, 'data'),
    temporal: place,
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-diffs-'));
  temporal = await startTestTemporal();
  place = { address: temporal.address, namespace: await temporal.namespace() };
  const agents = join(folder, 'agents');
  await writeCaller(agents, {
    ...{ agentId: CLERK, toolAllowlist: [] },
    turns: [{ chunks: ['Let ', 'me ', 'see.'], final: { decision: { told: 1 }, confidence: 1 } }],
  });
  await writeCaller(agents, {
    ...{ agentId: CLOCK, toolAllowlist: ['core:clock'] },
    turns: [
      { chunks: ['Let ', 'me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      { final: { decision: { told: 1 }, confidence: 1 } },
    ],
  });
  for (const each of [asked('compared', CLERK), asked('clocked', CLOCK)])
    await writeDefinition(join(folder, 'definitions'), each);
  await start();
  [a, alike, rejected, clocked] = await Promise.all([
    ran(),
    ran(),
    ran({}, 'reject'),
    ran({ workflowId: 'clocked' }),
  ]);
});

afterAll(async () => {
  await host?.stop();
  await temporal?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function answer(runId: string, action: string): Promise<void> {
  await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
  const body = { resumeValue: { action } };
  expect((await host.api(`/v1/runs/${runId}/interrupts/gate`, { body })).status).toBe(200);
}

async function ran(request: object = {}, action = 'accept'): Promise<string> {
  const runId = await host.startRun({ workflowId: 'compared', ...request });
  await answer(runId, action);
  await host.waitFor(runId, ended);
  return runId;
}

async function forked(of: object, runId: string): Promise<string> {
  const { body } = await host.api<{ runId: string }>(`/v1/runs/${runId}:fork`, { body: of });
  return body.runId;
}

const pathOf = (a: string, b: string) => `/v1/runs/${a}:diff?against=${b}`;
const comparedPath = (a: string, b: string) =>
  `/v1/host/openwop-temporal/runs/${a}/diff?against=${b}`;

/** Both views, which tell of the same first difference. */
async function differ(a: string, b: string) {
  const diff = await host.api<RunDiffResponse>(pathOf(a, b));
  const compared = await host.api<RunComparison>(comparedPath(a, b));
  expect([diff.status, compared.status]).toEqual([200, 200]);
  const { eventDiffs, divergedAtSeq } = diff.body;
  expect([diff.body.a, diff.body.b]).toEqual([a, b]);
  expect(divergedAtSeq).toBe(eventDiffs[0]?.seq ?? null);
  expect(compared.body.divergence?.seq ?? null).toBe(divergedAtSeq);
  expect(eventDiffs.map(({ seq }) => seq)).toEqual(
    eventDiffs.map(({ seq }) => seq).sort((one, other) => one - other),
  );
  return { diff: diff.body, compared: compared.body, text: diff.text + compared.text };
}

const NOTHING = { divergedAtSeq: null, eventDiffs: [], stateDiff: {} };

describe('RFC 0054: two runs that say the same', () => {
  it('a run and itself', async () => {
    const { diff, compared } = await differ(a, a);
    expect(diff).toEqual({ a, b: a, ...NOTHING });
    expect(compared).toMatchObject({ same: true, divergence: null, pinned: [], end: [] });
    expect(compared).not.toHaveProperty('truncated');
    expect(compared.steps.map(({ nodeId }) => nodeId)).toEqual(['think', 'gate', 'set']);
  });

  it('two runs of one definition, whatever ids and times they have', async () => {
    const { diff, compared } = await differ(a, alike);
    expect(diff).toEqual({ a, b: alike, ...NOTHING });
    expect(compared.same).toBe(true);
  });

  it('a run and its replay, from anywhere', async () => {
    const a = clocked;
    const { body } = await host.api<{ events: { type: string }[] }>(`/v1/runs/${a}/events/poll`);
    const inStream = body.events.findIndex(({ type }) => type === 'agent.reasoning.delta') + 1;
    for (const fromSeq of [inStream, body.events.length]) {
      const b = await forked({ mode: 'replay', fromSeq }, a);
      await host.waitFor(b, ended);
      const { diff, compared } = await differ(a, b);
      expect(diff).toEqual({ a, b, ...NOTHING });
      expect(compared.b).toMatchObject({ forkOf: a, fromSeq });
    }
  });
});

describe('RFC 0054: where two runs went apart, and why', () => {
  it('another answer of a human', async () => {
    const b = rejected;
    const { diff, compared } = await differ(a, b);
    const [first] = diff.eventDiffs;
    expect(first).toMatchObject({
      op: 'changed',
      aEvent: { runId: a, type: 'interrupt.resolved', sequence: diff.divergedAtSeq },
      bEvent: { runId: b, type: 'interrupt.resolved' },
    });
    const ops = diff.eventDiffs.map(({ op, aEvent, bEvent }) => [op, !aEvent, !bEvent]);
    expect(ops).toContainEqual(['removed', false, true]);
    expect(ops).toContainEqual(['added', true, false]);
    expect(diff.stateDiff).toMatchObject({
      '/status': { op: 'changed', a: 'completed', b: 'failed' },
      '/variables/n': { op: 'removed', a: 3 },
      '/error': { op: 'added', b: { code: 'approval_rejected' } },
    });
    expect(compared.divergence).toMatchObject({
      ...{ cause: 'answer', nodeId: 'gate', nodeName: 'gate' },
      differences: [{ pointer: '/resumeValue/action', a: 'accept', b: 'reject' }],
    });
    const [think, gate, set] = compared.steps;
    expect(think?.differences).toEqual([]);
    expect(gate?.differences).toContainEqual({ pointer: '/status', a: 'completed', b: 'failed' });
    expect(gate?.differences).toContainEqual({
      ...{ pointer: '/answers/0/value/action', a: 'accept', b: 'reject' },
    });
    expect(set).toMatchObject({ a: { status: 'completed' } });
    expect(set).not.toHaveProperty('b');
  });

  it("another result of a tool; the ids of calls are no difference, nor is a run's own", async () => {
    const [a, b] = [clocked, await ran({ workflowId: 'clocked' })];
    const { diff, compared } = await differ(a, b);
    expect(diff.eventDiffs.map(({ aEvent }) => aEvent?.type)).toEqual(['agent.toolReturned']);
    expect(compared.divergence).toMatchObject({ cause: 'tool-result', nodeId: 'think' });
    const pointers = compared.steps.flatMap(({ differences }) => differences.map((d) => d.pointer));
    expect(pointers).toEqual(['/calls/0/result/iso', '/calls/0/result/epochMs']);
    expect(compared.steps[0]?.a).toMatchObject({
      ...{ status: 'completed', confidence: 1 },
      inputTokens: expect.any(Number) as unknown,
      durationMs: expect.any(Number) as unknown,
    });
  });

  it('other inputs', async () => {
    const { diff, compared } = await differ(a, await ran({ inputs: { who: 'Bob' } }));
    expect(diff.divergedAtSeq).toBe(0);
    expect(compared.divergence?.cause).toBe('inputs');
    expect(compared.pinned).toEqual([
      { fact: 'inputs', differences: [{ pointer: '/inputs/who', a: 'Ada', b: 'Bob' }] },
    ]);
    expect(compared.end).toContainEqual({ pointer: '/variables/who', a: 'Ada', b: 'Bob' });
  });

  it('what is declared sensitive is in neither view', async () => {
    const [a, b] = [
      await ran({ inputs: { secret: SECRETS[0] } }),
      await ran({ inputs: { secret: SECRETS[1] } }),
    ];
    const { diff, text } = await differ(a, b);
    expect(diff).toEqual({ a, b, ...NOTHING });
    for (const secret of SECRETS) expect(text).not.toContain(secret);
  });

  it('a branch of the other, with another answer', async () => {
    const { body } = await host.api<{ events: { type: string }[] }>(`/v1/runs/${a}/events/poll`);
    const fromSeq = body.events.findIndex(({ type }) => type === 'interrupt.resolved');
    const b = await forked({ mode: 'branch', fromSeq }, a);
    await answer(b, 'reject');
    await host.waitFor(b, ended);
    const { diff, compared } = await differ(a, b);
    expect(diff.divergedAtSeq).toBe(fromSeq);
    expect(compared.divergence?.cause).toBe('answer');
    expect(compared.b).toMatchObject({ forkOf: a, fromSeq });
  });

  it('a branch by its overlay: another answer of a tool, another prompt', async () => {
    const a = clocked;
    const { body } = await host.api<{ events: { type: string }[] }>(`/v1/runs/${a}/events/poll`);
    const fromSeq = body.events.findIndex(({ type }) => type === 'agent.toolReturned');
    const value = { now: 'a long time ago' };
    const agents = { [CLOCK]: { systemPrompt: 'Do what you think.' } };
    const cases = [
      [fromSeq, { answer: { seq: fromSeq, value } }, 'tool-result', 'answer'],
      [0, { agents }, 'agents', 'agents'],
      // The tool is asked again, and tells another time.
      [fromSeq, { agents }, 'tool-result', undefined],
    ] as const;
    for (const [from, runOptionsOverlay, cause, overlay] of cases) {
      const b = await forked({ mode: 'branch', fromSeq: from, runOptionsOverlay }, a);
      await answer(b, 'accept');
      await host.waitFor(b, ended);
      const { compared } = await differ(a, b);
      expect([compared.divergence?.cause, compared.divergence?.overlay]).toEqual([cause, overlay]);
      const parts = Object.keys(runOptionsOverlay);
      expect(compared.b).toMatchObject({ forkOf: a, fromSeq: from, overlay: parts });
      if ('agents' in runOptionsOverlay)
        expect(compared.pinned[0]?.differences).toContainEqual({
          ...{ pointer: `/${CLOCK}/resolved/systemPrompt` },
          ...{ a: 'Do what the script says.', b: 'Do what you think.' },
        });
    }
  });

  it('of a run under way what it has stated is compared, and the rest is no difference', async () => {
    const b = await host.startRun({ workflowId: 'compared' });
    await host.waitFor(b, ({ status }) => status === 'waiting-approval');
    const { diff, compared } = await differ(a, b);
    expect(diff).toMatchObject({ divergedAtSeq: null, eventDiffs: [], truncated: true });
    expect(diff.stateDiff).toMatchObject({ '/status': { a: 'completed', b: 'waiting-approval' } });
    expect(compared.truncated).toBe(true);
    await answer(b, 'reject');
    await host.waitFor(b, ended);
    expect((await differ(a, b)).diff).not.toHaveProperty('truncated');
  });

  it('another manifest of the agent, prompts and all; another definition', async () => {
    await host.stop();
    const manifest = join(folder, 'agents', `${CLERK}.agent.json`);
    const text = await readFile(manifest, 'utf8');
    await writeFile(manifest, text.replace('Do what the script says.', 'Do what you think.'));
    await writeDefinition(join(folder, 'definitions'), asked('compared', CLERK, 4));
    await start();
    const b = await ran();
    const { diff, compared } = await differ(a, b);
    expect(compared.divergence).toMatchObject({ cause: 'agents', nodeId: 'think' });
    expect(diff.eventDiffs[0]?.aEvent?.type).toBe('prompt.composed');
    const [agents, workflow] = compared.pinned;
    expect(agents?.fact).toBe('agents');
    expect(agents?.differences).toContainEqual({
      ...{ pointer: `/${CLERK}/resolved/systemPrompt` },
      ...{ a: 'Do what the script says.', b: 'Do what you think.' },
    });
    expect(workflow).toEqual({
      fact: 'definition',
      differences: [{ pointer: '/nodes/2/config/value', a: 3, b: 4 }],
    });
    expect(compared.a.definitionDigest).not.toBe(compared.b.definitionDigest);
    expect(compared.end).toContainEqual({ pointer: '/variables/n', a: 3, b: 4 });
  });
});

describe('RFC 0054: refusals', () => {
  it('a run that is not named, unknown ones, and those of others', async () => {
    const theirs = 'run-of-somebody-else';
    const row = await host.stores.runs.find('default', a);
    if (!row) throw new Error('the run is not there');
    const input = { ...row.input, runId: theirs, tenant: 'other' };
    await host.stores.runs.accept({ ...row, runId: theirs, tenant: 'other', input });
    const refused = async (path: string) => {
      const { status, body } = await host.api<{ error: string }>(path);
      return [status, body.error];
    };
    for (const path of [pathOf, comparedPath]) {
      for (const other of ['run-unknown', theirs, 'a%20b', 'x'.repeat(200)])
        expect(await refused(path(a, other))).toEqual([404, 'run_not_found']);
      for (const other of ['run-unknown', theirs])
        expect(await refused(path(other, a))).toEqual([404, 'run_not_found']);
      for (const missing of [
        path(a, ''),
        path(a, '').replace(/\?.*/, ''),
        path(a, `${a}&against=b`),
      ])
        expect(await refused(missing)).toEqual([400, 'validation_error']);
    }
    const { status } = await host.api(pathOf(a, a), { headers: { authorization: '' } });
    expect(status).toBe(401);
  });
});

describe('the page of two runs side by side', () => {
  const page = (path: string, init: RequestInit = {}) =>
    fetch(`${host.url}${path}`, { redirect: 'manual', ...init });
  const cookiesOf = (answer: Response): string =>
    answer.headers
      .getSetCookie()
      .map((each) => each.split(';')[0] ?? '')
      .join('; ');
  const signedInCookie = async (): Promise<string> =>
    cookiesOf(
      await page('/pages/sign-in', {
        method: 'POST',
        body: new URLSearchParams({ key: host.apiKey }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      }),
    );

  it('is for who is signed in: a link to one run shows no other, and offers none', async () => {
    const b = rejected;
    const path = `/pages/runs/${a}/diff?against=${b}`;
    expect((await page(path)).status).toBe(401);
    const { body } = await host.api<{ url: string }>(
      `/v1/host/openwop-temporal/runs/${a}/page-link`,
      { body: {} },
    );
    const linked = {
      cookie: cookiesOf(
        await page(new URL(body.url).pathname + new URL(body.url).search, { method: 'POST' }),
      ),
    };
    expect((await page(path, { headers: linked })).status).toBe(401);
    const own = await page(`/pages/runs/${a}`, { headers: linked });
    expect([own.status, (await own.text()).includes('Compare with run')]).toEqual([200, false]);
    const headers = { cookie: await signedInCookie() };
    const shown = await page(path, { headers });
    expect([shown.status, shown.headers.get('content-security-policy')]).toEqual([
      200,
      expect.stringContaining("default-src 'none'"),
    ]);
    expect(await shown.text()).toContain('what was asked was answered otherwise');
    const asked = await page(`/pages/runs/${a}/diff`, { headers });
    expect([asked.status, await asked.text()]).toEqual([
      200,
      expect.stringContaining('Compare with run'),
    ]);
    const unknown = await page(`/pages/runs/${a}/diff?against=run-unknown`, { headers });
    expect([unknown.status, await unknown.text()]).toEqual([
      404,
      expect.stringContaining('There is no such run to compare with.'),
    ]);
    expect((await page(`/pages/runs/run-unknown/diff?against=${a}`, { headers })).status).toBe(404);
    expect((await page(`${path}&against=${a}`, { headers })).status).toBe(400);
  });

  describe.skipIf(!chromiumPath)('[chromium]', () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launchChromium();
    });
    afterAll(() => browser?.close());

    it.each([
      ['with its script', true],
      ['without script', false],
    ])("a run's page leads to it by the other run's id, %s", async (_how, javaScriptEnabled) => {
      const b = rejected;
      const context: BrowserContext = await browser.newContext({ javaScriptEnabled });
      const tab = await signedIn(host, context);
      const complaints: string[] = [];
      tab.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      await tab.goto(`${host.url}/pages/runs/${a}`);
      await tab.getByLabel('Compare with run').fill(b);
      await tab.getByRole('button', { name: 'Compare' }).click();
      await tab.getByRole('heading', { name: 'Where they went apart' }).waitFor();
      const verdict = await tab.locator('.verdict').textContent();
      expect(verdict).toBe('They went apart at gate: what was asked was answered otherwise.');
      expect(await tab.locator('.step').count()).toBe(3);
      expect(await tab.locator('.step[open]').count()).toBe(2);
      expect(await tab.getByRole('row', { name: '/status' }).count()).toBe(1);
      if (javaScriptEnabled) expect(await graveFindings(tab)).toEqual([]);
      expect(complaints).toEqual([]);
      const picture = process.env.OPENWOP_TEST_PICTURES;
      if (picture) await tab.screenshot({ path: `${picture}/diff.png`, fullPage: true });
      await tab.getByRole('link', { name: 'Why?' }).first().click();
      await tab.getByRole('heading', { name: 'Why?' }).waitFor();
      await context.close();
    });
  });
});
