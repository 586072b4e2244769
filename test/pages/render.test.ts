// The pages as text: nothing a run says becomes markup, every state has its words, the script's modules are served.
import { describe, expect, it } from 'vitest';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import {
  PAGE_ASSETS,
  renderCausesPage,
  renderErrorPage,
  renderHomePage,
  renderLinkPage,
  renderRunPage,
  type CauseStep,
  type RunPageModel,
} from '../../src/pages/index.ts';
import { refundDesk } from '../../src/demo/definition.ts';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import { approvalQuestion, doubtQuestion } from '../../workflows/questions.ts';
import { RUN_STATUSES } from '../../src/rules/status.ts';
import type { OpenQuestion } from '../../src/words/question.ts';
import { renderAge, renderDate, renderLeft, renderMoment } from '../../src/pages/layout.ts';
import { renderValue } from '../../src/pages/timeline-html.js';
import type { JsonObject } from '../../src/rules/json.ts';
import { definition, edge, node } from '../support/definitions.ts';
import { EMPTY } from './sample-home.ts';
import { afterAnswer, eventsOf, question, STARTED_MS, untilQuestion } from './sample-run.ts';
import { standingVote } from '../support/votes.ts';

const model: RunPageModel = {
  snapshot: { runId: 'run-1', workflowId: 'refund-desk', status: 'waiting-approval' },
  events: untilQuestion,
  stories: EVENT_STORIES,
  interrupts: [question],
  csrfToken: 'csrf-1',
  eventsUrl: '/v1/runs/run-1/events',
  answerUrlOf: (nodeId) => `/pages/runs/run-1/interrupts/${nodeId}`,
  stale: false,
  nowMs: STARTED_MS + 60_000,
};

const EVERY = offeredActions({
  actions: [
    ...(['accept', 'edit-accept', 'reject', 'ask'] as const),
    { action: 'approve', effect: 'continue' },
    { action: 'deny', effect: 'end' },
    { action: 'refine', effect: 'route' },
  ],
});

const EVIL = `"><script>alert('x')</script>`;

describe('architecture §10 what a run says is text', () => {
  // [I48]
  it('in events, questions, names, notices and errors', () => {
    const html = renderRunPage({
      ...model,
      snapshot: { ...model.snapshot, workflowId: EVIL, error: { code: EVIL, message: EVIL } },
      events: eventsOf([
        { type: EVIL, payload: {} },
        { type: 'node.started', nodeId: EVIL, payload: { agent: { agentId: EVIL } } },
        { type: 'agent.reasoned', nodeId: EVIL, payload: { reasoning: EVIL } },
        {
          type: 'agent.toolCalled',
          nodeId: EVIL,
          payload: { toolName: EVIL, callId: EVIL, inputs: { [EVIL]: EVIL } },
        },
        { type: 'agent.decided', nodeId: EVIL, payload: { decision: [EVIL] } },
        { type: 'node.failed', nodeId: EVIL, payload: { error: { code: EVIL, message: EVIL } } },
      ]),
      interrupts: [
        {
          ...question,
          nodeId: EVIL,
          interruptId: EVIL,
          data: { decision: { [EVIL]: EVIL }, title: EVIL, description: EVIL },
        },
        {
          ...question,
          kind: 'clarification',
          data: { questions: [{ id: EVIL, question: EVIL, schema: { enum: [EVIL] } }] },
        },
        {
          ...question,
          kind: 'conversation.exchange',
          data: { title: EVIL, prompt: EVIL, turns: [{ speakerId: EVIL, content: EVIL }] },
        },
        {
          ...{ ...question, kind: 'approval' },
          data: {
            ...{ choices: offeredActions({ actions: ['ask', { action: EVIL, effect: 'end' }] }) },
            ...{ requiredApprovals: 2, votes: [standingVote(EVIL, { action: EVIL }, {})] },
            askedBack: [{ by: EVIL, text: EVIL }],
          },
        },
      ],
      definition: refundDesk,
      csrfToken: EVIL,
      notice: { kind: 'error', text: EVIL },
    });
    expect(html).not.toContain('<script>');
    expect(html.match(/<script/g)).toHaveLength(1);
    for (const part of ['heard', 'then'])
      expect(html).toContain(`data-live="${part} &quot;&gt;&lt;script&gt;`);
  });
  it('on the small pages', () => {
    const pages =
      renderLinkPage({ runId: EVIL, action: EVIL }) +
      renderErrorPage({ status: 410, title: EVIL, message: EVIL });
    expect(pages).not.toContain('<script');
  });
  it('there is no inline script or style that a strict policy would refuse', () => {
    const html = renderRunPage(model);
    expect(html).not.toMatch(/ style=|<style| on[a-z]+=|javascript:/);
  });
});

/** The timeline as it is read. */
const itemsOf = (html: string) => /<ol id="timeline"[^>]*>([\s\S]*?)<\/ol>/.exec(html)?.[1];

describe('what the page shows', () => {
  it.each(RUN_STATUSES)('a run that is %s', (status) => {
    expect(renderRunPage({ ...model, snapshot: { ...model.snapshot, status } })).toContain(
      `class="status ${status}"`,
    );
  });
  it('a status that this build does not know, as text', () => {
    const status = '<i>odd</i>' as (typeof RUN_STATUSES)[number];
    const html = renderRunPage({ ...model, snapshot: { ...model.snapshot, status } });
    expect(html).toContain('&lt;i&gt;odd');
    expect(html).not.toContain('<i>odd');
  });
  it('the deadline, absolute and relative, and what follows a yes', () => {
    const html = renderRunPage({ ...model, definition: refundDesk });
    expect(html).toContain(`datetime="${new Date(question.deadlineMs ?? 0).toISOString()}"`);
    expect(html).toContain('3 days left');
    expect(html).toMatch(/<b>Pay the refund<\/b> if action is refund/);
  });
  it('a question whose time is up, and one without limit', () => {
    expect(renderRunPage({ ...model, nowMs: (question.deadlineMs ?? 0) + 1 })).toContain(
      'time is up',
    );
    const open = { ...question, deadlineMs: undefined };
    expect(renderRunPage({ ...model, interrupts: [open] })).toContain('No time limit');
  });
  it('RFC 0002 §F confidence against the threshold', () => {
    expect(renderRunPage(model)).toContain('55 % sure, below the required 70 %');
  });
  it('architecture §3.3 says when it may be old', () => {
    expect(renderRunPage({ ...model, stale: true })).toContain('cannot be reached');
    expect(renderRunPage(model)).not.toContain('cannot be reached');
  });
  it('an event of a type that the table does not have is a note of its name', () => {
    const events = eventsOf([{ type: 'openwop-temporal.note', payload: {} }]);
    expect(itemsOf(renderRunPage({ ...model, events }))).toContain('openwop-temporal.note');
  });
  it('what a call tells while it works stands with the call, its last words first to stay', () => {
    const call = (payload: Record<string, unknown>, type: string) => ({
      type,
      nodeId: 'n',
      payload: { agentId: 'a', toolName: 't/slow', callId: 'c-1', ...payload },
    });
    const chunk = (text: string) =>
      call({ chunk: text, channel: 'tool.status', isLast: false }, 'output.chunk');
    const told = [call({ inputs: {} }, 'agent.toolCalled'), chunk(EVIL), chunk('x'.repeat(5_000))];
    const running = renderRunPage({ ...model, events: eventsOf(told), interrupts: [] });
    expect(running).toContain('<details open><summary>Told</summary>');
    expect(itemsOf(running)).not.toContain('output.chunk');
    expect(running).toContain('x'.repeat(4_000));
    expect(running).not.toContain('x'.repeat(4_001));
    const events = eventsOf([...told, call({ outcome: { ok: true } }, 'agent.toolReturned')]);
    const returned = renderRunPage({ ...model, events, interrupts: [] });
    expect(returned).toContain('<details><summary>Told</summary>');
  });
  it('seed 003 §3.3 a run that began here, and the run that this one began in, with their pages', () => {
    const dispatched = { childRunId: 'run-2"', childWorkflowId: 'agent:clerk' };
    const html = renderRunPage({
      ...model,
      snapshot: { ...model.snapshot, parentRunId: 'run-0' },
      events: eventsOf([{ type: 'node.dispatched', nodeId: 'boss', payload: dispatched }]),
    });
    expect(html).toContain('Starts agent:clerk');
    expect(html).toContain('<a href="/pages/runs/run-2%22">Its run</a>');
    expect(html).toContain('<a href="/pages/runs/run-0">The run that started this one</a>');
  });

  // [I97]
  it('of a run below that cannot be read, that it may ask, and why nobody can tell', () => {
    const unreadable = { code: 'history_undecodable', message: `No key ${EVIL}.` } as const;
    const below = [{ runId: EVIL, workflowId: EVIL, unreadable }];
    const html = renderRunPage({ ...model, below });
    expect(html).toContain('A run below may ask');
    expect(html).toContain('Cannot be read now: No key');
    expect(html).not.toContain(EVIL);
  });

  it('seed 003 §3.4 what the runs below ask, with the way to where it is answered', () => {
    const below = { runId: EVIL, workflowId: EVIL, interrupt: { ...question, interruptId: 'b' } };
    const html = renderRunPage({ ...model, below: [below] });
    expect(html.match(/class="card question"/g)).toHaveLength(2);
    expect(html).toContain(
      `<a href="/pages/runs/${encodeURIComponent(EVIL)}">Answer on its page</a>`,
    );
    expect(html).not.toContain(EVIL);
  });

  const step: CauseStep = {
    ...{ eventId: EVIL, runId: EVIL, sequence: 3, type: EVIL, part: 'call', nodeName: EVIL },
    timestampMs: STARTED_MS,
  };

  it.each(['nothing', 'more', 'outside', 'hidden'] as const)(
    'seed 003 §1.2 the page of causes is text, and says what stands behind the last one: %s',
    (rest) => {
      const html = renderCausesPage({ runId: 'run-1', event: step, causes: [step], rest });
      expect(html).not.toContain(EVIL);
      const words = {
        nothing: 'Here it began',
        more: 'more causes',
        outside: 'outside',
        hidden: 'does not show',
      };
      expect(html).toContain(words[rest]);
    },
  );

  it('a call that was refused is shown, although it was never made', () => {
    const error = { code: 'forbidden', message: `The tool ${EVIL} is not available.` };
    const payload = {
      agentId: 'a',
      toolName: 'demo:gone',
      callId: 'c-9',
      status: 'forbidden',
      error,
    };
    const events = eventsOf([{ type: 'agent.toolReturned', nodeId: 'n', payload }]);
    const html = renderRunPage({ ...model, events, interrupts: [] });
    expect(html).toContain('item tool refused');
    expect(html).toContain('demo:gone');
    expect(html).toContain('is not available.');
    expect(html).not.toContain(EVIL);
  });
  it('a call of which nobody knows whether it happened is shown as doubtful, not as failed [I99]', () => {
    const error = {
      code: 'effect_in_doubt',
      message: 'It is not known whether the effect happened.',
    };
    const ids = { agentId: 'a', toolName: 'demo:pay', callId: 'c-9' };
    const events = eventsOf([
      { type: 'agent.toolReturned', nodeId: 'n', payload: { ...ids, status: 'error', error } },
    ]);
    const html = renderRunPage({ ...model, events, interrupts: [] });
    expect(html).toContain('item tool doubtful');
    expect(html).toContain('<b>doubtful</b>');
    expect(html).toContain(error.message);
  });
  it('the answer of an agent stands once, as its decision', () => {
    const payload = { nodeId: 'n', runId: 'r', chunk: '{"say":"only once"}', isLast: true };
    const events = eventsOf([{ type: 'output.chunk', nodeId: 'n', payload }]);
    const html = renderRunPage({ ...model, events, interrupts: [] });
    expect(html).not.toContain('only once');
    expect(itemsOf(html)).toBe('');
  });
  it("a call that needs a human's word: its arguments, and nothing else of it", () => {
    const data = {
      artifactType: 'tool-call',
      ...approvalQuestion('a', 't/pay'),
      artifactData: { toolId: 't/pay', callId: 'call-77', arguments: { amount: 41_234 } },
    };
    const asked = { ...question, kind: 'approval', data };
    const html = renderRunPage({ ...model, interrupts: [asked] });
    expect(html).toContain('May a call t/pay?');
    expect(html).toContain('41234');
    expect(html).not.toContain('call-77');
    expect(html).toContain('Call it once');
  });
  it('the end with its result', () => {
    const html = renderRunPage({
      ...model,
      events: [...untilQuestion, ...afterAnswer],
      interrupts: [],
    });
    expect(html).toContain('Run completed');
    expect(html).toContain('R-1');
    expect(html).not.toContain('<form');
  });
  it('a failed run with its code', () => {
    const events = eventsOf([
      {
        type: 'run.failed',
        payload: { error: { code: 'interrupt_timeout', message: 'Nobody answered.' } },
      },
    ]);
    expect(renderRunPage({ ...model, events, interrupts: [] })).toContain(
      'interrupt_timeout: Nobody answered.',
    );
  });
});

describe('the forms of a question', () => {
  const actionsOf = (interrupt: Partial<OpenQuestion>) => {
    const html = renderRunPage({ ...model, interrupts: [{ ...question, ...interrupt }] });
    return [...html.matchAll(/name="action" value="([a-z-]+)"/g)]
      .map(([, action]) => action)
      .sort();
  };
  it.each<[string, Partial<OpenQuestion>, string[]]>([
    ['low confidence', {}, ['accept', 'answers', 'edit-accept', 'reject']],
    [
      'approval, everything allowed',
      { kind: 'approval', data: { title: 't', choices: EVERY } },
      ['accept', 'approve', 'ask', 'deny', 'edit-accept', 'refine', 'reject'],
    ],
    [
      'approval, two actions',
      { kind: 'approval', data: { actions: ['accept', 'reject'] } },
      ['accept', 'reject'],
    ],
    [
      'approval by its legacy name',
      { kind: 'approval', data: { actions: ['edit'] } },
      ['edit-accept'],
    ],
    [
      'an effect in doubt',
      {
        kind: 'approval',
        data: { artifactType: 'effect-in-doubt', ...doubtQuestion('a:b', 'Cut off.') },
      },
      ['accept', 'edit-accept', 'reject'],
    ],
    [
      "a call of an agent's tool",
      {
        kind: 'approval',
        data: { artifactType: 'tool-call', ...approvalQuestion('a', 'a:b') },
      },
      ['accept', 'reject'],
    ],
    [
      'clarification',
      { kind: 'clarification', data: { questions: [{ id: 'q', question: 'Q?' }] } },
      ['answers'],
    ],
    [
      'RFC 0005 a conversation: a turn more, or its close',
      { kind: 'conversation.exchange', data: { turns: [{ from: 'user', content: 'Hi' }] } },
      ['close', 'say'],
    ],
    ['an external event', { kind: 'external-event', data: { eventType: 'e' } }, []],
  ])('interrupt.md: %s', (_, interrupt, actions) => {
    expect(actionsOf(interrupt)).toEqual(actions);
  });
  it('each answer has a form, what it does as its label, and below it what follows', () => {
    const gate = { ...question, nodeId: 'gate', kind: 'approval', data: { choices: EVERY } };
    const workflow = definition(
      'payment',
      ['gate', 'pay', 'tell'].map((id) => node(id, 'core.noop', { name: `${id}!` })),
      [edge('gate', 'pay'), edge('gate', 'tell', { triggerRule: 'any_failed' })],
    );
    const html = renderRunPage({ ...model, definition: workflow, interrupts: [gate] });
    const forms = html.match(/<form[\s\S]*?<\/form>/g) ?? [];
    const followed = forms.map((form) => [
      /name="action" value="([^"]*)"/.exec(form)?.[1],
      /<div class="next"[^>]*>([\s\S]*?)<\/div>/.exec(form)?.[1]?.replaceAll(/<[^>]*>/g, ''),
    ]);
    const stands = 'Then: the question stays open; its deadline does not change.';
    expect(followed).toEqual([
      ['accept', 'Then: pay!'],
      ['edit-accept', 'Then: pay!'],
      ['reject', 'Then: tell!'],
      ['ask', stands],
      ['approve', 'Then: pay!'],
      ['deny', 'Then: tell!'],
      ['refine', 'Then: the run is complete. Nothing more is done.'],
    ]);
  });
  it('what follows describes the button, in each form by an id of its own', () => {
    const html = renderRunPage({ ...model, definition: refundDesk });
    const forms = html.match(/<form[\s\S]*?<\/form>/g) ?? [];
    const ids = forms.map((form) => /<button[^>]* aria-describedby="([^"]*)"/.exec(form)?.[1]);
    expect(new Set(ids).size).toBe(forms.length);
    forms.forEach((form, at) => expect(form).toContain(`<div class="next" id="${ids[at]}"`));
    expect(renderRunPage(model)).not.toContain('aria-describedby');
  });
  it('answers that a definition calls as the host calls others have a field for a reason, and no other', () => {
    const names = ['answers', 'say', 'close'];
    const actions = names.map((action) => ({ action, effect: 'end' as const }));
    const choices = offeredActions({ actions: ['accept', ...actions] });
    const html = renderRunPage({
      ...model,
      interrupts: [{ ...question, kind: 'approval', data: { choices } }],
    });
    const forms = html.match(/<form[\s\S]*?<\/form>/g) ?? [];
    const fields = forms.map((form) =>
      [...form.matchAll(/name="([^"]*)"/g)].map(([, name]) => name).slice(3),
    );
    expect(fields).toEqual([[], ['reason'], ['reason'], ['reason']]);
  });
  it('interrupt-profiles.md §quorum: how far the votes are, and what was asked about it', () => {
    const asked = (data: JsonObject) =>
      renderRunPage({ ...model, interrupts: [{ ...question, kind: 'approval', data }] });
    const edited = { action: 'edit-accept', editedArtifactData: { amount: 5 } };
    const html = asked({
      ...{ choices: EVERY, requiredApprovals: 2, rejectionPolicy: 'majority' },
      votes: [
        standingVote('eve', edited, { reason: 'Enough <i>so</i>.', comment: 'Sorry.' }),
        standingVote('bob', { action: 'reject' }, { isCut: true, seq: 7 }),
      ],
      askedBack: [{ by: 'ada', text: 'For <b>whom</b>?' }],
    });
    expect(html).toContain('1 of 2 approvals, 1 of 2 against');
    expect(html).toContain('Accept with changes: 1 of 2');
    expect(html).toContain('<b>eve</b><p>Enough &lt;i&gt;so&lt;/i&gt;.</p><p>Sorry.</p>');
    expect(html).toMatch(/Accept with changes: 1 of 2[^]*amount[^]*5[^]*<b>eve<\/b>/);
    expect(html).toMatch(/Against it: 1 of 2[^]*<b>bob<\/b><p>reject<\/p><p>[^<]*event 7 has it/);
    expect(html).toMatch(/<b>ada<\/b><p>For &lt;b&gt;whom&lt;\/b&gt;\?<\/p>/);
    expect(asked({ choices: EVERY, requiredApprovals: 2 })).toContain('0 of 2 approvals');
    expect(asked({ choices: EVERY })).not.toContain('approvals');
  });
  it('a form of a question that may stay open says how much had been heard of it, and no other does', () => {
    const heardIn = (data: JsonObject) =>
      renderRunPage({ ...model, interrupts: [{ ...question, kind: 'approval', data }] }).match(
        /(?<=name="heard" value=")[^"]*/g,
      ) ?? [];
    const [accept, reject] = [EVERY[0]!, EVERY.find(({ action }) => action === 'reject')!];
    const choices = [accept, reject];
    expect(heardIn({ choices })).toEqual([]);
    expect(heardIn({ choices, requiredApprovals: 2 })).toEqual(['0', '0']);
    expect(heardIn({ choices, requiredApprovals: 2, heard: 3 })).toEqual(['3', '3']);
    const asking = offeredActions({ actions: ['accept', 'ask'] });
    expect(heardIn({ choices: asking, heard: 1 })).toEqual(['1', '1']);
  });
  it('a turn of a conversation carries the place that it was said at', () => {
    const data = { turns: [{ from: 'user', content: 'Hi' }], turnIndex: 2 };
    const html = renderRunPage({
      ...model,
      interrupts: [{ ...question, kind: 'conversation.exchange', data }],
    });
    const forms = html.match(/<form[\s\S]*?<\/form>/g) ?? [];
    const said = forms.filter((form) => form.includes('name="action" value="say"'));
    expect(said).toHaveLength(1);
    expect(said[0]).toContain('name="turnIndex" value="2"');
  });
  it('every form carries the token and names the interrupt that it answers', () => {
    const html = renderRunPage(model);
    const forms = html.match(/<form[\s\S]*?<\/form>/g) ?? [];
    expect(forms.length).toBe(4);
    for (const form of forms) {
      expect(form).toContain('name="csrf" value="csrf-1"');
      expect(form).toContain('name="interruptId" value="int-1"');
      expect(form).toContain('action="/pages/runs/run-1/interrupts/triage"');
    }
  });
});

describe('assets', () => {
  const modules = PAGE_ASSETS.filter(({ type }) => type === 'text/javascript');
  /** By imports, from where a page starts. */
  const reached = (path: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(path)) return seen;
    seen.add(path);
    const text = modules.find((module) => module.path === path)?.text() ?? '';
    for (const [, from = ''] of text.matchAll(/^import [^;]* from '([^']*)';$/gm))
      reached(new URL(from, `http://host${path}`).pathname, seen);
    return seen;
  };
  it.each([
    ['/pages/live.js', () => renderRunPage(model)],
    ['/pages/home-live.js', () => renderHomePage(EMPTY)],
  ])(
    'a page starts one module, %s, and asks for every other that it needs at once',
    (script, render) => {
      const html = render();
      const started = [...html.matchAll(/<script type="module" src="([^"]*)">/g)].map(
        ([, src]) => src,
      );
      const preloaded = [...html.matchAll(/<link rel="modulepreload" href="([^"]*)">/g)];
      expect(started).toEqual([script]);
      expect([...preloaded.map(([, href]) => href), ...started].sort()).toEqual(
        [...reached(script)].sort(),
      );
    },
  );
  it.each(modules)('$path imports only what is served beside it', ({ path, text }) => {
    const imports = [...text().matchAll(/^import [^;]* from '([^']*)';$/gm)].map(
      ([, from]) => from,
    );
    const base = `http://host${path}`;
    const addresses = imports.map((from) => new URL(from ?? '', base).pathname);
    const served = modules.map((module) => module.path);
    expect(addresses.filter((address) => !served.includes(address))).toEqual([]);
  });
  it('the style is there', () => {
    const style = PAGE_ASSETS.find(({ type }) => type === 'text/css');
    expect(style?.text()).toContain(':root');
  });
});

describe('a JSON value for people', () => {
  const cases: readonly (readonly [string, unknown, string])[] = [
    [
      'a table in a table',
      { person: 'Ada', review: { risk: 'high', limits: { days: 30 } } },
      '<dl class="value"><dt>person</dt><dd>Ada</dd><dt>review</dt><dd><dl class="value"><dt>risk</dt><dd>high</dd><dt>limits</dt><dd><dl class="value"><dt>days</dt><dd>30</dd></dl></dd></dl></dd></dl>',
    ],
    [
      'a list of scalars',
      { tags: ['a', 2, null] },
      '<dl class="value"><dt>tags</dt><dd><ul><li>a</li><li>2</li><li>null</li></ul></dd></dl>',
    ],
    [
      'names and texts of all depths are text',
      { '<b>': { '<i>': ['<u>'] } },
      '<dl class="value"><dt>&lt;b&gt;</dt><dd><dl class="value"><dt>&lt;i&gt;</dt><dd><ul><li>&lt;u&gt;</li></ul></dd></dl></dd></dl>',
    ],
  ];
  it.each(cases)('%s', (_name, value, html) => {
    expect(renderValue(value)).toBe(html);
  });
  it.each([
    ['too deep', { a: { b: { c: { d: 1 } } } }],
    ['too many', { a: Object.fromEntries([...Array(13).keys()].map((n) => [n, n])) }],
    ['empty inside', { a: {} }],
    ['a list of objects', { a: [{ b: 1 }] }],
    ['a list', [1, 2]],
  ])('%s: as JSON', (_name, value) => {
    expect(renderValue(value)).toMatch(/^<pre class="value" /);
  });
});

// [I97]
it.each([
  ['a date', () => renderDate(9e15)],
  ['a moment', () => renderMoment(9e15)],
  ['an age', () => renderAge(9e15, STARTED_MS)],
  ['the time left', () => renderLeft(9e15, STARTED_MS)],
])('a damaged time stops no page: %s', (_form, render) => {
  expect(render()).toBe('at a time that cannot be read');
});
