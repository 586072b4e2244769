// The host's page (architecture §10): for who is signed in; browsers that ask for the host's bare address come here.
import type { Request, Router } from 'express';
import { renderHomePage } from '../../pages/index.ts';
import { HOME, page, signedIn, type PageDeps, type SignedInCall } from './page.ts';

export function mountHomePage(router: Router, deps: PageDeps): void {
  router.get('/', (request, response, next) => {
    if (prefersHtml(request)) response.redirect(303, HOME);
    else next();
  });
  router.get(HOME, page(deps, signedIn(showHome)));
}

/** As browsers do. A client that takes anything is none. */
function prefersHtml(request: Request): boolean {
  return request.accepts(['json', 'html']) === 'html';
}

async function showHome(_deps: PageDeps, { response, session }: SignedInCall): Promise<void> {
  const { csrfToken } = session;
  response.status(200).type('html').send(renderHomePage({ csrfToken }));
}
