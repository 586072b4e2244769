// Who may ask what: bearer keys (auth.md), compared by SHA-256 in constant time, never stored or told in plain; and
// the access that each route declares.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import { HostError } from '../rules/errors.ts';
import type { Caller } from '../ports/caller.ts';
import { nowMs } from '../system/time.ts';
import { DEFAULT_CALLER } from './deps.ts';
import type { PageSessions } from './page-sessions.ts';
import { scopeOf, type Access } from './route.ts';
import { WRONG_AS_BEARER, type WrongKeys } from './wrong-keys.ts';

/** A longer Authorization header is refused unread, in UTF-16 units. */
const MAX_AUTHORIZATION_LENGTH = 8192;

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Whether it is the key, in a time that does not tell how much of it is right. */
export function keyCheck(apiKey: string): (given: string) => boolean {
  const expected = digest(apiKey);
  return (given) => timingSafeEqual(digest(given), expected);
}

/** Gives the caller of a request, or throws `unauthenticated`; `rate_limited` after many wrong keys of its address. */
function createAuthenticator(
  apiKey: string,
  caller: Caller,
  wrongKeys: WrongKeys,
): (request: Request) => Caller {
  const isKey = keyCheck(apiKey);
  return (request) => {
    const header = request.headers.authorization ?? '';
    const match =
      header.length <= MAX_AUTHORIZATION_LENGTH ? /^Bearer +([^\s]+) *$/i.exec(header) : null;
    const matches = isKey(match?.[1] ?? '');
    if (match && matches) return caller;
    const waitMs = match ? wrongKeys.count(request.ip, WRONG_AS_BEARER, nowMs()) : undefined;
    if (waitMs === undefined) throw new HostError('unauthenticated');
    const reason = 'Many wrong keys were sent. The right one is taken at any time.';
    const retryAfter = Math.ceil(waitMs / 1000);
    throw new HostError('rate_limited', { scope: 'key', reason, retryAfter });
  };
}

export interface Gate {
  /** The caller of a bearer key. Throws unauthenticated, rate_limited. */
  authenticate(request: Request): Caller;
  /** Who asks, when a route of this access may be asked. Throws unauthenticated, rate_limited, forbidden. */
  admit(request: Request, access: Access): Promise<Caller>;
}

export function createGate(
  apiKey: string,
  sessions: Pick<PageSessions, 'find'>,
  wrongKeys: WrongKeys,
): Gate {
  const authenticate = createAuthenticator(apiKey, DEFAULT_CALLER, wrongKeys);
  return {
    authenticate,
    async admit(request, access) {
      const scope = scopeOf(access);
      if (scope === undefined) return DEFAULT_CALLER;
      const caller = (await visitorOf(sessions, request, access)) ?? authenticate(request);
      if (!caller.scopes.includes(scope))
        throw new HostError('forbidden', { scopeRequired: scope });
      return caller;
    },
  };
}

/** Whom a page's cookie admits, a run's or that of who is signed in, where the route declares that. */
async function visitorOf(
  sessions: Pick<PageSessions, 'find'>,
  request: Request,
  access: Access,
): Promise<Caller | undefined> {
  const { authorization, cookie } = request.headers;
  if (typeof access === 'string' || authorization !== undefined || cookie === undefined)
    return undefined;
  const runId = request.params[access.pageSession];
  return typeof runId === 'string' ? (await sessions.find(request, runId))?.caller : undefined;
}
