// The facade: one table of routes, and around it what every request goes through, in this order: access log, trace and
// security headers, Host check, route, authentication, scope, body, handler, envelope (spec/01 §1, §2; design §10).
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { HostError, invalid } from '../rules/errors.ts';
import { accessLog } from './access-log.ts';
import { createAuthenticator, requireScope } from './auth.ts';
import { readJsonBody } from './body.ts';
import { DEFAULT_CALLER, type FacadeDeps } from './deps.ts';
import { errorHandler } from './errors.ts';
import { hostCheck, securityHeaders, traceContext } from './headers.ts';
import { openApiDocument, openApiRoute } from './openapi.ts';
import { createPageSessions, type PageSessions } from './page-sessions.ts';
import { expressPath, IDEMPOTENCY_KEY, type Route } from './route.ts';
import { cancelRoute } from './routes/cancel.ts';
import { catalogRoutes } from './routes/catalog.ts';
import { discoveryRoute } from './routes/discovery.ts';
import { eventsRoute } from './routes/events.ts';
import { healthRoutes } from './routes/health.ts';
import { interruptRoute } from './routes/interrupts.ts';
import { opensentienceRoutes } from './routes/opensentience.ts';
import { pageLinkRoute } from './routes/page-link.ts';
import { pagesRouter } from './routes/pages.ts';
import { pollRoute } from './routes/poll.ts';
import { runRoutes } from './routes/runs.ts';
import {
  createStreamRegistry,
  MAX_STREAMS_PER_KEY,
  type StreamRegistry,
} from './stream-registry.ts';

export type { FacadeConfig, FacadeDeps, RunLog } from './deps.ts';

export interface Facade {
  readonly app: Express;
  /** Takes no new streams and ends the open ones with a comment; readiness says so. */
  drain(): void;
}

export function createFacade(deps: FacadeDeps): Facade {
  const { config, logger } = deps;
  const maxPerKey = config.maxStreamsPerKey ?? MAX_STREAMS_PER_KEY;
  const streams = createStreamRegistry({ maxPerKey, logger });
  let draining = false;
  const app = express();
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing');
  app.set('query parser', 'simple').set('trust proxy', [...(config.trustedProxies ?? [])]);
  app.use(accessLog(logger), traceContext, securityHeaders);
  app.use(hostCheck(config.host, config.publicUrl));
  const sessions = createPageSessions(deps.stores.pageSessions, config);
  const routes = routesOf(deps, { streams, sessions, isDraining: () => draining });
  mount(app, { ...deps, sessions }, routes);
  app.use(pagesRouter(deps, sessions));
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

interface FacadeParts {
  readonly streams: StreamRegistry;
  readonly sessions: PageSessions;
  readonly isDraining: () => boolean;
}

function routesOf(deps: FacadeDeps, { streams, sessions, isDraining }: FacadeParts): Route[] {
  const routes: Route[] = [
    discoveryRoute(deps),
    ...healthRoutes(deps, isDraining),
    ...runRoutes(deps),
    eventsRoute(deps, streams),
    pollRoute(deps, streams),
    cancelRoute(deps),
    interruptRoute(deps),
    ...catalogRoutes(deps),
    pageLinkRoute(deps, sessions),
    ...opensentienceRoutes(deps),
  ];
  let document: ReturnType<typeof openApiDocument> | undefined;
  const openApi = openApiRoute(
    () => (document ??= openApiDocument([openApi, ...routes], deps.config.version)),
  );
  return [openApi, ...routes];
}

function mount(
  app: Express,
  deps: Pick<FacadeDeps, 'config'> & { readonly sessions: PageSessions },
  routes: readonly Route[],
): void {
  // A host without a pack registry says so in plain text, before it asks for a key (spec/06 §2.7).
  app.use('/v1/packs', (_request, response) => {
    response.status(404).type('text/plain').send('This host has no pack registry.\n');
  });
  const authenticate = createAuthenticator(deps.config.apiKey, DEFAULT_CALLER);
  const callerOf = async (route: Route, request: Request): Promise<typeof DEFAULT_CALLER> => {
    if (route.access === 'public') return DEFAULT_CALLER;
    const session = await pageSessionOf(deps.sessions, route, request);
    if (session) return session;
    const caller = authenticate(request);
    requireScope(caller, route.access);
    return caller;
  };
  for (const route of routes) {
    app[route.method](expressPath(route.path), async (request: Request, response: Response) => {
      response.locals.route = route.path;
      const params = request.params as Record<string, string>;
      response.locals.keyed =
        request.headers['idempotency-key'] !== undefined &&
        route.parameters?.includes(IDEMPOTENCY_KEY) === true;
      if (params.runId !== undefined) response.locals.runId = params.runId.slice(0, 128);
      const caller = await callerOf(route, request);
      const body = route.method === 'post' ? await readJsonBody(request, response) : undefined;
      await route.handle({ request, response, caller, params, body });
    });
  }
  for (const path of new Set(routes.map((route) => route.path))) {
    const methods = routes
      .filter((route) => route.path === path)
      .map((route) => route.method.toUpperCase());
    app.all(expressPath(path), (request, response) => {
      if (!routes.some((route) => route.path === path && route.access === 'public'))
        authenticate(request);
      // An operation that this host lacks (`:fork`) is not there, whatever the run before the colon.
      if (/:[a-z-]+$/.test(request.path)) throw new HostError('not_found');
      response.setHeader(
        'Allow',
        [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', '),
      );
      throw new HostError('method_not_allowed', { allowed: methods });
    });
  }
  app.all(/^\/v\d+(\/|$)/, (request) => {
    authenticate(request);
    throw new HostError('not_found');
  });
}

/** The cookie of a run's page opens that run's event stream for GET, and nothing else. A bearer, where sent, decides. */
async function pageSessionOf(
  sessions: PageSessions,
  route: Route,
  request: Request,
): Promise<typeof DEFAULT_CALLER | undefined> {
  if (route.operationId !== 'streamRunEvents' || request.headers.authorization !== undefined)
    return undefined;
  const { runId } = request.params;
  if (typeof runId !== 'string' || request.headers.cookie === undefined) return undefined;
  return (await sessions.find(request, runId))?.caller;
}

/** Protocol paths live below /v1/: anything else is 400 (spec/01 §1), but what the well-known folder lacks is 404. */
const lastResort: RequestHandler = (request) => {
  if (request.path.startsWith('/.well-known/')) throw new HostError('not_found');
  throw invalid('path', 'this address has no version: the API is below /v1/');
};
