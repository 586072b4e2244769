// Script and style of the pages as text, read once. The script is the timeline's fold and its rendering, the very
// files that the server runs, with the browser's part behind them in one scope: no build step, no inline script.
import { readFileSync } from 'node:fs';

function source(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

let script: string | undefined;
let style: string | undefined;

/** JavaScript for `/pages/run.js`. */
export function pageScript(): string {
  script ??= `'use strict';\n(() => {\n${['./timeline.js', './timeline-html.js', './live.js'].map(asScope).join('\n')}\n})();\n`;
  return script;
}

/** CSS for `/pages/run.css`. */
export function pageStyle(): string {
  style ??= source('./run.css');
  return style;
}

/** The files import only each other, so without import and export they share one scope. */
function asScope(name: string): string {
  return source(name)
    .replace(/^import [^;]*;\n/gm, '')
    .replace(/^export /gm, '');
}
