// Routes on Express: access, body, input, handler, in this order; what answers a method or an address that nobody
// declared; and how an answer leaves as a value.
import type { Express, Request, Response } from 'express';
import { codeOf, HostError } from '../rules/errors.ts';
import { goneRun } from '../runs/find.ts';
import type { Gate } from './auth.ts';
import { readJsonBody } from './body.ts';
import type { FacadeDeps } from './deps.ts';
import { IDEMPOTENCY_KEY } from './idempotency.ts';
import { readInput } from './input.ts';
import { majorOf, type Majors } from './majors.ts';
import { pathOf, scopeOf, type Answer, type Route } from './route.ts';
import { isGone } from './stream-registry.ts';

interface MountDeps extends Pick<FacadeDeps, 'stores' | 'config'> {
  readonly gate: Gate;
  readonly majors: Majors;
}

/** Whether the session still lasts by which a stream was opened is asked this often, in ms. */
const SESSION_CHECK_MS = 30_000;
/** Longest id of a run in the access log, in characters. */
const MAX_LOGGED_ID = 128;
/** `:fork`, at the end of an address. */
const OPERATION = /:[a-z-]+$/;

export function mountRoutes(app: Express, deps: MountDeps, routes: readonly Route[]): void {
  const byPath = new Map<string, Route[]>();
  for (const route of routes)
    for (const path of new Set(deps.majors.map((major) => pathOf(route, major)))) {
      app[route.method](expressPath(path), (request, response) =>
        serve(deps, route, { request, response }),
      );
      byPath.set(path, [...(byPath.get(path) ?? []), route]);
    }
  for (const [path, served] of byPath) mountOtherMethods(app, deps.gate, { path, routes: served });
  app.all(/^\/v\d+(\/|$)/, (request) => {
    deps.gate.authenticate(request);
    throw new HostError('not_found');
  });
}

/** `/v1/runs/{runId}` to Express: parameters become `:runId`, characters with a meaning there are escaped. */
function expressPath(path: string): string {
  return path.replace(/[:*?+()[\]!]/g, '\\$&').replace(/\{(\w+)\}/g, ':$1');
}

async function serve(
  deps: MountDeps,
  route: Route,
  exchange: { readonly request: Request; readonly response: Response },
): Promise<void> {
  const { request, response } = exchange;
  const { runId } = request.params;
  const major = majorOf(response);
  response.locals.route = pathOf(route, major);
  response.locals.keyed =
    request.headers['idempotency-key'] !== undefined &&
    Object.values(route.parameters ?? {}).includes(IDEMPOTENCY_KEY);
  if (typeof runId === 'string') response.locals.runId = runId.slice(0, MAX_LOGGED_ID);
  const caller = await deps.gate.admit(request, route.access);
  response.locals.tenant = caller.tenant;
  const body = route.method === 'post' ? await readJsonBody(request, response) : undefined;
  const input = await readInput(deps, route, { request, major, caller, body });
  try {
    if (route.kind === 'stream') {
      if (caller.subject.lane === 'session') endWithSession(deps.gate, route, exchange);
      await route.stream(input, exchange);
    } else send(response, route, await route.handle(input));
  } catch (error) {
    // It was found before, and is no more.
    if (input.run && codeOf(error) === 'run_not_found')
      await goneRun(deps, caller, input.run.runId);
    throw error;
  }
}

/** Who has signed out, or whose session is over, is shown no more of a stream; what is told of it is the next request's. */
function endWithSession(
  gate: Gate,
  { access }: Route,
  { request, response }: { readonly request: Request; readonly response: Response },
): void {
  const timer = setInterval(() => {
    if (isGone(response)) return clearInterval(timer);
    // A database that is away says nothing of the session.
    gate.admit(request, access).catch((error: unknown) => {
      if (codeOf(error) === 'unauthenticated') response.destroy();
    });
  }, SESSION_CHECK_MS).unref();
  response.once('close', () => clearInterval(timer));
}

function send(response: Response, { success }: Route, answer: Answer): void {
  const { status = success.status, headers = {}, body, text, runId } = answer;
  if (runId !== undefined) response.locals.runId = runId;
  response.status(status);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (body === undefined) response.end(text);
  else response.json(body);
}

function mountOtherMethods(
  app: Express,
  gate: Gate,
  { path, routes }: { readonly path: string; readonly routes: readonly Route[] },
): void {
  const allowed = routes.map(({ method }) => method.toUpperCase());
  const isPublic = routes.some(({ access }) => scopeOf(access) === undefined);
  app.all(expressPath(path), (request, response) => {
    if (!isPublic) gate.authenticate(request);
    // An operation that this host lacks (`:rewind`) is not there, whatever the run before the colon.
    if (OPERATION.test(request.path) && !OPERATION.test(path)) throw new HostError('not_found');
    response.setHeader(
      'Allow',
      [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : [])].join(', '),
    );
    throw new HostError('method_not_allowed', { allowed });
  });
}
