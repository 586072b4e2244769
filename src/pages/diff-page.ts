// Two runs side by side (RFC 0054): where they went apart and why, what they were made of, and what each step did
// otherwise. Without script; the form that asks for another run stands on each run's page, too.
import type {
  ComparedRun,
  ComparedStep,
  Divergence,
  RunComparison,
  StepSide,
  ValueDifference,
} from '../../schemas/types.generated.ts';
import {
  causeText,
  partialText,
  PINNED_WORDS,
  sameText,
  wordDiff,
  type WordDiff,
  type WordPiece,
} from '../words/diff.ts';
import { duration } from '../words/duration.js';
import { statusWords } from '../words/status.ts';
import { renderDocument } from './layout.ts';
import { escapeExact, escapeHtml, renderValue, SCROLLS } from './timeline-html.js';

export interface DiffPageModel {
  readonly runId: string;
  /** As it was asked for; '' where nothing was. */
  readonly against: string;
  /** Absent: there is nothing to show, or why not is said by `fault`. */
  readonly compared?: RunComparison;
  readonly fault?: string;
  /** Temporal is away: what is shown may be old. */
  readonly stale?: boolean;
}

/** Texts shorter than this, in characters, are shown beside each other; of longer ones the words are marked. */
const SHORT_TEXT = 40;

/** The page of two runs as an HTML document. */
export function renderDiffPage({ runId, against, compared, fault, stale }: DiffPageModel): string {
  const notice = (kind: string, text: string): string =>
    `<p class="notice ${kind}" role="${kind === 'error' ? 'alert' : 'status'}">${escapeHtml(text)}</p>`;
  const partial = compared && partialText(compared);
  const notices = [
    fault === undefined ? '' : notice('error', fault),
    stale ? notice('stale', 'The engine cannot be reached. What you see may be old.') : '',
    partial === undefined ? '' : notice('info', partial),
  ];
  return renderDocument({
    title: 'Two runs',
    body: `<header class="top"><div><p><a href="${runUrl(runId)}">The run</a></p><h1>Two runs</h1><p class="facts"><code>${escapeHtml(runId)}</code></p></div></header>
<main class="diff"><div id="notices">${notices.join('')}</div>
${compared ? comparison(compared) : ''}
${renderCompareForm(runId, against)}</main>`,
  });
}

/** Asks which run a run is compared with. */
export function renderCompareForm(runId: string, against = ''): string {
  return `<form class="compare" method="get" action="${runUrl(runId)}/diff"><label>Compare with run <input name="against" required maxlength="256" spellcheck="false" autocomplete="off" value="${escapeExact(against)}"></label><button>Compare</button></form>`;
}

function runUrl(runId: string): string {
  return escapeHtml(`/pages/runs/${encodeURIComponent(runId)}`);
}

function comparison(compared: RunComparison): string {
  const { a, b, divergence, pinned, steps, end } = compared;
  const verdict = sameText(compared);
  const words = wordDiff();
  const parts = [
    section('The runs', runsTable(a, b)),
    verdict === undefined ? '' : `<p class="verdict">${escapeHtml(verdict)}</p>`,
    divergence ? apart(divergence, [a, b], words) : '',
    ...pinned.map(({ fact, differences }) =>
      section(`Made of: ${PINNED_WORDS[fact]}`, differencesTable(differences, words)),
    ),
    steps.length === 0
      ? ''
      : `<section><h2>Step by step</h2>${steps.map((each) => step(each, words)).join('\n')}</section>`,
    end.length === 0 ? '' : section('What they came to', differencesTable(end, words)),
  ];
  return parts.join('\n');
}

function section(title: string, body: string): string {
  return `<section><h2>${escapeHtml(title)}</h2>${body}</section>`;
}

type Row = readonly [name: string, a: string, b: string];

/** Cells are HTML; a row without values is left out. */
function sidesTable(label: string, rows: readonly Row[]): string {
  const lines = rows
    .filter(([, a, b]) => a !== '' || b !== '')
    .map(
      ([name, a, b]) =>
        `<tr><th scope="row">${escapeHtml(name)}</th><td>${a || '–'}</td><td>${b || '–'}</td></tr>`,
    );
  return `<div class="sides" ${SCROLLS} aria-label="${escapeHtml(label)}"><table><thead><tr><td></td><th scope="col">A</th><th scope="col">B</th></tr></thead><tbody>${lines.join('')}</tbody></table></div>`;
}

function runsTable(a: ComparedRun, b: ComparedRun): string {
  const row = (name: string, of: (run: ComparedRun) => string): Row => [name, of(a), of(b)];
  return sidesTable('The runs', [
    row('Run', ({ runId }) => `<a href="${runUrl(runId)}"><code>${escapeHtml(runId)}</code></a>`),
    row('Status', ({ status }) => statusHtml(status)),
    row('Workflow', ({ workflowName }) => escapeHtml(workflowName)),
    row('Version', ({ version }) => escapeHtml(version)),
    row('Fork of', ({ forkOf, fromSeq = 0, overlay = [] }) =>
      forkOf === undefined
        ? ''
        : `<a href="${runUrl(forkOf)}"><code>${escapeHtml(forkOf)}</code></a> from event ${fromSeq}${overlay.length === 0 ? '' : ` with other ${escapeHtml(overlay.join(', '))}`}`,
    ),
    ...useRows(a, b),
  ]);
}

/** What no two runs have in common stands beside the rest, and is no difference. */
function useRows(a: StepSide | ComparedRun | undefined, b: typeof a): Row[] {
  const row = (name: string, of: (side: StepSide | ComparedRun) => string): Row => {
    return [name, a ? of(a) : '', b ? of(b) : ''];
  };
  return [
    row('Took', ({ durationMs }) => duration(durationMs)),
    row('Tokens', ({ inputTokens, outputTokens = 0 }) =>
      inputTokens === undefined ? '' : `${inputTokens} in, ${outputTokens} out`,
    ),
    row('Cost', ({ usd }) => (usd === undefined ? '' : `${usd.toFixed(4)} USD`)),
  ];
}

function statusHtml(status: string): string {
  return escapeHtml(statusWords(status).text);
}

function apart(
  divergence: Divergence,
  [a, b]: readonly [ComparedRun, ComparedRun],
  words: WordDiff,
): string {
  const { nodeName, aEvent, bEvent, differences } = divergence;
  const event = ({ runId }: ComparedRun, shown: Divergence['aEvent'] = {}): string => {
    const { sequence, type, eventId } = shown;
    if (typeof type !== 'string' || typeof eventId !== 'string') return '';
    const causes = `${runUrl(runId)}/events/${escapeHtml(encodeURIComponent(eventId))}/causes`;
    return `<code>${escapeHtml(type)}</code> (event ${Number(sequence)}) <a class="why" href="${causes}">Why?</a>`;
  };
  const where = nodeName === undefined ? '' : ` at ${escapeHtml(nodeName)}`;
  return section(
    'Where they went apart',
    `<p class="verdict">They went apart${where}: ${escapeHtml(causeText(divergence))}.</p>${sidesTable(
      'The events',
      [
        ['Event', event(a, aEvent), event(b, bEvent)],
        ...differences.map((each) => differenceRow(each, words)),
      ],
    )}`,
  );
}

function step({ nodeName, visit, a, b, differences }: ComparedStep, diff: WordDiff): string {
  const name = visit === 1 ? nodeName : `${nodeName}, visit ${visit}`;
  const only = !a || !b;
  const isOther = only || differences.length > 0;
  const words = only ? `only ${a ? 'A' : 'B'} came to it` : isOther ? 'differs' : 'the same';
  const confidence = (side: StepSide | undefined): string =>
    side?.confidence === undefined ? '' : `${Math.round(side.confidence * 100)} %`;
  const table = sidesTable(name, [
    ['Status', escapeHtml(a?.status ?? ''), escapeHtml(b?.status ?? '')],
    ['Confidence', confidence(a), confidence(b)],
    ...useRows(a, b),
    ...differences
      .filter(({ pointer }) => pointer !== '/status')
      .map((each) => differenceRow(each, diff)),
  ]);
  return `<details class="step${isOther ? ' other' : ''}"${isOther ? ' open' : ''}><summary><b>${escapeHtml(name)}</b> <span class="facts">${words}</span></summary>${table}</details>`;
}

function differencesTable(differences: readonly ValueDifference[], words: WordDiff): string {
  return sidesTable(
    'Differences',
    differences.map((each) => differenceRow(each, words)),
  );
}

function differenceRow(difference: ValueDifference, words: WordDiff): Row {
  const { pointer, a, b, cut } = difference;
  const name = pointer === '' ? '/' : pointer;
  const rest = cut ? '<p class="facts">Of a large value the beginning is shown.</p>' : '';
  if (typeof a === 'string' && typeof b === 'string' && Math.max(a.length, b.length) > SHORT_TEXT)
    return besideEachOther(name, words(a, b), rest);
  const side = (name: 'a' | 'b'): string =>
    name in difference ? renderValue(difference[name]) + rest : '<i>nothing</i>';
  return [name, side('a'), side('b')];
}

/** Each text with the words marked that the other one lacks. */
function besideEachOther(name: string, pieces: readonly WordPiece[], rest: string): Row {
  const marked = (side: 'a' | 'b', tag: 'del' | 'ins'): string => {
    const html = pieces.map(({ in: where, text }) => {
      if (where === 'both') return escapeHtml(text);
      return where === side ? `<${tag}>${escapeHtml(text)}</${tag}>` : '';
    });
    return `<p class="text">${html.join('')}</p>${rest}`;
  };
  return [name, marked('a', 'del'), marked('b', 'ins')];
}
