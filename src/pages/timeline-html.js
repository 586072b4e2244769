// Items of the timeline as HTML. Runs on the server and in the browser, like timeline.js. Everything that comes from
// a run is escaped: models and tools are untrusted (RFC 0077 §B, architecture §5). What people read passes `escapeHtml`
// or `escapeValue`; what a form sends back or a script looks up passes `escapeExact`.
import { duration } from '../words/duration.js';
import {
  printableAlone,
  printableJson,
  printableLines,
  printableValue,
} from '../words/printable.js';

/** @typedef {import('./timeline.js').TimelineItem} TimelineItem */

/** Longest text of one value in characters; the rest stays in the log. */
const VALUE_CHARACTERS = 4_000;
/** Objects with more members than this are shown as JSON text. */
const TABLE_ROWS = 12;
/** Tables in a table, one in the other. */
const TABLE_DEPTH = 2;

/** Of what may be longer than its box: the keyboard can reach it and scroll it. */
export const SCROLLS = 'tabindex="0" role="group"';

/**
 * What people read: safe in text and in double-quoted attributes, and nothing in it is hidden (I104).
 * @param {unknown} value
 */
export function escapeHtml(value) {
  return escapeExact(printableLines(String(value)));
}

/**
 * The same of a value: no two look alike.
 * @param {string} value
 */
export function escapeValue(value) {
  return escapeExact(printableValue(value));
}

/**
 * As safe, and as it is: for what a form sends back or a script looks up.
 * @param {unknown} value
 */
export function escapeExact(value) {
  return String(value)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/**
 * @param {string} text
 * @param {number} [most] characters
 */
function clip(text, most = VALUE_CHARACTERS) {
  if (text.length <= most) return text;
  // Not between the two halves of one character.
  const shown = text.slice(0, most).replace(/[\ud800-\udbff]$/, '');
  return `${shown}… (${text.length} characters)`;
}

/**
 * A JSON value for people: scalars as text, small objects as a table, tables in it included, the rest as indented JSON.
 * @param {unknown} value
 * @param {number} [most] characters of one text
 */
export function renderValue(value, most) {
  if (value === undefined) return '';
  if (typeof value !== 'object' || value === null) {
    return `<p class="value">${escapeExact(scalar(value, most))}</p>`;
  }
  return isReadable(value, TABLE_DEPTH) ? table(value, most) : json(value, most);
}

/**
 * What somebody decides about: all of it (I104).
 * @param {unknown} value
 */
export function renderWhole(value) {
  return renderValue(value, Infinity);
}

/**
 * @param {unknown} value
 * @param {number} [most]
 */
function json(value, most) {
  return `<pre class="value" ${SCROLLS} aria-label="Value">${escapeExact(clip(printableJson(value, 2), most))}</pre>`;
}

/**
 * @param {object} value
 * @param {number} [most]
 * @returns {string}
 */
function table(value, most) {
  const cells = Object.entries(value).map(
    ([name, part]) => `<dt>${escapeExact(printableAlone(name))}</dt><dd>${cell(part, most)}</dd>`,
  );
  return `<dl class="value">${cells.join('')}</dl>`;
}

/**
 * @param {unknown} part
 * @param {number} [most]
 * @returns {string}
 */
function cell(part, most) {
  if (typeof part !== 'object' || part === null) return escapeExact(scalar(part, most));
  if (!Array.isArray(part)) return table(part, most);
  const items = part.map((each) => `<li>${escapeExact(scalar(each, most))}</li>`);
  return `<ul>${items.join('')}</ul>`;
}

/**
 * Whether an object is small enough for a table: its members are scalars, lists of scalars, or objects of which the same
 * is true. What is empty reads better as JSON.
 * @param {object} value
 * @param {number} depth tables that may stand in this one, one in the other
 * @returns {boolean}
 */
function isReadable(value, depth) {
  const parts = Object.values(value);
  if (Array.isArray(value) || parts.length === 0 || parts.length > TABLE_ROWS) return false;
  return parts.every((/** @type {unknown} */ part) => {
    if (typeof part !== 'object' || part === null) return true;
    return Array.isArray(part) ? isList(part) : depth > 0 && isReadable(part, depth - 1);
  });
}

/** @param {readonly unknown[]} parts */
function isList(parts) {
  return (
    parts.length > 0 &&
    parts.length <= TABLE_ROWS &&
    parts.every((part) => typeof part !== 'object' || part === null)
  );
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/**
 * A text that would be taken for a number has quotes.
 * @param {unknown} value
 * @param {number} [most] characters
 */
function scalar(value, most) {
  if (typeof value !== 'string') return JSON.stringify(value);
  const shown = clip(value, most);
  return NUMBER.test(shown) ? `"${shown}"` : printableAlone(shown);
}

/**
 * True for a small object whose members are all scalars.
 * @param {unknown} value
 * @returns {value is Record<string, string | number | boolean | null>}
 */
export function isFlatObject(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const parts = Object.values(value);
  if (parts.length === 0 || parts.length > TABLE_ROWS) return false;
  return parts.every((part) => typeof part !== 'object' || part === null);
}

/**
 * Confidence as a bar with the threshold as a line. An SVG, because the page's policy permits no inline style.
 * @param {number | undefined} confidence 0..1
 * @param {number | undefined} threshold 0..1
 */
export function renderConfidence(confidence, threshold) {
  if (typeof confidence !== 'number') return '';
  const value = Math.round(confidence * 100);
  const needed = typeof threshold === 'number' ? Math.round(threshold * 100) : undefined;
  const low = needed !== undefined && confidence < /** @type {number} */ (threshold);
  const words =
    `${value} % sure` +
    (needed === undefined ? '' : `, ${low ? 'below' : 'at or above'} the required ${needed} %`);
  const line =
    needed === undefined
      ? ''
      : `<line class="threshold" x1="${needed}" x2="${needed}" y1="0" y2="10"/>`;
  return `<div class="confidence${low ? ' low' : ''}"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6" y="2" rx="1"/><rect class="bar" width="${value}" height="6" y="2" rx="1"/>${line}</svg><span>${words}</span></div>`;
}

/**
 * One entry of the timeline: a list item with a stable id.
 * @param {TimelineItem} item
 */
export function renderItem(item) {
  const inherited = item.origin === 'source' ? ' inherited' : '';
  const parts = [
    `<li class="item ${item.kind} ${escapeHtml(item.state ?? '')}${inherited}" id="${escapeExact(item.key)}">`,
    leftWords(item),
    `<header><span class="mark" aria-hidden="true"></span><h3>${escapeHtml(item.title)}</h3>${facts(item)}</header>`,
    body(item),
    (item.threads ?? []).map(renderThread).join(''),
    '</li>',
  ];
  return parts.join('');
}

/**
 * Where a fork left its source, above its first own entry.
 * @param {TimelineItem} item
 */
function leftWords({ origin }) {
  if (origin !== 'replay' && origin !== 'branch') return '';
  return `<p class="left">${LEFT[origin]}</p>`;
}

const LEFT = {
  replay: 'Its source is left here: from here on it states again what its source stated',
  branch: 'Its source is left here: from here on it lives on its own',
};

/** @param {TimelineItem} item */
function facts(item) {
  const words = [];
  if (item.origin === 'source') words.push('of its source');
  if (item.origin === 'begun') words.push('begun by its source');
  if (item.agentId && item.kind === 'step') words.push(escapeHtml(item.agentId));
  if (item.state && item.state !== 'done') words.push(`<b>${escapeHtml(item.state)}</b>`);
  if (item.tookMs !== undefined) words.push(duration(item.tookMs));
  words.push(renderTime(item.atMs));
  if (item.eventId !== undefined) words.push(why(item.runId, item.eventId, item.title));
  words.push(...forkLinks(item));
  return `<span class="facts">${words.join(' · ')}</span>`;
}

/**
 * The form that forks the run from where this began, and from where it was answered: otherwise, if wanted.
 * @param {TimelineItem} item
 */
function forkLinks({ canFork, runId, sequence, answeredAt, title }) {
  if (!canFork) return [];
  const link = (/** @type {number} */ from, /** @type {string} */ words) =>
    `<a class="from" href="/pages/runs/${encodeURIComponent(runId)}/fork?from=${from}">${words}<span class="unseen"> from event ${from}, ${escapeHtml(title)}</span></a>`;
  return [
    link(sequence, 'Fork'),
    ...(answeredAt === undefined || answeredAt === sequence
      ? []
      : [link(answeredAt, 'Other answer')]),
  ];
}

/**
 * The page of its causes, which the script shows in place.
 * @param {string} runId
 * @param {string} eventId
 * @param {string} title
 */
function why(runId, eventId, title) {
  const url = `/pages/runs/${encodeURIComponent(runId)}/events/${encodeURIComponent(eventId)}/causes`;
  return `<a class="why" href="${url}">Why<span class="unseen"> ${escapeHtml(title)}</span>?</a>`;
}

/**
 * Its own timeline comes when it is opened; without a script there is the way to its page.
 * @param {import('./timeline.js').Thread} thread
 */
function renderThread({ runId, workflowId, running }) {
  const page = `/pages/runs/${encodeURIComponent(runId)}`;
  return `<details class="thread" data-run="${escapeExact(runId)}"${running ? ' data-running' : ''}><summary>The run of ${escapeHtml(workflowId)}</summary><p class="facts"><a href="${page}">Its run</a> <span class="live"></span></p></details>`;
}

/** In the place of a time. */
export const NO_TIME = 'at a time that cannot be read';

/**
 * Time of day in UTC; the browser's script shows it in local time.
 * @param {number | undefined} ms
 */
function renderTime(ms) {
  if (ms === undefined) return NO_TIME;
  const iso = new Date(ms).toISOString();
  return `<time datetime="${iso}" data-form="time">${iso.slice(11, 19)} UTC</time>`;
}

/** @param {TimelineItem} item */
function body(item) {
  const reason = item.text ? `<p class="reason">${escapeHtml(clip(item.text))}</p>` : '';
  switch (item.kind) {
    case 'reasoning':
      return `<p class="thought">${escapeHtml(item.text ?? '')}</p>`;
    case 'tool':
      return `${fold('Asked', item.input)}${progress(item)}${fold(item.state === 'running' ? '' : 'Got', item.outcome)}${reason}`;
    case 'decision':
      return renderValue(item.outcome) + renderConfidence(item.confidence, item.threshold);
    case 'question':
      return item.state === 'waiting'
        ? ''
        : `${fold('Asked', item.input)}${renderValue(item.outcome)}${item.by ? `<p class="reason">answered by ${escapeHtml(item.by)}</p>` : ''}`;
    case 'run':
      return fold('With', item.input);
    case 'end':
      return `${reason}${fold('Result', item.outcome)}`;
    default:
      return `${reason}${fold('Content', item.input)}`;
  }
}

/**
 * What a call tells while it works; once it has ended it is folded away.
 * @param {TimelineItem} item
 */
function progress({ progress: text, state }) {
  if (!text) return '';
  return `<details${state === 'running' ? ' open' : ''}><summary>Told</summary><pre class="progress" ${SCROLLS} aria-label="What the tool told">${escapeHtml(text)}</pre></details>`;
}

/**
 * A labelled value; long ones are folded away.
 * @param {string} label
 * @param {unknown} value
 */
function fold(label, value) {
  if (!label || value === undefined || value === null) return '';
  if (typeof value === 'object' && Object.keys(value).length === 0) return '';
  const html = renderValue(value);
  const shown = html.length < 1_200 ? ' open' : '';
  return `<details${shown}><summary>${escapeHtml(label)}</summary>${html}</details>`;
}
