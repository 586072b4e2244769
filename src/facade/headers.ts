// What every request and answer carries before any route is asked: Host check against DNS rebinding, security headers,
// W3C trace context (observability.md §Trace context, architecture §10).
import { randomBytes } from 'node:crypto';
import type { RequestHandler } from 'express';
import { HostError, invalid } from '../rules/errors.ts';
import { addressedHost } from './urls.ts';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '::1']);

function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase();
  return LOOPBACK.has(name) || /^127(\.\d{1,3}){3}$/.test(name);
}

function hostName(header: string): string {
  const match = /^(\[[0-9a-f:.]{2,64}\]|[^:/?#@\s]{1,255})(?::\d{1,5})?$/i.exec(header);
  return (match?.[1] ?? '').replace(/^\[|\]$/g, '').toLowerCase();
}

/** Node takes the first of them, and a proxy before it may take another (RFC 9112 §3.2). */
function hostsIn(rawHeaders: readonly string[]): number {
  return rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
}

/**
 * A server bound to loopback answers only to loopback names, its own and that of `publicUrl`, so that no web page can
 * reach it by a name of its own. A server bound elsewhere is named by its operator's DNS: nothing is checked.
 */
export function hostCheck(boundHost: string, publicUrl: string | undefined): RequestHandler {
  const allowed = new Set([...LOOPBACK, boundHost.toLowerCase()]);
  if (publicUrl !== undefined) allowed.add(new URL(publicUrl).hostname.toLowerCase());
  return (request, _response, next) => {
    const { host } = request.headers;
    // The header itself, whatever a proxy says of it: a web page cannot choose it.
    const name = hostName(host ?? '');
    if (host === undefined && request.httpVersion === '1.1') next(invalid('Host', 'is required'));
    else if (hostsIn(request.rawHeaders) > 1) next(invalid('Host', 'is there more than once'));
    else if (host !== undefined && name === '') next(invalid('Host', 'is not a host and a port'));
    else if (addressedHost(request) !== host && hostName(addressedHost(request) ?? '') === '')
      next(invalid('X-Forwarded-Host', 'is not a host and a port'));
    else if (isLoopback(boundHost) && !allowed.has(name)) {
      next(new HostError('forbidden', { reason: 'The Host header does not name this server.' }));
    } else next();
  };
}

export const securityHeaders: RequestHandler = (_request, response, next) => {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('X-Frame-Options', 'DENY');
  response.setHeader('Referrer-Policy', 'no-referrer');
  response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  response.setHeader(
    'Content-Security-Policy',
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
  );
  response.setHeader('Cache-Control', 'no-store');
  next();
};

const TRACEPARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.{0,128})?$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** Echoes a valid trace context and makes one where there is none. */
export const traceContext: RequestHandler = (request, response, next) => {
  const given = request.headers.traceparent;
  const valid = typeof given === 'string' && TRACEPARENT.test(given);
  response.setHeader(
    'traceparent',
    valid ? given : `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`,
  );
  const state = request.headers.tracestate;
  if (valid && typeof state === 'string' && TRACESTATE.test(state))
    response.setHeader('tracestate', state);
  next();
};
