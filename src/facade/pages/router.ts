// The pages: their assets, their headers, and what an address gets that is no page. Everything below /pages speaks HTML,
// errors included.
import { Router } from 'express';
import { HostError } from '../../rules/errors.ts';
import { PAGE_ASSETS } from '../../pages/index.ts';
import type { FacadeDeps } from '../deps.ts';
import { mountCausesPage } from './causes.ts';
import { mountCohortPages } from './cohorts.ts';
import { mountDeploymentsPage } from './deployments.ts';
import { mountDiffPage } from './diff.ts';
import { mountForkPage } from './fork.ts';
import { mountHomePage } from './home.ts';
import { page, pageErrors, type PageDeps } from './page.ts';
import { mountAtPage } from './run-at.ts';
import { mountRunControls } from './run-controls.ts';
import { mountRunPage } from './run-page.ts';
import { mountSignIn } from './sign-in.ts';
import { mountStartPages } from './start.ts';

const ASSET_MAX_AGE_SECONDS = 300;
const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

export function pagesRouter(facade: FacadeDeps, parts: Omit<PageDeps, keyof FacadeDeps>): Router {
  const deps: PageDeps = { ...facade, ...parts };
  const router = Router();
  router.use((_request, response, next) => {
    response.set({ 'Content-Security-Policy': CSP, 'Referrer-Policy': 'same-origin' });
    next();
  });
  for (const { path, type, text } of PAGE_ASSETS) {
    router.get(path, (_request, response) => {
      response.set('Cache-Control', `max-age=${ASSET_MAX_AGE_SECONDS}`).type(type).send(text());
    });
  }
  mountHomePage(router, deps);
  mountSignIn(router, deps);
  mountRunPage(router, deps);
  mountCausesPage(router, deps);
  mountDeploymentsPage(router, deps);
  mountDiffPage(router, deps);
  mountForkPage(router, deps);
  mountCohortPages(router, deps);
  mountAtPage(router, deps);
  mountRunControls(router, deps);
  mountStartPages(router, deps);
  router.all(/^\/pages(\/.*)?$/, page(deps, noPage));
  router.use(pageErrors(deps));
  return router;
}

async function noPage(): Promise<void> {
  throw new HostError('not_found');
}
