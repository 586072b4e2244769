// The run's page: status, open questions and timeline of one run, rendered from its snapshot and log.
// Without JavaScript it shows the state at loading and takes answers; the script adds the live stream.
import type {
  RunEventDoc,
  RunSnapshot,
  WorkflowDefinition,
} from '../../schemas/types.generated.ts';
import type { EventStories } from '../rules/events.ts';
import { duration } from '../words/duration.js';
import type { OpenQuestion } from '../words/question.ts';
import { statusWords } from '../words/status.ts';
import { renderAtForm } from './at-page.ts';
import { renderCompareForm } from './diff-page.ts';
import { renderForkNote, type ForkNote } from './fork-note.ts';
import { renderDate, renderDocument } from './layout.ts';
import type { Standing } from '../words/follows.ts';
import { renderQuestion, renderQuestionBelow, type QuestionBelow } from './question.ts';
import { renderControls, type RunControls } from './run-controls.ts';
import { emptyTimeline, foldEvent, type Timeline } from './timeline.js';
import { escapeExact, escapeHtml, renderItem } from './timeline-html.js';

export interface RunPageModel {
  readonly snapshot: RunSnapshot;
  /** Ascending, from the start. */
  readonly events: readonly RunEventDoc[];
  /** What each event type tells; the script goes on by the same. */
  readonly stories: EventStories;
  readonly interrupts: readonly OpenQuestion[];
  /** Principal of who reads it. */
  readonly viewer?: string;
  /** What runs below this one ask, oldest run first; answered on the page of each. Absent for who sees this run alone. */
  readonly below?: readonly QuestionBelow[];
  readonly csrfToken: string;
  /** The host's page; absent for who sees this run alone. */
  readonly homeUrl?: string;
  /** Event stream of this run, same origin; the script adds `streamMode=debug` where it says none. */
  readonly eventsUrl: string;
  readonly answerUrlOf: (nodeId: string) => string;
  /** Temporal is away: what is shown may be old, and answers are not taken now. */
  readonly stale: boolean;
  /** Result of the last action, e.g. of a form that was sent. */
  readonly notice?: { readonly kind: 'info' | 'error'; readonly text: string };
  /** For who may do more than answer. */
  readonly controls?: RunControls;
  /** For who may: each entry leads to the form that forks the run from there. */
  readonly canFork?: boolean;
  /** Of a fork. */
  readonly fork?: ForkNote;
  /** Names nodes and says what follows an answer. */
  readonly definition?: WorkflowDefinition;
  /** ms epoch; the present by default. */
  readonly nowMs?: number;
}

/** The run's page as an HTML document. */
export function renderRunPage(model: RunPageModel): string {
  const { snapshot } = model;
  const timeline = timelineOf(model);
  const name = model.definition?.name ?? snapshot.workflowId;
  const words = statusWords(snapshot.status);
  return renderDocument({
    title: `${words.mark} ${words.text} · ${name}`,
    script: 'run',
    body: `<header class="top"><div>${homeLink(model)}<h1>${escapeHtml(name)}</h1><p class="facts"><code>${escapeHtml(snapshot.runId)}</code></p>${forkNote(model)}</div><p id="live" role="status"></p></header>
<p id="announce" class="unseen" role="status" aria-live="polite"></p>
<main>
<div id="notices">${notices(model)}</div>
${madeAgain(model)}
<div id="status" class="status ${escapeExact(snapshot.status)}">${status(model, timeline)}</div>
<div id="controls">${model.controls ? renderControls(model.controls, snapshot.status) : ''}</div>
${slider(model, timeline)}
<div class="columns">
<div id="questions">${questions(model, timeline)}</div>
<section aria-label="Timeline"><h2 class="unseen">Timeline</h2>
<ol id="timeline" class="timeline" data-last-sequence="${timeline.lastSequence}" data-last-event="${escapeExact(timeline.eventIds.get(timeline.lastSequence) ?? '')}" data-events="${escapeExact(model.eventsUrl)}" data-names="${escapeExact(JSON.stringify(timeline.names))}" data-stories="${escapeExact(JSON.stringify(timeline.stories))}"${timelineFacts(timeline)}>${timeline.items.map(renderItem).join('\n')}</ol>
</section>
</div>
${model.homeUrl === undefined ? '' : renderCompareForm(snapshot.runId)}
</main>`,
  });
}

/** Up: to the run that started this one, and to the list of all. */
function homeLink({ homeUrl, snapshot: { parentRunId } }: RunPageModel): string {
  const parent =
    typeof parentRunId === 'string'
      ? `<p><a href="/pages/runs/${encodeURIComponent(parentRunId)}">The run that started this one</a></p>`
      : '';
  const home = homeUrl === undefined ? '' : `<p><a href="${escapeExact(homeUrl)}">All runs</a></p>`;
  return `${home}${parent}`;
}

/** Hidden: the script loads the page again by this link, or shows it, where the log was made again (architecture §3.6). */
function madeAgain({ snapshot: { runId } }: RunPageModel): string {
  const href = `/pages/runs/${encodeURIComponent(runId)}?notice=made-again`;
  return `<p id="made-again" class="notice stale" role="alert" hidden>The log of this run, or of one below it, was made again: what you see here may be old. <a href="${href}">Load the page again.</a> It does not keep what you have typed.</p>`;
}

/** The script takes it anew from the server: where it went apart is told by its end. */
function forkNote({ fork, snapshot, events }: RunPageModel): string {
  return fork ? `<div id="fork">${renderForkNote(fork, snapshot.runId, events)}</div>` : '';
}

/** For who sees the host's pages, too. */
function slider({ homeUrl, snapshot }: RunPageModel, { lastSequence }: Timeline): string {
  if (homeUrl === undefined || lastSequence < 0) return '';
  const form = renderAtForm(snapshot.runId, { sequence: lastSequence, length: lastSequence + 1 });
  return `<div class="at-slider">${form}<div id="at-place" aria-live="polite"></div></div>`;
}

/** What the script folds by as the server does. */
function timelineFacts({ fork, canFork }: Timeline): string {
  const lineage = fork ? ` data-fork="${escapeExact(JSON.stringify(fork))}"` : '';
  return lineage + (canFork ? ' data-can-fork' : '');
}

function timelineOf({ events, definition, stories, fork, canFork }: RunPageModel): Timeline {
  const names = (definition?.nodes ?? []).map((node) => [node.id, node.name] as const);
  const timeline = emptyTimeline({
    ...{ names: Object.fromEntries(names), stories },
    ...(canFork ? { canFork } : {}),
    ...(fork ? { fork: { fromSeq: fork.fromSeq, mode: fork.mode } } : {}),
  });
  for (const event of events) foldEvent(timeline, event);
  return timeline;
}

function status(model: RunPageModel, timeline: Timeline): string {
  const { snapshot, nowMs } = model;
  const words = statusWords(snapshot.status);
  const startedMs = snapshot.startedAt ? Date.parse(snapshot.startedAt) : undefined;
  const endedAt = snapshot.endedAt ?? snapshot.completedAt;
  const facts: string[] = [];
  if (startedMs !== undefined) facts.push(`started ${renderDate(startedMs)}`);
  if (startedMs !== undefined) {
    const untilMs = endedAt ? Date.parse(endedAt) : (nowMs ?? Date.now());
    facts.push(`${endedAt ? 'took' : 'for'} ${duration(untilMs - startedMs)}`);
  }
  if (timeline.tokens > 0) facts.push(`${timeline.tokens} tokens`);
  const error = snapshot.error
    ? `<p class="error"><b>${escapeHtml(snapshot.error.code)}</b> ${escapeHtml(snapshot.error.message)}</p>`
    : '';
  return `${rehearsal(model)}<p><span class="badge"><span aria-hidden="true">${words.mark}</span> ${escapeHtml(words.text)}</span> <span class="facts">${facts.join(' · ')}</span></p>${error}`;
}

/** Nobody takes it for a run that means it. */
function rehearsal({ snapshot, interrupts }: RunPageModel): string {
  if (!snapshot.rehearsal) return '';
  const { now, skippedMs } = snapshot.rehearsal;
  const words = ['<b>This is a rehearsal.</b>'];
  if (now !== undefined) {
    const skipped = skippedMs > 0 ? `, ${duration(skippedMs)} after it began` : '';
    words.push(`Its clock stands at ${renderDate(Date.parse(now))}${skipped}.`);
    const firstMs = Math.min(...interrupts.map(({ deadlineMs = Infinity }) => deadlineMs));
    if (firstMs < Infinity)
      words.push(`The deadline of what it asks is in ${duration(firstMs - Date.parse(now))}.`);
  }
  words.push('Time passes when somebody skips it, and nothing outside is changed.');
  return `<p class="notice rehearsal">${words.join(' ')}</p>`;
}

function notices({ stale, notice, snapshot }: RunPageModel): string {
  const parts: string[] = [];
  if (notice) {
    const role = notice.kind === 'error' ? 'alert' : 'status';
    parts.push(`<p class="notice ${notice.kind}" role="${role}">${escapeHtml(notice.text)}</p>`);
  }
  if (snapshot.erasedAt !== undefined) {
    const when = renderDate(Date.parse(snapshot.erasedAt));
    parts.push(
      `<p class="notice info" role="status">The data of this run was erased ${when}. What is left is how it went, not what was said.</p>`,
    );
  }
  if (stale) {
    parts.push(
      '<p class="notice stale" role="status">The engine cannot be reached. What you see may be old, and answers are not taken until it is back.</p>',
    );
  }
  return parts.join('');
}

function questions(model: RunPageModel, timeline: Timeline): string {
  const { csrfToken, answerUrlOf, definition, snapshot, below = [] } = model;
  const standing = definition && {
    definition,
    nodes: (snapshot.nodeStates ?? {}) as Standing['nodes'],
    variables: (snapshot.variables ?? {}) as Standing['variables'],
  };
  const own = model.interrupts.map((interrupt) =>
    renderQuestion({
      interrupt,
      csrfToken,
      answerUrl: answerUrlOf(interrupt.nodeId),
      nowMs: model.nowMs ?? Date.now(),
      isRehearsal: model.snapshot.rehearsal !== undefined,
      standing,
      viewer: model.viewer,
      reasoning: timeline.items.findLast(
        (item) => item.kind === 'reasoning' && item.nodeId === interrupt.nodeId,
      )?.text,
    }),
  );
  return [...own, ...below.map(renderQuestionBelow)].join('\n');
}
