// What the run's page offers besides answers, by status, to who may do more than answer.
import { describe, expect, it } from 'vitest';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import { RUN_STATUSES, type RunStatus } from '../../src/rules/status.ts';
import { renderRunPage } from '../../src/pages/index.ts';

const urls = { pause: '/to/pause', resume: '/to/resume', skip: '/to/skip', cancel: '/to/cancel' };
const underWay = ['/to/pause', '/to/cancel'];

function actions(status: RunStatus, hasControls = true): string[] {
  const html = renderRunPage({
    snapshot: { runId: 'run-1', workflowId: 'refund', status },
    events: [],
    stories: EVENT_STORIES,
    interrupts: [],
    csrfToken: 'csrf-1',
    eventsUrl: '/events',
    answerUrlOf: (nodeId) => nodeId,
    stale: false,
    ...(hasControls
      ? { controls: { urls, anotherUrl: '/to/another?from="<', csrfToken: 'csrf-2' } }
      : {}),
  });
  expect(html.includes('href="/to/another?from=&quot;&lt;"')).toBe(hasControls);
  const forms = [...html.matchAll(/<form method="post" action="([^"]*)">(.*?)<\/form>/gs)];
  for (const [, , inside] of forms) expect(inside).toContain('name="csrf" value="csrf-2"');
  return forms.map(([, action]) => action ?? '');
}

describe('what may be done with a run is offered only while it applies', () => {
  const expected: Record<RunStatus, string[]> = {
    pending: underWay,
    running: underWay,
    'waiting-approval': underWay,
    'waiting-input': underWay,
    'waiting-external': underWay,
    paused: ['/to/resume', '/to/cancel'],
    cancelling: [],
    completed: [],
    failed: [],
    cancelled: [],
  };
  it.each(RUN_STATUSES)('%s', (status) => {
    expect(actions(status)).toEqual(expected[status]);
    expect(actions(status, false)).toEqual([]);
  });
});

describe('a rehearsal', () => {
  const rehearsal = { now: '2026-01-04T00:00:00.000Z', skippedMs: 3 * 86_400_000 };
  const page = (canSkip: boolean, status: RunStatus = 'running'): string =>
    renderRunPage({
      snapshot: { runId: 'run-1', workflowId: 'refund', status, rehearsal },
      events: [],
      stories: EVENT_STORIES,
      interrupts: [],
      csrfToken: 'csrf-1',
      eventsUrl: '/events',
      answerUrlOf: (nodeId) => nodeId,
      stale: false,
      controls: { urls, anotherUrl: '/to/another', csrfToken: 'csrf-2', canSkip },
    });

  it('says what it is, and how far its clock is', () => {
    expect(page(false)).toMatch(/This is a rehearsal.*3 days after it began/);
  });

  it('is skipped by whoever may, while it goes on', () => {
    expect(page(true)).toContain('<button name="forMs" value="259200000">Skip 3 days</button>');
    expect(page(true)).toContain('<button name="to" value="next-deadline">Skip to the deadline');
    expect(page(false)).not.toContain('/to/skip');
    for (const status of ['paused', 'cancelling', 'completed'] as const)
      expect(page(true, status), status).not.toContain('/to/skip');
  });
});
