// The run's page in a real browser: live stream, answers with and without JavaScript, phone width, strict policy.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import type { RunPageModel } from '../../src/pages/index.ts';
import { graveFindings } from '../support/axe.ts';
import { chromiumPath, launchChromium } from '../support/chromium.ts';
import { startPageServer, type PageServer } from './page-server.ts';
import { afterAnswer, eventsOf, question, STARTED_MS, untilQuestion } from './sample-run.ts';
import { refundDesk } from '../../src/demo/definition.ts';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import { definition, edge, node } from '../support/definitions.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import { standingVote } from '../support/votes.ts';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };

const waiting: RunPageModel = {
  snapshot: {
    runId: 'run-1',
    workflowId: 'refund-desk',
    status: 'waiting-approval',
    startedAt: new Date(STARTED_MS).toISOString(),
  },
  events: untilQuestion,
  stories: EVENT_STORIES,
  interrupts: [question],
  csrfToken: 'csrf-1',
  eventsUrl: '/events',
  answerUrlOf: (nodeId) => `/answers/${nodeId}`,
  stale: false,
  definition: refundDesk,
};
const completed: RunPageModel = {
  ...waiting,
  snapshot: {
    ...waiting.snapshot,
    status: 'completed',
    endedAt: new Date(STARTED_MS + 11_000).toISOString(),
  },
  events: [...untilQuestion, ...afterAnswer],
  interrupts: [],
};

/** A gate beside a step; the payment waits for both. */
const beside = definition(
  'payment',
  ['triage', 'check', 'pay', 'refuse'].map((id) => node(id, 'core.noop')),
  [
    edge('triage', 'pay'),
    edge('check', 'pay'),
    edge('triage', 'refuse', { triggerRule: 'any_failed' }),
  ],
);
const asking = (kind: string, data: JsonObject, check = 'running'): RunPageModel => ({
  ...waiting,
  snapshot: { ...waiting.snapshot, nodeStates: { check: { status: check } } },
  interrupts: [{ ...question, kind, data }],
  definition: beside,
});

describe.skipIf(!chromiumPath)('[chromium] the page of a run', () => {
  let browser: Browser;
  let server: PageServer;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    server = await startPageServer(waiting);
  });
  afterEach(async () => {
    await context.close();
    await server.stop();
  });

  /** `hasClock`: the test moves its time. */
  async function open(
    options: Parameters<Browser['newContext']>[0],
    hasClock = false,
  ): Promise<void> {
    context = await browser.newContext(options);
    page = await context.newPage();
    if (hasClock) await page.clock.install();
    complaints = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${server.url}/page`);
  }

  it('RFC 0024 shows events as they come, to the end, and breaks no policy', async () => {
    await open({ viewport: DESKTOP });
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await page.locator('[data-interrupt]').count()).toBe(1);
    server.push(afterAnswer.slice(0, 5));
    await page.locator('.reasoning.running .thought', { hasText: /^The refund $/ }).waitFor();
    server.push(afterAnswer.slice(5, 6));
    await page
      .locator('.reasoning.running .thought', { hasText: 'The refund is decided.' })
      .waitFor();
    server.model = completed;
    server.push(afterAnswer.slice(6));
    await page.getByRole('heading', { name: 'Run completed' }).waitFor();
    await page.locator('.status.completed .badge', { hasText: 'Completed' }).waitFor();
    await page.locator('[data-interrupt]').waitFor({ state: 'detached' });
    expect(await page.title()).toContain('Completed');
    expect(complaints).toEqual([]);
  });

  it('what the browser draws live is what the server renders', async () => {
    await open({ viewport: DESKTOP });
    await page.getByText('Live', { exact: true }).waitFor();
    server.model = completed;
    server.push(afterAnswer);
    await page.getByRole('heading', { name: 'Run completed' }).waitFor();
    const live = await page.locator('#timeline').innerText();
    await page.reload();
    expect(await page.locator('#timeline').innerText()).toBe(live);
  });

  it('rest-endpoints.md §SSE: after a break it goes on behind the last event, once each', async () => {
    await open({ viewport: DESKTOP });
    await page.getByText('Live', { exact: true }).waitFor();
    server.push(afterAnswer.slice(0, 8));
    await page.locator('.tool.running', { hasText: 'demo:orders.refund' }).waitFor();
    server.drop();
    await page.getByText('Connection lost').waitFor();
    server.push(afterAnswer.slice(8));
    await page.getByRole('heading', { name: 'Run completed' }).waitFor();
    expect(server.resumes).toEqual([undefined, afterAnswer[7]?.eventId]);
    expect(await page.locator('.tool', { hasText: 'demo:orders.refund' }).count()).toBe(1);
  });

  it('a page that was hidden for an hour closes its stream, and goes on behind the last event when it is shown', async () => {
    await open({ viewport: DESKTOP }, true);
    const live = page.getByText('Live', { exact: true });
    await live.waitFor();
    const hide = (hidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'));`,
      );
    server.push(afterAnswer.slice(0, 8));
    await page.locator('.tool.running', { hasText: 'demo:orders.refund' }).waitFor();
    // Shown again in time, it has the same stream.
    await hide(true);
    await page.clock.fastForward('59:00');
    await hide(false);
    await page.clock.fastForward('59:00');
    await live.waitFor();
    expect([server.open(), server.resumes.length]).toEqual([1, 1]);
    await hide(true);
    await page.clock.fastForward('59:00');
    expect(server.open()).toBe(1);
    await page.clock.fastForward('01:00');
    await expect.poll(() => server.open()).toBe(0);
    expect(await page.locator('#live').textContent()).toBe('');
    server.model = completed;
    server.push(afterAnswer.slice(8));
    await page.clock.fastForward(60_000);
    expect(await page.getByRole('heading', { name: 'Run completed' }).count()).toBe(0);
    await hide(false);
    await page.getByRole('heading', { name: 'Run completed' }).waitFor();
    await page.locator('[data-interrupt]').waitFor({ state: 'detached' });
    expect(server.resumes).toEqual([undefined, afterAnswer[7]?.eventId]);
    expect(complaints).toEqual([]);
  });

  // [I118]
  it('a log that was made again: the page is loaded again once, then it shows a link', async () => {
    await open({ viewport: DESKTOP });
    const live = page.getByText('Live', { exact: true });
    await live.waitFor();
    server.push(afterAnswer.slice(0, 4));
    await page.locator(`#e${afterAnswer[3]?.sequence}`).waitFor();
    const lost = server.log.splice(untilQuestion.length);
    const [paused] = eventsOf([{ type: 'run.paused', payload: {} }], untilQuestion.length);
    server.push([{ ...(paused as RunEventDoc), eventId: 'evt-again' }]);
    await page.waitForURL('**/pages/runs/run-1?notice=made-again');
    await live.waitFor();
    await page.locator(`#e${paused?.sequence}`).waitFor();
    expect(await page.locator(`#e${lost[3]?.sequence}`).count()).toBe(0);
    server.log.pop();
    const link = page.getByRole('link', { name: 'Load the page again.' });
    expect(await link.isVisible()).toBe(false);
    server.drop();
    await link.waitFor();
    expect(server.open()).toBe(0);
    expect(server.resumes).toEqual([undefined, undefined, 'evt-again']);
  });

  it('a log that was made again takes nothing that is typed: the page shows a link', async () => {
    await open({ viewport: PHONE });
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Answer the agent, and let it decide again').click();
    const typed = page.getByLabel('What should the agent know?');
    await typed.fill('The customer sent a photo');
    server.push(untilQuestion.slice(-1).map((event) => ({ ...event, eventId: 'evt-again' })));
    const link = page.getByRole('link', { name: 'Load the page again.' });
    await link.waitFor();
    await expect.poll(() => server.open()).toBe(0);
    expect(await typed.inputValue()).toBe('The customer sent a photo');
    await link.click();
    await page.waitForURL('**/pages/runs/run-1?notice=made-again');
  });

  it('what is being typed survives live events', async () => {
    await open({ viewport: PHONE });
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Answer the agent, and let it decide again').click();
    await page.getByLabel('What should the agent know?').fill('The customer sent a photo');
    // Both make the page take its questions from the server again.
    server.push(
      eventsOf(
        [
          { type: 'run.resumed', payload: {} },
          { type: 'run.resumed', payload: {} },
        ],
        untilQuestion.length,
      ),
    );
    await page.locator(`#e${untilQuestion.length + 1}`).waitFor();
    expect(await page.getByLabel('What should the agent know?').inputValue()).toBe(
      'The customer sent a photo',
    );
  });

  it('an open card shows votes, questions back and what follows now, and keeps what was typed', async () => {
    const odd = { action: '"odd" <b>', effect: 'end' } as const;
    const choices = offeredActions({ actions: ['accept', 'reject', 'ask', odd] });
    const gate = { title: 'Pay?', requiredApprovals: 2, choices };
    server.model = asking('approval', gate);
    await open({ viewport: DESKTOP });
    await page.getByText('Live', { exact: true }).waitFor();
    const card = page.locator('[data-interrupt]');
    await card.getByText('Ask something first').click();
    const typed = card.getByLabel('What you want to know');
    await typed.fill('Why so much?');
    let sequence = untilQuestion.length;
    const happens = (type: string, payload: JsonObject, model: RunPageModel) => {
      server.model = model;
      server.push(eventsOf([{ type, payload: { nodeId: 'triage', ...payload } }], sequence++));
    };
    const parts = () => card.locator('[data-live]').allTextContents();
    const votes = [standingVote('ada', { action: 'accept' }, {})];
    const resumeValue = { action: 'accept' };
    const vote = { voter: 'ada', effect: 'continue', resumeValue, votes: 1, needed: 2 };
    happens('openwop-temporal.voted', vote, asking('approval', { ...gate, votes, heard: 1 }));
    await card.getByText('1 of 2 approvals').waitFor();
    // Of what is filled in, as it was then: sent twice, it is one question back.
    const heard = async () => {
      const fields = await card.locator('input[name=heard]').all();
      return Promise.all(fields.map((field) => field.inputValue()));
    };
    expect(await heard()).toEqual(['1', '1', '0', '1']);
    const voted = { ...gate, votes, heard: 2, askedBack: [{ by: 'bob', text: 'For whom?' }] };
    happens('openwop-temporal.asked-back', { askedBy: 'bob' }, asking('approval', voted));
    await card.getByText('For whom?').waitFor();
    const before = await parts();
    const failure = { nodeId: 'check', error: { code: 'x', message: 'x' } };
    happens('node.failed', failure, asking('approval', voted, 'failed'));
    await expect.poll(parts).not.toEqual(before);
    expect(await typed.inputValue()).toBe('Why so much?');
    expect(await page.evaluate('document.activeElement.name')).toBe('reason');
    expect(await card.locator('.choice[open]').count()).toBe(1);
    expect(complaints).toEqual([]);
    const live = await parts();
    await page.reload();
    expect(await parts()).toEqual(live);
  });

  it('RFC 0005 a turn of somebody else is shown, and what is typed is said behind it', async () => {
    const said = { turns: [{ from: 'user', content: 'Hi' }], turnIndex: 1 };
    server.model = asking('conversation.exchange', said);
    await open({ viewport: DESKTOP });
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByLabel('What you say').fill('Hello');
    const turns = [...said.turns, { from: 'user', content: 'Anybody?' }];
    server.model = asking('conversation.exchange', { turns, turnIndex: 2 });
    const payload = { turn: { from: 'user', content: 'Anybody?' } };
    server.push(
      eventsOf(
        [{ type: 'conversation.exchanged', nodeId: 'triage', payload }],
        untilQuestion.length,
      ),
    );
    await page.locator('[data-interrupt]').getByText('Anybody?').waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    await expect.poll(() => server.answers.length).toBe(1);
    expect(Object.fromEntries(server.answers[0] ?? [])).toMatchObject({
      reason: 'Hello',
      turnIndex: '2',
    });
  });

  it('a form that is being sent keeps what it says had been said before it', async () => {
    const turns = [{ from: 'user', content: 'Hi' }];
    server.model = asking('conversation.exchange', { turns, turnIndex: 1 });
    await open({ viewport: DESKTOP });
    await page.getByText('Live', { exact: true }).waitFor();
    const form = page.locator('form', { has: page.getByLabel('What you say') });
    // The event alone: a test waits while a page is left.
    await form.dispatchEvent('submit');
    const turn = { from: 'user', content: 'Anybody?' };
    server.model = asking('conversation.exchange', { turns: [...turns, turn], turnIndex: 2 });
    const said = { type: 'conversation.exchanged', nodeId: 'triage', payload: { turn } };
    server.push(eventsOf([said], untilQuestion.length));
    await page.locator('[data-interrupt]').getByText('Anybody?').waitFor();
    expect(await page.locator('input[name=turnIndex]').inputValue()).toBe('1');
  });

  it('a question that goes or comes leaves the focus in another one', async () => {
    const other = { ...question, interruptId: 'int-0', nodeId: 'other' };
    server.model = { ...waiting, interrupts: [other, question] };
    await open({ viewport: DESKTOP });
    await page.getByText('Live', { exact: true }).waitFor();
    const card = page.locator('[data-interrupt=int-1]');
    await card.getByText('Answer the agent, and let it decide again').click();
    await card.getByLabel('What should the agent know?').fill('A photo came');
    const next = { ...question, interruptId: 'int-2' };
    server.model = { ...waiting, interrupts: [question, next] };
    server.push(eventsOf([{ type: 'run.resumed', payload: {} }], untilQuestion.length));
    await page.locator('[data-interrupt=int-0]').waitFor({ state: 'detached' });
    await page.locator('[data-interrupt=int-2]').waitFor();
    expect(await page.evaluate('document.activeElement.value')).toBe('A photo came');
  });

  it.each([
    { viewport: PHONE, colorScheme: 'dark' },
    { viewport: DESKTOP, colorScheme: 'light' },
  ] as const)(
    'axe finds nothing grave, and nothing is wider: $colorScheme, $viewport.width px',
    async (look) => {
      const events = untilQuestion.map((event) =>
        event.type === 'agent.reasoned'
          ? {
              ...event,
              payload: {
                ...(event.payload as object),
                reasoning: 'Longer than its box. '.repeat(200),
              },
            }
          : event,
      );
      const notice = { kind: 'error', text: 'Not taken.' } as const;
      server.model = { ...waiting, events, homeUrl: '/pages', notice };
      await open(look);
      await page.getByText('Live', { exact: true }).waitFor();
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width).toBeLessThanOrEqual(look.viewport.width);
      const folder = process.env.OPENWOP_TEST_PICTURES;
      if (folder)
        await page.screenshot({ path: `${folder}/run-${look.colorScheme}.png`, fullPage: true });
      // What is folded counts too.
      await page.evaluate(
        'document.querySelectorAll("details").forEach((each) => (each.open = true))',
      );
      expect(await graveFindings(page)).toEqual([]);
      server.model = completed;
      server.push(afterAnswer);
      await page.getByRole('heading', { name: 'Run completed' }).waitFor();
      await page.locator('[data-interrupt]').waitFor({ state: 'detached' });
      await page.evaluate(
        'document.querySelectorAll("details").forEach((each) => (each.open = true))',
      );
      expect(await graveFindings(page)).toEqual([]);
    },
  );

  it('what is typed for a cancel survives live events, until the run cannot be cancelled', async () => {
    const urls = { pause: '/pause', resume: '/resume', skip: '/skip', cancel: '/cancel' };
    const controls = { urls, anotherUrl: '/another', csrfToken: 'csrf-2' };
    server.model = { ...waiting, controls };
    await open({ viewport: PHONE });
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Cancel the run…').click();
    await page.getByLabel('Reason (optional)').first().fill('Nobody needs it');
    const status = 'running' as const;
    server.model = { ...server.model, snapshot: { ...waiting.snapshot, status } };
    server.push(eventsOf([{ type: 'run.resumed', payload: {} }], untilQuestion.length));
    await page.locator('.status.running').waitFor();
    expect(await page.getByLabel('Reason (optional)').first().inputValue()).toBe('Nobody needs it');
    server.model = { ...completed, controls };
    server.push(afterAnswer.map((event) => ({ ...event, sequence: event.sequence + 1 })));
    await page.getByText('Cancel the run…').waitFor({ state: 'detached' });
    expect(await page.getByRole('link', { name: 'Start another like this' }).count()).toBe(1);
  });

  it.each([true, false])('answers are plain forms (JavaScript: %s)', async (javaScriptEnabled) => {
    await open({ viewport: PHONE, javaScriptEnabled });
    await page.getByText('Change it first').click();
    await page.getByLabel('amountCents').fill('3000');
    await page.getByRole('button', { name: 'Accept with changes' }).click();
    await page.waitForURL('**/page');
    await page.getByRole('button', { name: 'Accept the decision' }).click();
    await expect.poll(() => server.answers.length).toBe(2);
    expect(Object.fromEntries(server.answers[0] ?? [])).toMatchObject({
      csrf: 'csrf-1',
      interruptId: 'int-1',
      action: 'edit-accept',
      'field.amountCents': '3000',
      'field.action': 'refund',
    });
    expect(Object.fromEntries(server.answers[1] ?? [])).toEqual({
      csrf: 'csrf-1',
      interruptId: 'int-1',
      action: 'accept',
    });
  });

  it('[I104] what turns the order around is shown as its escape, and sent back as it was', async () => {
    const decision = { order: 'A-\u202e7001', note: 'two  spaces\nand a line' };
    server.model = {
      ...waiting,
      interrupts: [{ ...question, data: { ...question.data, decision } }],
    };
    await open({ viewport: DESKTOP });
    const shown = page.locator('.question .value').first();
    expect(await shown.innerText()).toContain(String.raw`A-\u202e7001`);
    expect(await shown.innerText()).toContain('two  spaces\nand a line');
    await page.getByText('Change it first').click();
    await page.getByRole('button', { name: 'Accept with changes' }).click();
    await expect.poll(() => server.answers.length).toBe(1);
    const { editedDecision } = Object.fromEntries(server.answers[0] ?? []);
    expect(JSON.parse(editedDecision ?? '')).toEqual(decision);
  });

  it('with the keyboard alone: the first button is reached by Tab and pressed by Enter', async () => {
    await open({ viewport: DESKTOP });
    for (let at = 0; at < 5; at++) {
      await page.keyboard.press('Tab');
      const text = await page.evaluate('document.activeElement.textContent');
      if (text === 'Accept the decision and go on with it') break;
    }
    // Chromium does not close a context while a page that listens for being hidden is left for the next one.
    const loaded = page.waitForEvent('load');
    await page.keyboard.press('Enter');
    await expect.poll(() => server.answers[0]?.get('action')).toBe('accept');
    await loaded;
  });
});
