// What the open page of a run makes of a log that was made again since it was loaded (architecture §3.6): it shows nothing
// more, and is loaded again where nobody loses what is in a form. [I118]
import { describe, expect, it } from 'vitest';
import { mayLoad } from '../../src/pages/made-again.js';
import { renderRunPage } from '../../src/pages/index.ts';
import { emptyTimeline, foldEvent, type Timeline } from '../../src/pages/timeline.js';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import { untilQuestion } from './sample-run.ts';

function folded(...parts: readonly (readonly RunEventDoc[])[]): Timeline {
  const timeline = emptyTimeline({ names: {}, stories: EVENT_STORIES });
  for (const event of parts.flat()) foldEvent(timeline, event);
  return timeline;
}

describe('an event of a log that was made again', () => {
  const after = (from: number) =>
    untilQuestion.slice(from).map((event) => ({ ...event, eventId: `${event.eventId}-again` }));
  const length = untilQuestion.length;

  it.each([
    [false, 'comes again, as it is after each resume of a log that lost text', untilQuestion],
    [true, 'is in the place of the last one', after(length - 1)],
    [true, 'is in the place of an earlier one', after(3).slice(0, 1)],
    [true, 'is in the place of the first one', after(0)],
  ])('%s: the page shows another one, where it %s', (expected, _where, again) => {
    expect(folded(untilQuestion, again).isRetold).toBe(expected);
  });

  it('is not shown, nor is what comes after it', () => {
    const { items, lastSequence } = folded(untilQuestion.slice(0, 5), after(4));
    expect(items).toEqual(folded(untilQuestion.slice(0, 5)).items);
    expect(lastSequence).toBe(4);
  });

  it('is known from the page that the server rendered', () => {
    const html = renderRunPage({
      snapshot: { runId: 'run-1', workflowId: 'w', status: 'running' },
      ...{ events: untilQuestion, stories: EVENT_STORIES, interrupts: [], csrfToken: 'c' },
      ...{ eventsUrl: '/events', answerUrlOf: String, stale: false },
    });
    expect(html).toContain(`data-last-event="${untilQuestion.at(-1)?.eventId}"`);
    expect(html).toContain('href="/pages/runs/run-1?notice=made-again"');
  });
});

describe('the page is loaded again by itself', () => {
  const to = 'http://host/pages/runs/run-1?notice=made-again';
  const from = 'http://host/pages/runs/run-1?notice=answered';
  const text = { value: 'a', defaultValue: 'a', checked: false, defaultChecked: false };
  const choice = (selectedIndex: number, ...rendered: boolean[]) => ({
    ...{ value: 'x', selectedIndex },
    options: rendered.map((defaultSelected) => ({ defaultSelected })),
  });
  const form = (...elements: object[]) => ({ dataset: {}, elements });

  it.each([
    [true, 'no form', []],
    [true, 'forms as they were rendered', [form(text, choice(0, false, false)), form({}, text)]],
    [true, 'the rendered choice', [form(choice(1, false, true))]],
    [false, 'text that was typed', [form(text), form(text, { ...text, value: 'b' })]],
    [false, 'text that was taken out', [form({ ...text, value: '' })]],
    [false, 'a box that was ticked', [form({ ...text, checked: true })]],
    [false, 'another choice', [form(choice(0, false, true))]],
    [false, 'another choice than the first', [form(choice(1, false, false))]],
    [false, 'a form that is being sent', [{ ...form(text), dataset: { sent: 'yes' } }]],
  ])('%s: with %s', (expected, _what, forms) => {
    expect(mayLoad({ from, to, forms })).toBe(expected);
  });

  it('once: not where it was loaded for this reason', () => {
    expect(mayLoad({ from: to, to, forms: [] })).toBe(false);
    expect(mayLoad({ from: 'http://host/pages/runs/run-1', to, forms: [] })).toBe(true);
  });
});
