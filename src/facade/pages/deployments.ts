// The page of the worker's builds (docs/upgrades.md), for who is signed in.
import type { Router } from 'express';
import { renderDeploymentsPage } from '../../pages/index.ts';
import { HOME, page, signedIn, type PageDeps, type SignedInCall } from './page.ts';

export function mountDeploymentsPage(router: Router, deps: PageDeps): void {
  router.get(`${HOME}/deployments`, page(deps, signedIn(showDeployments)));
}

async function showDeployments(
  { deployments }: PageDeps,
  { response }: SignedInCall,
): Promise<void> {
  const { builds = [], runsWithoutWorker = 0 } = (await deployments.read()) ?? {};
  response.type('html').send(renderDeploymentsPage({ builds, runsWithoutWorker }));
}
