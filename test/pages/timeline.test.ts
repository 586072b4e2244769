// What the timeline makes of events that belong together by an id, and not by their node alone.
import { describe, expect, it } from 'vitest';
import { emptyTimeline, foldEvent, type Timeline } from '../../src/pages/timeline.js';
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

it('rest-endpoints.md pause: an attempt that was cut does not run any more when the next one does', () => {
  const { items } = folded(started(0), started(1));
  expect(items.map(({ state }) => state)).toEqual(['cancelled', 'running']);
});
