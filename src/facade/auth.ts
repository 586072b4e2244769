// Bearer keys (spec/01 §3.1): compared by SHA-256 in constant time, never stored or told in plain.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import { HostError } from '../rules/errors.ts';
import type { Caller } from '../ports/caller.ts';

/** A longer Authorization header is refused unread, in UTF-16 units. */
const MAX_AUTHORIZATION_LENGTH = 8192;

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Gives the caller of a request, or throws `unauthenticated`. */
export function createAuthenticator(apiKey: string, caller: Caller): (request: Request) => Caller {
  const expected = digest(apiKey);
  return (request) => {
    const header = request.headers.authorization ?? '';
    const match =
      header.length <= MAX_AUTHORIZATION_LENGTH ? /^Bearer +([^\s]+) *$/i.exec(header) : null;
    const matches = timingSafeEqual(digest(match?.[1] ?? ''), expected);
    if (!match || !matches) throw new HostError('unauthenticated');
    return caller;
  };
}

export function requireScope(caller: Caller, scope: string): void {
  if (!caller.scopes.includes(scope)) throw new HostError('forbidden', { scopeRequired: scope });
}
