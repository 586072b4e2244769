// What the page of a fork says of its source (replay.md): a line below the title, and a mark in the timeline.
import { describe, expect, it } from 'vitest';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import {
  promptTexts,
  renderForkPage,
  renderRunPage,
  sentFork,
  type RunPageModel,
} from '../../src/pages/index.ts';
import { emptyTimeline, foldEvent } from '../../src/pages/timeline.js';
import { definition, edge, node } from '../support/definitions.ts';
import { afterAnswer, eventsOf, untilQuestion } from './sample-run.ts';

const EVIL = `"><script>alert('x')</script>`;
const events = [...untilQuestion, ...afterAnswer];
const fork = { sourceRunId: 'run-0', fromSeq: 4, mode: 'branch', isAlone: false } as const;
const pageOf = (more: Partial<RunPageModel>): string =>
  renderRunPage({
    ...{ snapshot: { runId: 'run-1', workflowId: 'refund', status: 'completed' }, events },
    ...{ stories: EVENT_STORIES, interrupts: [], csrfToken: 'c', eventsUrl: '/events' },
    ...{ answerUrlOf: (nodeId: string) => nodeId, stale: false },
    ...more,
  });
const diverged = (payload: Record<string, unknown>) =>
  eventsOf(
    [{ type: 'replay.diverged', payload: { sourceRunId: 'run-0', atSequence: 5, ...payload } }],
    90,
  );

describe('replay.md: the page of a fork', () => {
  it('leads to its source and to what they do not have in common', () => {
    const html = pageOf({ fork });
    expect(html).toContain(
      'A branch of <a href="/pages/runs/run-0"><code>run-0</code></a> from event 4',
    );
    expect(html).toContain('href="/pages/runs/run-1/diff?against=run-0"');
    expect(pageOf({ fork: { ...fork, mode: 'replay' } })).toContain('A replay of');
    expect(pageOf({})).not.toContain('id="fork"');
  });

  it('says what it goes by', () => {
    const html = pageOf({
      fork: { ...fork, overlay: { agents: { judge: { systemPrompt: 'Be strict.' } }, later: 1 } },
    });
    expect(html).toContain('It goes by other agents, later.');
    expect(html).toContain('Be strict.');
  });

  it('shows who sees this run alone neither a way to its source nor the words of an overlay', () => {
    const overlay = { agents: { judge: { systemPrompt: 'Be strict.' } } };
    const html = pageOf({
      fork: { ...fork, isAlone: true, overlay },
      events: [...events, ...diverged({ originalEventId: 'evt-x' })],
    });
    expect(html).toContain('A branch of <code>run-0</code> from event 4');
    expect(html).toContain('It goes by other agents.');
    expect(html).not.toMatch(/href="\/pages\/runs\/run-0|\/diff|Be strict/);
  });

  it.each([
    ['output', 'said something else of the same fact'],
    ['missing', 'did not state what its source had stated'],
    ['extra', 'stated what its source had not'],
    ['type-mismatch', 'stated another kind of event'],
    ['of a later host', 'stated something else'],
  ])(
    'replay.md §Divergence: says where it went apart, and leads to both sides (%s)',
    (kind, words) => {
      const payload = {
        divergenceKind: kind,
        divergencePoint: EVIL,
        originalEventId: 'evt-0',
        replayEventId: 'evt-2',
      };
      const html = pageOf({ fork, events: [...events, ...diverged(payload)] });
      expect(html).toContain(`at event 5: the code of today ${words} (<code>&quot;&gt;`);
      expect(html).toContain('href="/pages/runs/run-0/events/evt-0/causes">What its source stated');
      expect(html).toContain('href="/pages/runs/run-1/events/evt-2/causes">What this run stated');
    },
  );

  it('what it would have stated and did not is told by the event that says so', () => {
    const html = pageOf({
      fork,
      events: [...events, ...diverged({ replayEventId: 'evt-nowhere' })],
    });
    expect(html).toContain('href="/pages/runs/run-1/events/evt-90/causes">What this run stated');
    expect(html).not.toContain('What its source stated');
  });

  // [I48]
  it('what a run says is text', () => {
    const html = pageOf({
      fork: { ...fork, sourceRunId: EVIL, overlay: { [EVIL]: EVIL } },
      events: [
        ...events,
        ...diverged({ sourceRunId: EVIL, originalEventId: EVIL, divergenceKind: EVIL }),
      ],
    });
    expect(html).not.toContain("alert('x')");
    expect(html).not.toContain('<script>');
  });
});

describe('the timeline of a fork', () => {
  const origins = (from: number, shown = events) => {
    const timeline = emptyTimeline({
      names: {},
      stories: EVENT_STORIES,
      fork: { fromSeq: from, mode: 'branch' },
    });
    for (const event of shown) foldEvent(timeline, event);
    return timeline.items.map(({ sequence, origin }) => [sequence, origin] as const);
  };

  it('marks what its source told, and the first entry of its own', () => {
    const all = origins(4);
    const [first] = all.filter(([sequence]) => sequence >= 4);
    for (const [sequence, origin] of all.filter(([from]) => from >= 4))
      expect(origin).toBe(sequence === first?.[0] ? 'branch' : undefined);
    // What its source began, and the fork went on with.
    const told = all.filter(([sequence]) => sequence < 4);
    expect(told.map(([, origin]) => origin)).toEqual(['source', 'source', 'begun']);
    expect(origins(0)[0]).toEqual([0, 'branch']);
    expect(origins(1_000).every(([, origin]) => origin === 'source')).toBe(true);
  });

  it('marks nothing where it had left its source before the part that is shown', () => {
    const later = events.filter(({ sequence }) => sequence > 6);
    expect(origins(4, later).every(([, origin]) => origin === undefined)).toBe(true);
    expect(origins(7, later)[0]?.[1]).toBe('branch');
  });

  it('is marked once on the page, which tells the script where', () => {
    const html = pageOf({ fork });
    expect(html.match(/class="left"/g)?.length).toBe(1);
    expect(html).toContain('from here on it lives on its own');
    expect(html).toContain(
      'data-fork="{&quot;fromSeq&quot;:4,&quot;mode&quot;:&quot;branch&quot;}"',
    );
    expect(html).toContain(' inherited"');
    expect(pageOf({})).not.toMatch(/class="left"| inherited"|data-fork/);
  });
});

describe('prompts in the form that forks a run', () => {
  const agent = (prompt: string, agentId = 'a') => ({ agentId, prompt });
  /** As a browser sends what stood in a field. */
  const sentBack = (prompt: string) =>
    prompt.replaceAll('\0', '\ufffd').replaceAll(/\r\n?|\n/g, '\r\n');

  it.each(['Be kind.\nAlways.', 'Be kind.\r\nAlways.', 'Be kind.\rAlways.', 'Be\0kind.'])(
    'one that nobody touched is as it was: %j',
    (prompt) => {
      const agents = [agent(prompt)];
      const form = { mode: 'branch', 'prompt.a': sentBack(promptTexts(agents)['prompt.a'] ?? '') };
      expect(sentFork(form, { from: 3, agents }).overlay).toEqual({});
    },
  );

  it('one that was changed is the other one, with line breaks of one kind', () => {
    const form = { mode: 'branch', 'prompt.a': 'Be strict.\r\nAlways.' };
    const { overlay } = sentFork(form, { from: 3, agents: [agent('Be kind.\rAlways.')] });
    expect(overlay).toEqual({ agents: { a: { systemPrompt: 'Be strict.\nAlways.' } } });
  });

  it('more than a form may send stay as they are, in empty fields', () => {
    const agents = [agent('ä'.repeat(50_000)), agent('ö'.repeat(50_000), 'b'), agent('x', 'c')];
    const texts = promptTexts(agents);
    expect(Object.keys(texts)).toEqual(['prompt.a', 'prompt.c']);
    const form = { mode: 'branch', ...texts, 'prompt.b': '' };
    expect(sentFork(form, { from: 3, agents }).overlay).toEqual({});
  });
});

describe('the form of a fork at an answer', () => {
  const workflow = definition(
    'pay',
    [node('gate', 'core.approvalGate'), node('pay', 'core.noop')],
    [edge('gate', 'pay')],
  );
  const interrupt = {
    ...{ nodeId: 'gate', interruptId: 'int-1', kind: 'approval', requestedAtMs: 0 },
    data: { title: 'Pay 900 to X?', actions: ['accept', 'reject'], artifactData: { to: EVIL } },
  };
  const formAt = (more: object): string =>
    renderForkPage({
      ...{ runId: 'r', name: 'Pay', length: 9, agents: [], configurable: {}, inputs: {}, form: {} },
      ...{ action: '/x', csrfToken: 'c' },
      at: { sequence: 5, type: 'interrupt.resolved', answerer: 'human', ...more },
    });

  // [I104]
  it('a human’s answer is changed in sight of the question and of what follows', () => {
    const standing = { definition: workflow, nodes: {}, variables: {} };
    const html = formAt({ answer: { action: 'reject' }, question: { interrupt, standing } });
    expect(html).toContain('Pay 900 to X?');
    expect(html).toContain('&lt;script&gt;');
    expect(html).not.toContain('<script>alert');
    const words = html
      .replaceAll('&quot;', '"')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ');
    expect(words).toContain('{"action":"accept"} Then: pay');
    expect(words).toContain('{"action":"reject"} Then: the run ends as failed');
    expect(html.indexOf('Pay 900')).toBeLessThan(html.indexOf('<textarea'));
  });

  it('says so where the question cannot be shown', () => {
    expect(formAt({})).toContain('The question cannot be shown here.');
    expect(formAt({ answerer: 'tool' })).not.toContain('The question cannot be shown here.');
  });
});
