// The frame of every page: one document without inline script or style, so that a strict Content-Security-Policy
// (`default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'`) holds.
import { ago, duration } from '../words/duration.js';
import { hidesAPart } from '../words/printable.js';
import { escapeHtml, escapeValue, NO_TIME } from './timeline-html.js';

export interface Document {
  readonly title: string;
  /** HTML of the body. */
  readonly body: string;
  readonly script?: keyof typeof SCRIPTS;
}

/** In the page itself: browsers would ask for /favicon.ico. The policy permits images from `data:`. */
const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 16 16%27%3E%3Ccircle cx=%278%27 cy=%278%27 r=%276%27 fill=%27%232456d6%27/%3E%3C/svg%3E';

const STYLE = '/pages/run.css';
/** The modules of the pages that have one, and those that they import: asked for at once, not when the first one is read. */
const SHARED = ['/pages/browser.js', '/words/duration.js'];
const SCRIPTS = {
  run: {
    start: '/pages/live.js',
    imported: [
      ...SHARED,
      ...['/pages/run-log.js', '/pages/threads.js', '/pages/causes.js', '/pages/at.js'],
      ...['/pages/timeline.js', '/pages/timeline-html.js', '/words/declined.js'],
      ...['/pages/made-again.js', '/words/printable.js'],
    ],
  },
  home: { start: '/pages/home-live.js', imported: SHARED },
} as const;

/** A whole HTML document. `body` is HTML already, the rest is text. */
export function renderDocument({ title, body, script }: Document): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="same-origin">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${STYLE}">
${script ? scriptTags(script) : ''}
</head>
<body>
${body}
</body>
</html>
`;
}

function scriptTags(script: keyof typeof SCRIPTS): string {
  const { start, imported } = SCRIPTS[script];
  const preloads = imported.map((path) => `<link rel="modulepreload" href="${path}">`);
  return [...preloads, `<script type="module" src="${start}"></script>`].join('\n');
}

/** Below a field that does not show a part of its text (I104): the whole text; else ''. */
export function renderHidden(text: string): string {
  if (!hidesAPart(text)) return '';
  return `<p class="hint">The field does not show a part of this text. The whole text is: <code>${escapeValue(text)}</code></p>`;
}

/** ISO 8601; undefined of a damaged time, which no date can express: it is named in its place. */
function isoOf(ms: number): string | undefined {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** Date and time in UTC, shown in local time by the script. */
export function renderDate(ms: number): string {
  const iso = isoOf(ms);
  if (iso === undefined) return NO_TIME;
  return `<time datetime="${iso}" data-form="date">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}

/** The time of day in UTC, shown in local time by the script. */
export function renderMoment(ms: number): string {
  const iso = isoOf(ms);
  if (iso === undefined) return NO_TIME;
  return `<time datetime="${iso}" data-form="time" title="${iso.slice(0, 10)}">${iso.slice(11, 19)} UTC</time>`;
}

/** How long ago it was when the page was made; the script goes on counting. */
export function renderAge(ms: number, nowMs: number): string {
  const iso = isoOf(ms);
  if (iso === undefined) return NO_TIME;
  return `<time datetime="${iso}" data-form="ago" title="${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC">${ago(nowMs - ms)}</time>`;
}

/** The time that is left, the same way. */
export function renderLeft(ms: number, nowMs: number): string {
  const iso = isoOf(ms);
  if (iso === undefined) return NO_TIME;
  const left = ms - nowMs;
  const words = left > 0 ? `${duration(left)} left` : 'time is up';
  return `<time datetime="${iso}" data-form="left">${words}</time>`;
}
