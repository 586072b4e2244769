// Cohorts as pages (architecture §6).
import { describe, expect, it } from 'vitest';
import type { Cohort } from '../../schemas/types.generated.ts';
import type { ForkBuild } from '../../src/rules/builds.ts';
import { renderCohortPage, renderCohortsPage } from '../../src/pages/index.ts';

const use = { inputTokens: 10, outputTokens: 5 };
const COHORT: Cohort = {
  ...{ cohortId: 'cohort-1', state: 'running', mode: 'branch', createdAt: '2026-01-02T03:04:05Z' },
  select: { last: 3, workflowId: 'refund' },
  change: { agents: { 'tri<age>': { systemPrompt: 'Be strict.' } } },
  ...{ parallel: 4, memberTimeoutMs: 1, members: 3, settled: 1, before: use, after: use },
  totals: {
    ...{ same: 0, diverged: 0, 'outcome-changed': 1, asks: 0, failed: 0 },
    ...{ 'source-missing': 0, 'not-compared': 0, 'not-finished': 0 },
  },
  results: [
    {
      ...{ position: 0, sourceRunId: 'run-1', forkRunId: 'run-2', outcome: 'outcome-changed' },
      changes: [{ nodeId: 'decide', pointer: '/status', before: '<b>', after: '"no"' }],
    },
    { position: 1, sourceRunId: 'run-3' },
  ],
  nextFrom: 2,
};
const shown = (more: Partial<Cohort> = {}, outcome?: 'asks') =>
  renderCohortPage({
    ...{ cohort: { ...COHORT, ...more }, csrfToken: 'token"' },
    ...(outcome ? { outcome } : {}),
  });

describe('the page of a cohort', () => {
  it('tells progress, what each came to and why, with links to both runs and their comparison', () => {
    const html = shown();
    expect(html).toContain('<progress max="3" value="1">');
    expect(html).toContain('another prompt of tri&lt;age&gt;');
    expect(html).toContain('href="/pages/runs/run-1/diff?against=run-2"');
    expect(html).toContain('decide /status: &lt;b&gt; → &quot;no&quot;');
    expect(html).toContain('Waits, or is under way');
    expect(html).toContain('href="/pages/cohorts/cohort-1?from=2"');
    expect(html).not.toContain('<b>,');
  });

  it('names runs that cannot be read', () => {
    const html = shown({ leftOut: { runs: 1, runIds: ['run-<9>'] } });
    expect(html).toContain('1 run cannot be read, and is not among these: run-&lt;9&gt;.');
    expect(shown()).not.toContain('cannot be read');
  });

  it('is cancelled by a form with the token of the session, while it is under way and not being cancelled', () => {
    const form = 'action="/pages/cohorts/cohort-1/cancel"';
    expect(shown()).toContain(`${form}><input type="hidden" name="csrf" value="token&quot;">`);
    for (const state of ['cancelling', 'completed', 'cancelled'] as const)
      expect(shown({ state })).not.toContain(form);
    expect(shown({ state: 'cancelling' })).toContain('Look again');
    expect(shown({ state: 'completed' })).not.toContain('Look again');
  });

  it('shows members of one outcome alone, also where there is none, and keeps it on the next page', () => {
    const html = shown({}, 'asks');
    expect(html).toMatch(/href="\/pages\/cohorts\/cohort-1\?outcome=asks" aria-current="true"/);
    expect(html).toContain('href="/pages/cohorts/cohort-1?from=2&amp;outcome=asks"');
    expect(html).toContain('Show all');
  });
});

it.each<[ForkBuild, string]>([
  [
    { buildId: '<two>', sourceBuildId: 'one' },
    'the source by build one, the fork by build &lt;two&gt;',
  ],
  [{ buildId: 'two' }, '(the fork by build two)'],
  [{ buildId: 'two', sourceBuildId: 'two' }, '(both by build two)'],
])(
  'the page of a cohort by a build of the worker tells those of both sides: %o',
  (build, words) => {
    const divergence = { seq: 3, cause: 'code', build };
    const result = { position: 0, sourceRunId: 'run-1', outcome: 'diverged' } as const;
    const html = shown({
      ...{ mode: 'replay', change: { build: '<two>' }, results: [{ ...result, divergence }] },
    });
    expect(html).toContain('replayed by the code of build &lt;two&gt;');
    expect(html).toContain(words);
  },
);

describe('the page of cohorts', () => {
  it('tells each in a line, with a way to older ones', () => {
    const html = renderCohortsPage([COHORT], 'a b');
    expect(html).toContain('<a href="/pages/cohorts/cohort-1">1 of 3 runs</a>');
    expect(html).toContain('under way');
    expect(html).toContain('href="/pages/cohorts?cursor=a%20b"');
  });

  it('says how to begin one where there is none', () => {
    expect(renderCohortsPage([])).toContain('openwop replay --last 50');
  });
});
