// One JSON log line per request: route, status, time, run. Never keys, bodies, query strings or page links.
import type { RequestHandler } from 'express';
import type { Logger } from '../ports/logger.ts';

export function accessLog(logger: Logger): RequestHandler {
  return (request, response, next) => {
    const startedAt = performance.now();
    response.once('close', () => {
      const runId: unknown = response.locals.runId;
      const route: unknown = response.locals.route;
      logger.info('request', {
        method: request.method,
        // The route's own pattern: a path may hold anything that a client typed.
        route: typeof route === 'string' ? route : 'none',
        status: response.statusCode,
        ms: Math.round(performance.now() - startedAt),
        ...(typeof runId === 'string' ? { runId } : {}),
        ...(response.writableFinished ? {} : { aborted: true }),
        traceparent: response.getHeader('traceparent'),
      });
    });
    next();
  };
}
