// The frame of every page: one document without inline script or style, so that a strict Content-Security-Policy
// (`default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'`) holds.
import { escapeHtml } from './timeline-html.js';

export interface Document {
  readonly title: string;
  /** HTML of the body. */
  readonly body: string;
  readonly script?: boolean;
}

/** In the page itself: browsers would ask for /favicon.ico. The policy permits images from `data:`. */
const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 16 16%27%3E%3Ccircle cx=%278%27 cy=%278%27 r=%276%27 fill=%27%232456d6%27/%3E%3C/svg%3E';

const STYLE = '/pages/run.css';
/** The module that the page starts, and those that it imports: asked for at once, not when the first one is read. */
const SCRIPT = '/pages/live.js';
const IMPORTED = ['/pages/timeline.js', '/pages/timeline-html.js', '/words/duration.js'];

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
${script ? scriptTags() : ''}
</head>
<body>
${body}
</body>
</html>
`;
}

function scriptTags(): string {
  const preloads = IMPORTED.map((path) => `<link rel="modulepreload" href="${path}">`);
  return [...preloads, `<script type="module" src="${SCRIPT}"></script>`].join('\n');
}

/** Date and time in UTC, shown in local time by the script. */
export function renderDate(ms: number): string {
  const iso = new Date(ms).toISOString();
  return `<time datetime="${iso}" data-form="date">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}
