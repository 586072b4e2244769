// A run as it was at an event of its log: a slider over the log, which is a plain form, and the state below it. A page of its
// own, whose state the script of the run's page shows in place.
import type { JsonObject } from '../rules/json.ts';
import type { RunStatus } from '../rules/status.ts';
import { statusWords } from '../words/status.ts';
import { renderDocument, renderMoment } from './layout.ts';
import { escapeHtml, renderValue } from './timeline-html.js';

export interface AtPageModel {
  readonly runId: string;
  /** Of its workflow. */
  readonly name: string;
  /** The event, and how many the log has now. */
  readonly sequence: number;
  readonly length: number;
  readonly type: string;
  readonly timestampMs: number;
  readonly status: RunStatus;
  /** In the order of the definition; those that it has not come to are left out. */
  readonly nodes: readonly { readonly name: string; readonly status: string }[];
  /** What was asked, and where. */
  readonly question?: { readonly title: string; readonly nodeName: string };
  readonly variables: JsonObject;
  readonly cost?: JsonObject;
  readonly outputs?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
  /** Temporal is away: the log may have gone on. */
  readonly stale: boolean;
}

/** The page as an HTML document. */
export function renderAtPage(model: AtPageModel): string {
  const { runId, name, sequence, length, stale } = model;
  const run = runUrl(runId);
  const step = (to: number, words: string): string =>
    to < 0 || to >= length ? '' : `<a href="${run}/at?event=${to}">${words}</a>`;
  const notice = stale
    ? '<p class="notice stale" role="status">The engine cannot be reached. The log may have gone on.</p>'
    : '';
  return renderDocument({
    title: `Event ${sequence} · ${name}`,
    body: `<header class="top"><div><p><a href="${run}">The run</a></p><h1>${escapeHtml(name)}, as it was</h1><p class="facts"><code>${escapeHtml(runId)}</code></p></div></header>
<main>${notice}${renderAtForm(runId, { sequence, length })}
<p class="facts">${step(sequence - 1, 'The event before')} ${step(sequence + 1, 'The next event')}</p>
${state(model)}</main>`,
  });
}

/** The slider. Without the script of a run's page it leads to the page of the event. */
export function renderAtForm(
  runId: string,
  { sequence, length }: { readonly sequence: number; readonly length: number },
): string {
  if (length === 0) return '';
  return `<form class="at" method="get" action="${runUrl(runId)}/at"><label for="at-event">As it was at event <output id="at-shown" for="at-event">${sequence}</output></label><input id="at-event" type="range" name="event" min="0" max="${length - 1}" step="1" value="${sequence}"><button>Show</button></form>`;
}

function runUrl(runId: string): string {
  return escapeHtml(`/pages/runs/${encodeURIComponent(runId)}`);
}

function state(model: AtPageModel): string {
  const { sequence, type, timestampMs, status, nodes, question, error } = model;
  const { mark, text } = statusWords(status);
  const fault = error
    ? `<p class="error"><b>${escapeHtml(error.code)}</b> ${escapeHtml(error.message)}</p>`
    : '';
  const asked = question
    ? `<p>Asked at ${escapeHtml(question.nodeName)}: <b>${escapeHtml(question.title)}</b></p>`
    : '';
  const steps = Object.fromEntries(nodes.map((node) => [node.name, node.status]));
  const parts = [
    ['Steps', steps],
    ['Variables', model.variables],
    ['Cost', model.cost],
    ['Result', model.outputs],
  ] as const;
  return `<section class="at-state" id="at-state" aria-label="The run as it was at event ${sequence}"><p><span class="badge"><span aria-hidden="true">${mark}</span> ${escapeHtml(text)}</span> <span class="facts">event ${sequence}: <code>${escapeHtml(type)}</code> · ${renderMoment(timestampMs)}</span></p>${fault}${asked}${parts.map(([label, value]) => part(label, value)).join('')}</section>`;
}

function part(label: string, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'object' && Object.keys(value).length === 0) return '';
  return `<details open><summary>${label}</summary>${renderValue(value)}</details>`;
}
