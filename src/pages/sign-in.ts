// How somebody comes in: the form for the key, and the page behind a one-time link that signs in. Opening the link shows a
// button only: link previews and virus scanners fetch addresses with GET, and only the POST consumes it.
import { renderDocument } from './layout.ts';
import { escapeExact, escapeHtml } from './timeline-html.js';

export interface SignInModel {
  /** Where it leads to afterwards: a path of this host. */
  readonly to: string;
  /** What the last form came to. */
  readonly notice?: { readonly kind: 'info' | 'error'; readonly text: string };
}

/** The key is typed into a field of its own and leaves in the form's body alone. Works without JavaScript. */
export function renderSignInPage({ to, notice }: SignInModel): string {
  const told = notice
    ? `<p class="notice ${notice.kind}" role="${notice.kind === 'error' ? 'alert' : 'status'}" id="told">${escapeHtml(notice.text)}</p>\n`
    : '';
  const described = notice?.kind === 'error' ? ' aria-invalid="true" aria-describedby="told"' : '';
  return renderDocument({
    title: 'Sign in',
    body: `<main class="small"><h1>Sign in</h1>
${told}<p>This host asks who you are before it shows its runs. Its API key is the one that <code>npm start</code> prints, or that whoever runs it has set.</p>
<form method="post" action="/pages/sign-in"><input type="hidden" name="to" value="${escapeExact(to)}">
<label>API key<input type="password" name="key" required autofocus autocomplete="current-password" spellcheck="false"${described}></label>
<button class="primary">Sign in</button></form>
<p class="facts">You stay signed in for 12 hours in this browser. A one-time link to a single run needs no key: ask for a new one if yours has been used.</p></main>`,
  });
}

/** `action`: this page's own address, with the link in it. */
export function renderSignInLinkPage({ action }: { readonly action: string }): string {
  return renderDocument({
    title: 'Sign in',
    body: `<main class="small"><h1>Sign in</h1>
<p>This link shows the runs of this host in this browser for 12 hours, and lets you start, answer and cancel them. It works once.</p>
<form method="post" action="${escapeExact(action)}"><button class="primary">Sign in</button></form></main>`,
  });
}
