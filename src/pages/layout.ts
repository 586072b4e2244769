// The frame of every page: one document without inline script or style, so that a strict Content-Security-Policy
// (`default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'`) holds.
import { escapeHtml } from './timeline-html.js';

export interface Document {
  readonly title: string;
  /** HTML of the body. */
  readonly body: string;
  readonly script?: boolean;
}

export const STYLE_PATH = '/pages/run.css';
export const SCRIPT_PATH = '/pages/run.js';

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
<link rel="stylesheet" href="${STYLE_PATH}">
${script ? `<script src="${SCRIPT_PATH}" defer></script>` : ''}
</head>
<body>
${body}
</body>
</html>
`;
}

/** Date and time in UTC, shown in local time by the script. */
export function renderDate(ms: number): string {
  const iso = new Date(ms).toISOString();
  return `<time datetime="${iso}" data-form="date">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}
