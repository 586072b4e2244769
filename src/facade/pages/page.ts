// What each page's handler is made of: its errors leave as pages (architecture §10).
import type { Request, RequestHandler, Response } from 'express';
import { renderErrorPage } from '../../pages/index.ts';
import type { FacadeDeps } from '../deps.ts';
import { envelopeOf } from '../errors.ts';
import { FIRST } from '../majors.ts';
import type { PageSessions } from '../page-sessions.ts';

export type PageDeps = FacadeDeps & { readonly sessions: PageSessions };

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

/** '' where the address has none. */
export function parameter(request: Request, name: string): string {
  const value = request.params[name];
  return typeof value === 'string' ? value : '';
}

function sendErrorPage({ logger }: FacadeDeps, response: Response, error: unknown): void {
  const { status, body, correlationId } = envelopeOf(error, FIRST);
  if (correlationId !== undefined)
    logger.error('page failed', {
      correlationId,
      error: error instanceof Error ? error.stack : typeof error,
    });
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const title = status === 410 ? 'This link no longer works' : 'This cannot be shown';
  const hint =
    body.error === 'link_expired' || body.error === 'unauthenticated' ? ' Ask for a new link.' : '';
  const message =
    body.error === 'unauthenticated' ? 'This page is opened by a one-time link.' : body.message;
  response
    .status(status)
    .type('html')
    .send(renderErrorPage({ status, title, message: message + hint }));
}
