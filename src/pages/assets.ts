// What the pages load, as text: the style and the modules of the script. The modules are the files that the server itself
// runs, the timeline's fold and its rendering, with the browser's part: no build step, no inline script.
import { readFileSync } from 'node:fs';

export interface PageAsset {
  /** Of its address. */
  readonly path: string;
  readonly type: string;
  /** Read when it is first asked for. */
  readonly text: () => string;
}

const FILES = [
  './run.css',
  './timeline.js',
  './timeline-html.js',
  './live.js',
  './run-log.js',
  './made-again.js',
  './threads.js',
  './causes.js',
  './at.js',
  './home-live.js',
  './browser.js',
  '../words/declined.js',
  '../words/duration.js',
  '../words/printable.js',
];

function asset(file: string): PageAsset {
  const place = new URL(file, import.meta.url);
  let text: string | undefined;
  return {
    // As it lies beside this file, so that one import fits both.
    path: new URL(file, 'http://host/pages/').pathname,
    type: file.endsWith('.css') ? 'text/css' : 'text/javascript',
    text: () => (text ??= readFileSync(place, 'utf8')),
  };
}

export const PAGE_ASSETS: readonly PageAsset[] = FILES.map(asset);
