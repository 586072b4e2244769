// Cohorts as pages: the newest ones, and one with its progress and its report. Nothing of it needs a script: one that is
// under way is loaded again by a link.
import type { Cohort, CohortMemberResult } from '../../schemas/types.generated.ts';
import {
  changeText,
  leftOutText,
  memberLines,
  OUTCOME_WORDS,
  STATE_WORDS,
  useText,
  type Outcome,
} from '../words/cohort.ts';
import { renderDate, renderDocument } from './layout.ts';
import { escapeExact, escapeHtml } from './timeline-html.js';

export interface CohortPageModel {
  readonly cohort: Cohort;
  readonly csrfToken: string;
  /** Of its members that came to this alone. */
  readonly outcome?: Outcome;
}

const OUTCOMES = Object.entries(OUTCOME_WORDS) as readonly [Outcome, string][];

export function renderCohortPage({ cohort, csrfToken, outcome }: CohortPageModel): string {
  const { cohortId, state, members, settled, results = [], nextFrom, select } = cohort;
  const isOpen = state === 'running' || state === 'cancelling';
  const of = select.workflowId === undefined ? '' : ` of ${select.workflowId}`;
  const what = `${members} runs${of}, ${changeText(cohort)}`;
  return renderDocument({
    title: `${settled} of ${members} · Cohort`,
    body: `<header class="top"><h1>Cohort</h1><p class="facts"><a href="/pages/cohorts">All cohorts</a> · <a href="/pages">All runs</a></p></header>
<main class="home">
<p class="lead">${escapeHtml(what)}: ${escapeHtml(STATE_WORDS[state])}.</p>
<p class="facts"><code>${escapeHtml(cohortId)}</code> · began ${renderDate(Date.parse(cohort.createdAt))} · ${escapeHtml(useText(cohort))}</p>
<p><label>${settled} of ${members} runs <progress max="${members}" value="${settled}">${settled} of ${members}</progress></label></p>
${isOpen ? openControls(cohort, csrfToken) : ''}
${cohort.leftOut ? `<p class="lead">${escapeHtml(leftOutText(cohort.leftOut))}.</p>` : ''}
${totalsTable(cohort, outcome)}
${membersList(results, outcome)}
${pagesOf(cohort, { nextFrom, outcome })}
</main>`,
  });
}

function cohortUrl(cohortId: string, query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString();
  return escapeHtml(
    `/pages/cohorts/${encodeURIComponent(cohortId)}${text === '' ? '' : `?${text}`}`,
  );
}

function runUrl(runId: string): string {
  return escapeHtml(`/pages/runs/${encodeURIComponent(runId)}`);
}

function openControls({ cohortId, state }: Cohort, csrfToken: string): string {
  const cancel =
    state === 'running'
      ? `<form method="post" action="${cohortUrl(cohortId)}/cancel"><input type="hidden" name="csrf" value="${escapeExact(csrfToken)}"><button class="quiet">Cancel this cohort</button></form>`
      : '';
  return `<p><a href="${cohortUrl(cohortId)}">Look again</a></p>${cancel}`;
}

function totalsTable({ cohortId, totals }: Cohort, outcome: Outcome | undefined): string {
  const rows = OUTCOMES.filter(([name]) => totals[name] > 0 || name === outcome).map(
    ([name, words]) =>
      `<tr><th scope="row"><a href="${cohortUrl(cohortId, { outcome: name })}"${name === outcome ? ' aria-current="true"' : ''}>${words}</a></th><td>${totals[name]}</td></tr>`,
  );
  if (rows.length === 0) return '<p class="lead">No run has come to an end yet.</p>';
  return `<table><caption>What they came to</caption><thead><tr><th scope="col">Came to</th><th scope="col">Runs</th></tr></thead><tbody>${rows.join('')}</tbody></table>${outcome === undefined ? '' : `<p><a href="${cohortUrl(cohortId)}">Show all</a></p>`}`;
}

function membersList(results: readonly CohortMemberResult[], outcome: Outcome | undefined): string {
  const title = outcome === undefined ? 'Runs' : OUTCOME_WORDS[outcome];
  return `<section aria-labelledby="members-title"><h2 id="members-title">${title}</h2><ol class="runs" start="${(results[0]?.position ?? 0) + 1}">${results.map(memberItem).join('\n')}</ol></section>`;
}

function memberItem(member: CohortMemberResult): string {
  const { sourceRunId, forkRunId, outcome } = member;
  const words = outcome === undefined ? 'Waits, or is under way' : OUTCOME_WORDS[outcome];
  const fork =
    forkRunId === undefined
      ? ''
      : ` · <a href="${runUrl(forkRunId)}">its fork</a> · <a href="${runUrl(sourceRunId)}/diff?against=${escapeHtml(encodeURIComponent(forkRunId))}">compare</a>`;
  const lines = memberLines(member).map((line) => `<li>${escapeHtml(line)}</li>`);
  const told = lines.length === 0 ? '' : `<ul>${lines.join('')}</ul>`;
  return `<li><b>${words}</b> · <a href="${runUrl(sourceRunId)}">the run</a> <code>${escapeHtml(sourceRunId)}</code>${fork}${told}</li>`;
}

function pagesOf(
  { cohortId }: Cohort,
  { nextFrom, outcome }: { readonly nextFrom?: number; readonly outcome?: Outcome },
): string {
  if (nextFrom === undefined) return '';
  const query = { from: String(nextFrom), ...(outcome === undefined ? {} : { outcome }) };
  return `<nav class="pages" aria-label="Pages of runs"><a href="${cohortUrl(cohortId, query)}">More runs</a></nav>`;
}

export function renderCohortsPage(cohorts: readonly Cohort[], olderCursor?: string): string {
  const items = cohorts.map(
    (cohort) =>
      `<li><a href="${cohortUrl(cohort.cohortId)}">${cohort.settled} of ${cohort.members} runs</a>, ${escapeHtml(changeText(cohort))}: ${escapeHtml(STATE_WORDS[cohort.state])} · ${renderDate(Date.parse(cohort.createdAt))}</li>`,
  );
  const older =
    olderCursor === undefined
      ? ''
      : `<nav class="pages" aria-label="Pages of cohorts"><a href="${escapeExact(`/pages/cohorts?cursor=${encodeURIComponent(olderCursor)}`)}">Older cohorts</a></nav>`;
  const none =
    '<p class="lead">There are none. <code>openwop replay --last 50</code> begins one.</p>';
  return renderDocument({
    title: 'Cohorts',
    body: `<header class="top"><h1>Cohorts</h1><p class="facts"><a href="/pages">All runs</a></p></header>
<main class="home"><p class="lead">Past runs that are forked by one change, and what becomes of each.</p>
${items.length === 0 ? none : `<ul>${items.join('\n')}</ul>`}${older}</main>`,
  });
}
