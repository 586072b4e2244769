// Why something happened: an event and the chain of what it follows from, the nearest first (seed 003 §1.2). A page of its
// own, which the script of a run's page shows in place.
import type { EventPart } from '../rules/events.ts';
import { renderDocument, renderMoment } from './layout.ts';
import { escapeExact, escapeHtml } from './timeline-html.js';

export interface CauseStep {
  readonly eventId: string;
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
  readonly part: EventPart;
  /** Name of its node, where it has one. */
  readonly nodeName?: string;
  readonly timestampMs: number;
}

export interface CausesPageModel {
  readonly runId: string;
  readonly event: CauseStep;
  readonly causes: readonly CauseStep[];
  /** What stands behind the last cause. */
  readonly rest:
    | 'nothing'
    /** It is too far to be told. */
    | 'more'
    /** A delivery, or an event that is in no log here. */
    | 'outside'
    /** It is in a run that the reader may not see. */
    | 'hidden';
}

/** In words for people; the type stands beside them. */
const WORDS: Readonly<Record<EventPart, (step: string) => string>> = {
  'run-starts': () => 'the run started',
  'run-moves': () => 'the run was paused or went on',
  clock: () => 'the clock of the rehearsal was set',
  'run-ends': () => 'the run ended',
  'node-starts': (step) => `${step} began`,
  'node-ends': (step) => `${step} came to an end`,
  'node-skipped': (step) => `${step} was skipped`,
  'wait-opens': (step) => `${step} waited for somebody`,
  'wait-asks': (step) => `${step} asked`,
  vote: (step) => `somebody voted on what ${step} asked`,
  'asked-back': (step) => `somebody asked about what ${step} asked`,
  'wait-ends': (step) => `what ${step} asked was answered, or its time was up`,
  'reasoning-piece': (step) => `${step} was thinking`,
  reasoning: (step) => `${step} thought`,
  call: (step) => `${step} called a tool`,
  return: (step) => `a tool answered ${step}`,
  'output-piece': (step) => `${step} told something`,
  child: (step) => `${step} started a run`,
  orchestration: (step) => `${step} said what is next`,
  decision: (step) => `${step} decided`,
  handoff: (step) => `${step} handed over`,
  turn: (step) => `something was said at ${step}`,
  variable: (step) => `${step} set a value`,
  channel: (step) => `${step} wrote to a channel`,
  usage: (step) => `a model's use was counted at ${step}`,
  limit: (step) => `${step} reached a limit`,
  unusable: (step) => `${step} had no usable answer`,
  worker: (step) => `what became of a worker of ${step}`,
  detail: (step) => `a detail of ${step}`,
  note: (step) => `a note of ${step}`,
};

const RESTS: Readonly<Record<CausesPageModel['rest'], string>> = {
  nothing: 'Here it began: with the request that started the run.',
  more: 'There are more causes than are told here.',
  outside: 'It follows from something outside: an answer, a message or a timer.',
  hidden: 'It follows from another run, which this link does not show.',
};

/** The page of one event's causes; `.causes` is its part for who shows it elsewhere. */
export function renderCausesPage({ runId, event, causes, rest }: CausesPageModel): string {
  const back = `/pages/runs/${encodeURIComponent(runId)}`;
  const items = causes.map((cause) => `<li>${renderStep(cause, runId)}</li>`).join('');
  return renderDocument({
    title: `Why: ${event.type}`,
    body: `<main class="small"><h1>Why?</h1><p>${renderStep(event, runId)}, because</p>
<div class="causes" role="group" aria-label="Why">${items ? `<ol>${items}</ol>` : ''}<p class="facts">${RESTS[rest]}</p></div>
<p><a href="${back}">The run</a></p></main>`,
  });
}

function renderStep(
  { eventId, runId, sequence, type, part, nodeName, timestampMs }: CauseStep,
  ownRunId: string,
): string {
  const url = `/pages/runs/${encodeURIComponent(runId)}#e${sequence}`;
  const words = WORDS[part](nodeName ?? 'the run');
  const place = runId === ownRunId ? '' : ' in another run';
  return `<a href="${escapeExact(url)}" data-event="${escapeExact(eventId)}">${escapeHtml(words)}</a>${place} <span class="facts"><code>${escapeHtml(type)}</code> · ${renderMoment(timestampMs)}</span>`;
}
