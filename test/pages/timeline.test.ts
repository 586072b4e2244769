// What the timeline makes of events that belong together by an id, and not by their node alone.
import { describe, expect, it } from 'vitest';
import { emptyTimeline, foldEvent, movesHead, type Timeline } from '../../src/pages/timeline.js';
import { renderItem } from '../../src/pages/timeline-html.js';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import { eventsOf } from './sample-run.ts';

type Told = Parameters<typeof eventsOf>[0][number];

function folded(...told: Told[]): Timeline {
  const timeline = emptyTimeline({ names: {}, stories: EVENT_STORIES });
  for (const event of eventsOf(told)) foldEvent(timeline, event);
  return timeline;
}

const started = (attempt: number): Told => ({
  type: 'node.started',
  nodeId: 'n',
  payload: { nodeId: 'n', typeId: 'core.agent', attempt },
});
const asks = (id: string): Told[] => [
  {
    type: 'node.suspended',
    nodeId: 'n',
    payload: { nodeId: 'n', interruptId: id, kind: 'approval', key: `key of ${id}` },
  },
  {
    type: 'interrupt.requested',
    nodeId: 'n',
    payload: { kind: 'approval', key: `key of ${id}`, data: { title: id } },
  },
];
const answers = (id: string): Told => ({
  type: 'interrupt.resolved',
  nodeId: 'n',
  payload: { nodeId: 'n', interruptId: id, resumeValue: { action: 'accept' }, resolvedBy: id },
});

// [I97]
it('an event with a damaged time is shown without one, and without how long it took', () => {
  const timeline = emptyTimeline({ names: {}, stories: EVENT_STORIES });
  const [begins, asked, shown, answered, ends] = eventsOf([
    ...[started(0), ...asks('a'), answers('a')],
    { type: 'node.completed', nodeId: 'n', payload: { nodeId: 'n', outputs: {} } },
  ]);
  const damaged = (event: object | undefined) => ({
    ...(event as ReturnType<typeof eventsOf>[number]),
    ...{ timestamp: '1970-01-01T00:00:00.000Z', unreadable: { code: 'history_undecodable' } },
  });
  for (const event of [damaged(begins), asked, shown, damaged(answered), ends])
    if (event) foldEvent(timeline, event);
  const html = timeline.items.map((item) => renderItem(item));
  expect(html[0]).toContain('at a time that cannot be read');
  expect(html.join()).not.toContain('00:00:00');
  expect(timeline.items.map((item) => item.tookMs)).toEqual([undefined, undefined]);
});

describe('two questions of one node', () => {
  const questions = ({ items }: Timeline) =>
    items
      .filter(({ kind }) => kind === 'question')
      .map(({ title, state, by }) => [title, state, by]);
  const stateOfStep = ({ items }: Timeline) => items.find(({ kind }) => kind === 'step')?.state;

  it('are each closed by their own answer; the node waits until the last one', () => {
    const one = folded(started(0), ...asks('a'), ...asks('b'), answers('b'));
    expect(questions(one)).toEqual([
      ['a', 'waiting', undefined],
      ['b', 'done', 'b'],
    ]);
    expect(stateOfStep(one)).toBe('waiting');
    const both = folded(started(0), ...asks('a'), ...asks('b'), answers('b'), answers('a'));
    expect(questions(both)).toEqual([
      ['a', 'done', 'a'],
      ['b', 'done', 'b'],
    ]);
    expect(stateOfStep(both)).toBe('running');
  });
});

it('an answered question shows what was asked', () => {
  const [suspended, asked] = asks('a') as [Told, Told];
  const data = { title: 'Pay?', artifactData: { to: '<b>X</b>', amount: 900 } };
  const { items } = folded(
    ...[started(0), suspended, { ...asked, payload: { ...asked.payload, data } }],
    answers('a'),
  );
  const question = items.find(({ kind }) => kind === 'question')!;
  const html = renderItem(question);
  expect(html).toContain('900');
  expect(html).toContain('&lt;b&gt;X&lt;/b&gt;');
  expect(html).toContain('accept');
});

describe('interrupt-profiles.md §quorum: what people say while the question stands', () => {
  const said = (type: string, payload: Told['payload']) =>
    folded(started(0), ...asks('a'), { type, nodeId: 'n', payload }).items.at(-1);
  it('a vote with a content shows it, and the protocol’s event beside it tells nothing more', () => {
    const resumeValue = { action: 'edit-accept', editedArtifactData: { amount: 5 } };
    const tally = { votes: 1, needed: 2 };
    const payload = { voter: 'ada', effect: 'continue', resumeValue, ...tally };
    const item = said('openwop-temporal.voted', payload);
    expect(renderItem(item!)).toContain('amount');
    expect(said('approval.granted', { gateId: 'n', principal: 'ada' })?.kind).toBe('question');
  });

  it.each<[string, Told['payload'], string, string?]>([
    [
      'openwop-temporal.voted',
      {
        ...{ voter: 'ada', effect: 'continue', votes: 1, needed: 2 },
        resumeValue: { action: 'accept' },
      },
      'ada votes accept: 1 of 2 for it',
    ],
    [
      'openwop-temporal.voted',
      {
        ...{ voter: 'bob', effect: 'end', votes: 1, needed: 1 },
        resumeValue: { action: 'deny', reason: 'Too much.', comment: 'Sorry.' },
      },
      'bob votes deny: 1 of 1 against it',
      'Too much.\nSorry.',
    ],
    [
      'openwop-temporal.asked-back',
      { askedBy: 'cyd', text: 'For whom?' },
      'cyd asks about it',
      'For whom?',
    ],
  ])('%s is a note of its own', (type, payload, title, text) => {
    const item = said(type, payload);
    expect([item?.kind, item?.title, item?.text]).toEqual(['note', title, text]);
  });
});

it.each([
  ['approval_rejected', 'declined'],
  ['escalation_rejected', 'declined'],
  ['interrupt_timeout', 'failed'],
])('a step that ended with %s is %s', (code, state) => {
  const error = { code, message: 'x' };
  const end: Told = { type: 'node.failed', nodeId: 'n', payload: { nodeId: 'n', error } };
  expect(folded(started(0), end).items.map((item) => item.state)).toEqual([state]);
});

it('the head moves by what is said to a question, and by steps and values while one is open', () => {
  const moved = (timeline: Timeline) =>
    [
      ...['openwop-temporal.voted', 'openwop-temporal.asked-back', 'conversation.exchanged'],
      ...['node.started', 'node.completed', 'node.skipped', 'variable.changed', 'channel.written'],
      ...['agent.reasoned', 'provider.usage'],
    ].filter((type) => eventsOf([{ type, payload: {} }]).some((one) => movesHead(timeline, one)));
  const atQuestion = [
    'openwop-temporal.voted',
    'openwop-temporal.asked-back',
    'conversation.exchanged',
  ];
  const beside = ['node.started', 'node.completed', 'node.skipped'];
  const values = ['variable.changed', 'channel.written'];
  expect(moved(folded(started(0)))).toEqual(atQuestion);
  expect(moved(folded(started(0), ...asks('a')))).toEqual([...atQuestion, ...beside, ...values]);
  expect(moved(folded(started(0), ...asks('a'), answers('a')))).toEqual(atQuestion);
});

it('rest-endpoints.md pause: an attempt that was cut does not run any more when the next one does', () => {
  const { items } = folded(started(0), started(1));
  expect(items.map(({ state }) => state)).toEqual(['cancelled', 'running']);
});

describe('seed 003 §3.4: the runs that a run started', () => {
  const call = (callId: string): Told => ({
    type: 'agent.toolCalled',
    nodeId: 'n',
    payload: { callId, toolName: `agent:${callId}` },
  });
  const child = (childRunId: string): Told => ({
    type: 'node.dispatched',
    nodeId: 'n',
    payload: { childRunId, childWorkflowId: 'w' },
  });
  const returned = (callId: string): Told => ({
    type: 'agent.toolReturned',
    nodeId: 'n',
    payload: { callId, status: 'ok' },
  });
  /** `because`: the place of what the event at that place follows from. */
  function timelineOf(told: readonly Told[], because: Readonly<Record<number, number>>): Timeline {
    const timeline = emptyTimeline({ names: {}, stories: EVENT_STORIES });
    eventsOf(told).forEach((event, place) => {
      const cause = because[place];
      foldEvent(timeline, {
        ...event,
        ...(cause === undefined ? {} : { causationId: `evt-${cause}` }),
      });
    });
    return timeline;
  }
  const threads = ({ items }: Timeline) =>
    items.flatMap(({ title, threads: all = [] }) =>
      all.map(({ runId, running }) => [title, runId, running]),
    );

  it('each below the call that started it, running until the call returns', () => {
    const told = [started(0), call('a'), call('b'), child('of-b'), child('of-a'), returned('b')];
    expect(threads(timelineOf(told, { 3: 2, 4: 1 }))).toEqual([
      ['agent:a', 'of-a', true],
      ['agent:b', 'of-b', false],
    ]);
  });

  it('seed 003 §6 several batches of one parent: each below its own call, in whatever order they begin and end', () => {
    const told = [
      ...[started(0), call('batch-1'), child('sub-1'), call('batch-2'), child('sub-3')],
      ...[child('sub-2'), child('sub-4'), returned('batch-2')],
    ];
    expect(threads(timelineOf(told, { 2: 1, 4: 3, 5: 1, 6: 3 }))).toEqual([
      ...[
        ['agent:batch-1', 'sub-1', true],
        ['agent:batch-1', 'sub-2', true],
      ],
      ...[
        ['agent:batch-2', 'sub-3', false],
        ['agent:batch-2', 'sub-4', false],
      ],
    ]);
  });

  it('of a node on its own, running until the node ends; what ran for another node runs on', () => {
    const other = { ...child('other'), nodeId: 'm' };
    const end: Told = { type: 'node.completed', nodeId: 'n', payload: { nodeId: 'n' } };
    const begun = [{ ...started(0), nodeId: 'm' }, started(0), child('one'), other];
    expect(threads(timelineOf(begun, { 2: 1 })).map(([, id, running]) => [id, running])).toEqual([
      ['one', true],
      ['other', true],
    ]);
    expect(
      threads(timelineOf([...begun, end], { 2: 1 })).map(([, id, running]) => [id, running]),
    ).toEqual([
      ['one', false],
      ['other', true],
    ]);
  });

  it('seed 003 §1.2 an event that shows nothing is shown by what it follows from', () => {
    const usage: Told = { type: 'provider.usage', nodeId: 'n', payload: { inputTokens: 1 } };
    const timeline = timelineOf([started(0), call('a'), usage], { 1: 0, 2: 1 });
    expect(timeline.shownBy.get('evt-2')?.title).toBe('agent:a');
    expect(timeline.items.map(({ eventId }) => eventId)).toEqual([undefined, 'evt-1']);
  });
});
