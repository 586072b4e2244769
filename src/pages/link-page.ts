// The page behind a one-time link, and the page for errors. Opening the link shows a button only: link previews and
// virus scanners fetch addresses with GET, and only the POST consumes the link.
import { renderDocument } from './layout.ts';
import { escapeExact, escapeHtml } from './timeline-html.js';

export interface LinkPageModel {
  readonly runId: string;
  /** The address that takes the POST: this page's own, with the link in it. */
  readonly action: string;
}

export interface ErrorPageModel {
  /** HTTP status it is sent with. */
  readonly status: number;
  readonly title: string;
  readonly message: string;
  /** Where it goes on from here, if anywhere. */
  readonly way?: { readonly href: string; readonly text: string };
}

/** One button that opens the run's page. Works without JavaScript. */
export function renderLinkPage({ runId, action }: LinkPageModel): string {
  return renderDocument({
    title: 'Open the run',
    body: `<main class="small"><h1>Open the run</h1>
<p>This link shows the run <code>${escapeHtml(runId)}</code> and lets you answer its questions. It works once, and then in this browser for at most 12 hours.</p>
<form method="post" action="${escapeExact(action)}"><button class="primary">Open the run</button></form></main>`,
  });
}

/** What went wrong, in words. `message` must be safe to show. */
export function renderErrorPage({ status, title, message, way }: ErrorPageModel): string {
  const onward = way ? `<p><a href="${escapeExact(way.href)}">${escapeHtml(way.text)}</a></p>` : '';
  return renderDocument({
    title,
    body: `<main class="small"><h1>${escapeHtml(title)}</h1><p>${escapeHtml(message)}</p>${onward}<p class="facts">${status}</p></main>`,
  });
}
