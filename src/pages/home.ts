// The host's page: what waits for a person, the runs, and what can be started. Without JavaScript it shows the state at
// loading, and its filter and pages are plain links and a plain form; the script reads it again when something changes.
import type { RunOverview } from '../../schemas/types.generated.ts';
import type { RunStatus } from '../rules/status.ts';
import { duration } from '../words/duration.js';
import { STATUS_WORDS, statusWords } from '../words/status.ts';
import { unreadableText } from '../words/unreadable.ts';
import { renderOffers, type OffersModel } from './home-offers.ts';
import { renderAge, renderDocument, renderLeft } from './layout.ts';
import { escapeExact, escapeHtml } from './timeline-html.js';

export interface HomePageModel extends OffersModel {
  readonly csrfToken: string;
  /** Event stream that says that something changed, same origin. */
  readonly eventsUrl: string;
  readonly waiting: {
    /** The soonest deadline first. */
    readonly runs: readonly RunOverview[];
    /** Of all, counted no further than `countedTo`. */
    readonly count: number;
    readonly countedTo: number;
    readonly moreUrl?: string;
    /** Where this page of them is not the first. */
    readonly firstUrl?: string;
  };
  readonly runs: readonly RunOverview[];
  readonly olderUrl?: string;
  readonly newestUrl?: string;
  readonly filter: { readonly status?: RunStatus; readonly workflowId?: string };
  /** The engine is away: what is shown may be old, nothing begins and nothing can be answered now. */
  readonly stale: boolean;
  /** ms epoch; the present by default. */
  readonly nowMs?: number;
}

/** The host's page as an HTML document. */
export function renderHomePage(model: HomePageModel): string {
  const { count } = model.waiting;
  return renderDocument({
    title: `${count > 0 ? `● ${counted(model)} waiting · ` : ''}Runs`,
    script: 'home',
    body: `<header class="top"><h1>Runs</h1><div class="who"><p id="live" role="status"></p><a href="/pages/deployments">Builds</a><form method="post" action="/pages/sign-out"><input type="hidden" name="csrf" value="${escapeExact(model.csrfToken)}"><button class="quiet">Sign out</button></form></div></header>
<p id="announce" class="unseen" role="status" aria-live="polite"></p>
<main class="home" data-events="${escapeExact(model.eventsUrl)}">
<div id="notices">${notices(model)}</div>
${waiting(model)}
${runs(model)}
${renderOffers(model)}
</main>`,
  });
}

function notices(model: HomePageModel): string {
  return model.stale
    ? '<p class="notice stale" role="status">The engine cannot be reached. What you see may be old. A run that you start begins when it is back; answers are not taken until then.</p>'
    : '';
}

function counted({ waiting: { count, countedTo } }: HomePageModel): string {
  return count < countedTo ? String(count) : `${countedTo} or more`;
}

function waiting(model: HomePageModel): string {
  const { runs: asking, count, moreUrl, firstUrl } = model.waiting;
  const head =
    count === 0
      ? '<h2 id="waiting-title">Nothing waits for you</h2><p class="lead">A run that asks something appears here, on top.</p>'
      : `<h2 id="waiting-title">Waiting for you <span class="count">${counted(model)}</span></h2>`;
  const nowMs = model.nowMs ?? Date.now();
  return `<section class="asks" aria-labelledby="waiting-title"><div id="waiting-head">${head}</div>
<ul id="waiting-list" class="cards">${asking.map((run) => ask(run, nowMs)).join('\n')}</ul>
<p id="waiting-more" class="pages">${link(firstUrl, 'The most urgent')}${link(moreUrl, 'More that wait')}</p>
</section>`;
}

/** A run that asks, by its questions to a person. */
function ask(run: RunOverview, nowMs: number): string {
  const { runId, workflowName, unreadable, waiting: open } = run;
  const questions = open
    .filter(({ forPerson }) => forPerson)
    .map(({ title, nodeName, requestedAt, deadline }) => {
      const left =
        deadline === undefined ? 'no time limit' : renderLeft(Date.parse(deadline), nowMs);
      return `<h3><a href="${runUrl(runId)}">${escapeHtml(title)}</a></h3><p class="facts"><b>${escapeHtml(workflowName)}</b> · step ${escapeHtml(nodeName)} · asked ${renderAge(Date.parse(requestedAt), nowMs)} · ${left}</p>`;
    });
  if (unreadable && open.length === 0)
    questions.push(
      `<h3><a href="${runUrl(runId)}">A run waits</a></h3><p class="facts"><b>${escapeHtml(workflowName)}</b> · ${escapeHtml(unreadableText(unreadable))}</p>`,
    );
  const paused = run.status === 'paused' ? '<p class="facts">The run is paused.</p>' : '';
  const key = open.map(({ interruptId }) => interruptId).join(' ');
  return `<li class="card ask" data-key="${escapeExact(`${runId} ${key}`)}">${questions.join('')}${paused}</li>`;
}

function runs(model: HomePageModel): string {
  const nowMs = model.nowMs ?? Date.now();
  const list = model.runs.map((run) => row(run, nowMs)).join('\n');
  return `<section aria-labelledby="runs-title"><h2 id="runs-title">All runs</h2>
${filter(model)}
<ul id="runs-list" class="runs">${list || `<li class="none" data-key="none">${nothing(model)}</li>`}</ul>
<nav id="runs-more" class="pages" aria-label="Pages of runs"><a href="/pages/cohorts">Cohorts</a>${link(model.newestUrl, 'Newest runs')}${link(model.olderUrl, 'Older runs')}</nav>
</section>`;
}

/** Says what to do next. */
function nothing({ filter: { status, workflowId }, newestUrl, workflows }: HomePageModel): string {
  if (newestUrl !== undefined) return 'There are no older runs.';
  if (status !== undefined || workflowId !== undefined)
    return 'No run is like that. <a href="/pages">Show all runs</a>';
  return workflows.length > 0
    ? 'There are no runs yet. <a href="#workflows-title">Start one below</a>; it appears here at once.'
    : 'There are no runs yet, and no workflow that could be started.';
}

function row(run: RunOverview, nowMs: number): string {
  const { runId, workflowName, status, createdAt, startedAt, endedAt, waiting: open } = run;
  const words = statusWords(status);
  const took =
    startedAt !== undefined && endedAt !== undefined
      ? ` · took ${duration(Date.parse(endedAt) - Date.parse(startedAt))}`
      : '';
  const [first] = open;
  const about = first?.title ?? (run.unreadable && unreadableText(run.unreadable));
  const asks = about === undefined ? '' : `<span class="about">${escapeHtml(about)}</span>`;
  const tags = run.tags
    .slice(0, SHOWN_TAGS)
    .map((tag) => `<span class="tag">${escapeHtml(tag)}</span>`)
    .join('');
  const mark = run.rehearsal ? '<span class="tag">rehearsal</span>' : '';
  return `<li class="run-row ${escapeExact(status)}" data-key="${escapeExact(runId)}"><span class="badge"><span aria-hidden="true">${words.mark}</span> ${escapeHtml(words.text)}</span><span class="what"><a href="${runUrl(runId)}">${escapeHtml(workflowName)}</a>${asks}</span><span class="facts">${mark}${tags}${renderAge(Date.parse(createdAt), nowMs)}${took} <code>${escapeHtml(runId.slice(-SHOWN_ID))}</code></span></li>`;
}

/** Of a run's tags in a row, and of the end of its id, in characters. */
const SHOWN_TAGS = 4;
const SHOWN_ID = 8;

function filter({ filter: asked, workflows }: HomePageModel): string {
  const { status, workflowId } = asked;
  const known = workflows.map(({ workflowId: id, name }) => ({ value: id, text: name }));
  const others =
    workflowId === undefined || known.some(({ value }) => value === workflowId)
      ? []
      : [{ value: workflowId, text: workflowId }];
  const statuses = Object.entries(STATUS_WORDS).map(([value, { text }]) => ({ value, text }));
  return `<form method="get" action="/pages" class="filter"><label>Status${select('status', [{ value: '', text: 'Any' }, ...statuses], status)}</label><label>Workflow${select('workflow', [{ value: '', text: 'Any' }, ...known, ...others], workflowId)}</label><button>Show</button>${status === undefined && workflowId === undefined ? '' : '<a href="/pages">Show all</a>'}</form>`;
}

interface Option {
  readonly value: string;
  readonly text: string;
}

function select(name: string, options: readonly Option[], selected = ''): string {
  const items = options.map(
    ({ value, text }) =>
      `<option value="${escapeExact(value)}"${value === selected ? ' selected' : ''}>${escapeHtml(text)}</option>`,
  );
  return `<select name="${name}">${items.join('')}</select>`;
}

function link(url: string | undefined, text: string): string {
  return url === undefined ? '' : `<a href="${escapeExact(url)}">${text}</a>`;
}

function runUrl(runId: string): string {
  return escapeHtml(`/pages/runs/${encodeURIComponent(runId)}`);
}
