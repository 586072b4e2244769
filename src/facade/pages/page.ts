// What each page's handler is made of: its errors leave as pages, and who must be signed in is (architecture §10).
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { codeOf, ERRORS, HostError } from '../../rules/errors.ts';
import { renderErrorPage, renderSignInPage, type ErrorPageModel } from '../../pages/index.ts';
import { readForm } from '../body.ts';
import type { FacadeDeps } from '../deps.ts';
import { envelopeOf } from '../errors.ts';
import { FIRST } from '../majors.ts';
import type { HostSession } from '../host-sessions.ts';
import type { PageSessions } from '../page-sessions.ts';
import type { StreamRegistry } from '../stream-registry.ts';
import { isCsrfToken } from '../page-tokens.ts';
import type { WrongKeys } from '../wrong-keys.ts';

export const HOME = '/pages';
export const SIGN_IN = '/pages/sign-in';
/** Longest path that a sign-in leads back to, in characters. */
const MAX_PATH = 2_000;

export type PageDeps = FacadeDeps & {
  readonly sessions: PageSessions;
  readonly streams: StreamRegistry;
  readonly wrongKeys: WrongKeys;
};

type Handler = (deps: PageDeps, request: Request, response: Response) => Promise<void>;

export function page(deps: PageDeps, handler: Handler): RequestHandler {
  return async (request, response) => {
    try {
      await handler(deps, request, response);
    } catch (error) {
      sendErrorPage(deps, response, error);
    }
  };
}

/** What a handler is given whose visitor is signed in. */
export interface SignedInCall {
  readonly request: Request;
  readonly response: Response;
  readonly session: HostSession;
  /** Of a POST; empty for others. */
  readonly form: Readonly<Record<string, string>>;
}

/**
 * Without a session a GET shows the sign-in form, which leads back to this address, and a POST is `unauthenticated`.
 * A POST is ours: its origin is checked before its form is read, and the field `csrf` before the handler runs.
 */
export function signedIn(handler: (deps: PageDeps, call: SignedInCall) => Promise<void>): Handler {
  return async (deps, request, response) => {
    const find = () => deps.sessions.findHost(request);
    if (request.method === 'POST') {
      const { session, form } = await sentForm(deps, { request, response }, find);
      await handler(deps, { request, response, session, form });
      return;
    }
    const session = await find();
    if (session) await handler(deps, { request, response, session, form: {} });
    else askToSignIn(request, response);
  };
}

/**
 * A form of ours, and whose it is. A stranger's is refused unread; and since a body may be long in coming, its sender is
 * looked for again once it is there. Throws unauthenticated, forbidden and what bodies are refused with.
 */
export async function sentForm<Session extends { readonly csrfToken: string }>(
  { sessions }: Pick<PageDeps, 'sessions'>,
  { request, response }: { readonly request: Request; readonly response: Response },
  find: () => Promise<Session | undefined>,
): Promise<{ readonly session: Session; readonly form: Readonly<Record<string, string>> }> {
  const found = await find();
  if (!found) throw new HostError('unauthenticated');
  if (!sessions.isOwnOrigin(request)) throw new HostError('forbidden');
  const form = await readForm(request, response);
  const session = await find();
  if (!session) throw new HostError('unauthenticated');
  if (!isCsrfToken(session, form.csrf ?? '')) throw new HostError('forbidden');
  return { session, form };
}

/** The form in the place of this address, which it leads back to. */
export function askToSignIn(request: Request, response: Response): void {
  const to = ownPath(request.originalUrl);
  response.status(401).type('html').send(renderSignInPage({ to }));
}

/** Where a sign-in may lead to: a page of this host, read as a browser would read it; else its home. */
export function ownPath(to: string): string {
  const base = 'http://host';
  if (to.length > MAX_PATH || !URL.canParse(to, base)) return HOME;
  const { origin, pathname, search } = new URL(to, base);
  const isPage = pathname === HOME || pathname.startsWith(`${HOME}/`);
  const isSigning = pathname.startsWith(`${HOME}/sign-`);
  return origin === base && isPage && !isSigning ? pathname + search : HOME;
}

/** '' where the address has none. */
export function parameter(request: Request, name: string): string {
  const value = request.params[name];
  return typeof value === 'string' ? value : '';
}

/** Of errors for which a page knows better words, and a way on. */
const WORDS: Readonly<Record<string, Pick<ErrorPageModel, 'message' | 'way'>>> = {
  unauthenticated: {
    message: 'You are not signed in, or no longer. What you sent was not taken.',
    way: { href: SIGN_IN, text: 'Sign in' },
  },
  // Who has no right to a page sees the sign-in form: what is refused here is a form that is not of this session.
  forbidden: {
    message:
      'This form is not of your present session: you signed in again since it was shown, or another site sent it. Nothing was taken. Load the page again, and send the form from there. If that does not help, the host does not know its own address: behind a proxy that ends TLS its operator has to set OPENWOP_PUBLIC_URL or OPENWOP_TRUSTED_PROXIES.',
  },
  unsupported_media_type: { message: 'This is not how a form of this page is sent.' },
  link_expired: {
    message: `${ERRORS.link_expired.message} Ask for a new link, or sign in.`,
    way: { href: SIGN_IN, text: 'Sign in' },
  },
};

/** What Express itself refuses below /pages, such as an address that is no text, leaves as a page too. */
export function pageErrors(deps: FacadeDeps): ErrorRequestHandler {
  return (error, { path }, response, next) => {
    if (path === HOME || path.startsWith(`${HOME}/`)) sendErrorPage(deps, response, error);
    else next(error);
  };
}

function sendErrorPage({ logger }: FacadeDeps, response: Response, error: unknown): void {
  const { status, body, retryAfter, correlationId } = envelopeOf(error, FIRST);
  if (correlationId !== undefined)
    logger.error('page failed', {
      correlationId,
      error: error instanceof Error ? error.stack : typeof error,
    });
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (retryAfter !== undefined) response.set('Retry-After', String(retryAfter));
  const title =
    codeOf(error) === 'run_expired'
      ? 'This run has expired'
      : status === 410
        ? 'This link no longer works'
        : 'This cannot be shown';
  const { message, way } = WORDS[codeOf(error) ?? ''] ??
    WORDS[body.error] ?? { message: body.message };
  response.status(status).type('html').send(renderErrorPage({ status, title, message, way }));
}
