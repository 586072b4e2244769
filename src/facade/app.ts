// The facade: what every request goes through, in this order: access log, trace and security headers, Host check, then its
// route (mount.ts: access, body, input, handler), a page, or nothing; errors leave by one envelope
// (rest-endpoints.md §Versioning; architecture §10).
import express, { type Express, type RequestHandler } from 'express';
import { HostError, invalid } from '../rules/errors.ts';
import { accessLog } from './access-log.ts';
import { createGate } from './auth.ts';
import type { FacadeDeps } from './deps.ts';
import { errorHandler } from './errors.ts';
import { hostCheck, securityHeaders, traceContext } from './headers.ts';
import { decideMajor, MAJORS, type Majors } from './majors.ts';
import { mountRoutes } from './mount.ts';
import { createPageSessions } from './page-sessions.ts';
import { pagesRouter } from './pages/router.ts';
import { routesOf } from './route-table.ts';
import { createSeams } from './seams/index.ts';
import { createWrongKeys } from './wrong-keys.ts';
import { createStreamRegistry } from './stream-registry.ts';

export interface Facade {
  readonly app: Express;
  /** Takes no new streams and ends the open ones with a comment; readiness says so. */
  drain(): void;
}

export function createFacade(deps: FacadeDeps, majors: Majors = MAJORS): Facade {
  const { config, logger } = deps;
  const seams = createSeams(deps);
  const served = seams ? { ...deps, catalog: seams.catalog } : deps;
  const { streamLimits: limits, slowClientMs } = config;
  const streams = createStreamRegistry({ limits, slowClientMs, logger });
  const sessions = createPageSessions(deps.stores.pageSessions, config);
  const wrongKeys = createWrongKeys(logger);
  const gate = createGate(config.apiKey, sessions, wrongKeys);
  let draining = false;
  const app = express();
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing');
  app.set('query parser', 'simple').set('trust proxy', [...(config.trustedProxies ?? [])]);
  app.use(accessLog(logger), decideMajor(majors), traceContext, securityHeaders);
  app.use(hostCheck(config.host, config.publicUrl));
  for (const { prefix } of majors) app.use(`${prefix}/packs`, noPacks);
  const routes = routesOf(served, { streams, sessions, majors, isDraining: () => draining });
  mountRoutes(app, { ...served, gate, majors }, [...routes, ...(seams?.routes ?? [])]);
  app.use(pagesRouter(served, { sessions, streams, wrongKeys }));
  app.use(lastResort);
  app.use(errorHandler(logger));
  return {
    app,
    drain() {
      draining = true;
      streams.drain();
    },
  };
}

/** A host without a pack registry says so in plain text, before it asks for a key. */
const noPacks: RequestHandler = (_request, response) => {
  response.status(404).type('text/plain').send('This host has no pack registry.\n');
};

/**
 * Protocol paths live below /v1/: anything else is 400 (rest-endpoints.md §Versioning), but what the well-known folder
 * lacks is 404.
 */
const lastResort: RequestHandler = (request) => {
  if (request.path.startsWith('/.well-known/')) throw new HostError('not_found');
  throw invalid('path', 'this address has no version: the API is below /v1/');
};
