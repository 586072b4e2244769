// The host's page: what somebody sees who is signed in.
import { renderDocument } from './layout.ts';
import { escapeHtml } from './timeline-html.js';

export interface HomePageModel {
  readonly csrfToken: string;
}

export function renderHomePage({ csrfToken }: HomePageModel): string {
  return renderDocument({
    title: 'OpenWOP host',
    body: `<header class="top"><h1>OpenWOP host</h1><form method="post" action="/pages/sign-out"><input type="hidden" name="csrf" value="${escapeHtml(csrfToken)}"><button>Sign out</button></form></header>
<main><p>You are signed in. The page of each run of this host opens in this browser.</p></main>`,
  });
}
