// The page of two runs, as HTML (RFC 0054): what each side says stands beside the other's, as text.
import { describe, expect, it } from 'vitest';
import type { RunComparison } from '../../schemas/types.generated.ts';
import { renderDiffPage } from '../../src/pages/index.ts';

const EVIL = `"><script>alert('x')</script>`;
const run = (runId: string) => ({
  ...{ runId, workflowId: 'w', workflowName: EVIL, version: EVIL, status: EVIL },
  ...{ definitionDigest: 'sha256:0', durationMs: 1_500, usd: 0.5 },
});
const side = { status: 'completed', inputTokens: 4, outputTokens: 3, confidence: 0.9 };
const compared: RunComparison = {
  ...{
    a: { ...run('run-a'), forkOf: EVIL, overlay: ['answer', 'agents'] },
    b: run(EVIL),
    same: false,
    truncated: true,
  },
  divergence: {
    ...{ seq: 12, cause: 'tool-result', overlay: 'answer', nodeId: EVIL, nodeName: EVIL },
    aEvent: { type: EVIL, sequence: 12, eventId: 'evt-a' },
    bEvent: { type: EVIL, sequence: 13, eventId: EVIL },
    differences: [{ pointer: EVIL, a: { [EVIL]: EVIL }, b: EVIL }],
  },
  pinned: [
    {
      fact: 'agents',
      differences: [
        {
          pointer: '/judge/resolved/systemPrompt',
          a: `Decide what is refunded, and say why it is so. ${EVIL}`,
          b: `Decide what is paid, and say why it is so. ${EVIL}`,
        },
      ],
    },
  ],
  steps: [
    { nodeId: 'n', nodeName: 'Load', visit: 1, a: side, b: side, differences: [] },
    { nodeId: 'm', nodeName: EVIL, visit: 2, b: side, differences: [] },
    {
      ...{ nodeId: 'o', nodeName: 'Pay', visit: 1, a: side, b: side },
      differences: [{ pointer: '/calls/0/result', b: [EVIL], cut: true }],
    },
  ],
  end: [{ pointer: '', a: 1, b: EVIL }],
};

describe('the page of two runs', () => {
  const html = renderDiffPage({ runId: 'run-a', against: EVIL, compared, stale: true });

  // [I48]
  it('shows what runs say as text', () => {
    expect(html).not.toContain('<script');
    expect(renderDiffPage({ runId: EVIL, against: EVIL, fault: EVIL })).not.toContain('<script');
  });

  it('marks words of long texts, and only those that the other one lacks', () => {
    expect(html).toContain('Decide what is <del>refunded, </del>and say');
    expect(html).toContain('Decide what is <ins>paid, </ins>and say');
  });

  it('leads to what the events follow from at which they went apart', () => {
    expect(html).toContain('href="/pages/runs/run-a/events/evt-a/causes"');
    expect(html).toContain('a tool gave another result (its overlay has this answer)');
    expect(html).toContain('with other answer, agents');
    expect(html).toMatch(/href="\/pages\/runs\/%22[^"]*\/events\/%22[^"]*\/causes"/);
  });

  it('opens the steps that differ, says which run alone came to one, and keeps the others shut', () => {
    const steps = html.match(/<details class="step[^>]*>.*?<\/summary>/g) ?? [];
    expect(steps.map((step) => [step.includes(' open'), / other"/.test(step)])).toEqual([
      ...[[false, false]],
      ...[[true, true]],
      ...[[true, true]],
    ]);
    expect(steps[1]).toContain('only B came to it');
    expect(html).toContain('<i>nothing</i>');
    expect(html).toContain('Of a large value the beginning is shown.');
  });

  it('says what is not the whole, and that nothing differs', () => {
    expect(html).toContain('Not all is compared');
    expect(html).toContain('The engine cannot be reached.');
    const same = { ...compared, same: true, divergence: null, pinned: [], steps: [], end: [] };
    const page = renderDiffPage({ runId: 'run-a', against: 'run-b', compared: same });
    expect(page).toContain('They say the same.');
    expect(page).not.toContain('Step by step');
  });

  it('asks for a run where none is named', () => {
    const page = renderDiffPage({ runId: 'run a', against: '' });
    expect(page).toContain('<form class="compare" method="get" action="/pages/runs/run%20a/diff">');
    expect(page).not.toContain('The runs');
  });
});
