// What links and sessions of pages are made of (architecture §10): random tokens that carry a seal of this deployment, and
// the cookies that hold them.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Request, Response } from 'express';

export const LINK_LIFE_MS = 10 * 60 * 1000;
export const SESSION_LIFE_MS = 12 * 3600 * 1000;
const RANDOM_BYTES = 32;
const SEAL_BYTES = 16;
/** Random bytes and their seal in base64url. */
const TOKEN = /^[\w-]{64}$/;
/** Sessions of one request that are looked up: a browser sends one for each path that fits. */
const MAX_COOKIES = 4;

export interface Mint {
  issue(purpose: string): string;
  /** Whether this deployment issued it for that. */
  isOurs(token: string, purpose: string): boolean;
}

/** What is stored of a token. */
export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * Tokens carry a seal of this deployment over what they are for: what somebody made up, or another run's, is known
 * without asking the database. All facades have the same key, and a new key ends all links and sessions.
 */
export function createMint(apiKey: string): Mint {
  const key = createHmac('sha256', apiKey).update('openwop run pages').digest();
  const sealOf = (random: Buffer, purpose: string): Buffer =>
    createHmac('sha256', key).update(random).update(purpose).digest().subarray(0, SEAL_BYTES);
  return {
    issue(purpose) {
      const random = randomBytes(RANDOM_BYTES);
      return Buffer.concat([random, sealOf(random, purpose)]).toString('base64url');
    },
    isOurs(token, purpose) {
      if (!TOKEN.test(token)) return false;
      const bytes = Buffer.from(token, 'base64url');
      const random = bytes.subarray(0, RANDOM_BYTES);
      return timingSafeEqual(bytes.subarray(RANDOM_BYTES), sealOf(random, purpose));
    },
  };
}

/** It follows from the session, so that it survives restarts. */
export function csrfTokenOf(token: string): string {
  return createHmac('sha256', token).update('csrf').digest('base64url');
}

export function isCsrfToken(session: { readonly csrfToken: string }, given: string): boolean {
  const expected = createHash('sha256').update(session.csrfToken).digest();
  return timingSafeEqual(expected, createHash('sha256').update(given).digest());
}

export interface CookiePlace {
  readonly name: string;
  /** A browser takes the prefixed name over TLS only: nobody on an open network can plant a session. */
  readonly secure: boolean;
  readonly paths: readonly string[];
}

function fullName({ name, secure }: Omit<CookiePlace, 'paths'>): string {
  return secure ? `__Secure-${name}` : name;
}

export function setCookies(response: Response, place: CookiePlace, token: string): void {
  for (const path of place.paths)
    response.cookie(fullName(place), token, {
      path,
      httpOnly: true,
      sameSite: 'strict',
      secure: place.secure,
      maxAge: SESSION_LIFE_MS,
      encode: String,
    });
}

export function clearCookies(response: Response, place: CookiePlace): void {
  for (const path of place.paths)
    response.clearCookie(fullName(place), {
      ...{ path, httpOnly: true, sameSite: 'strict', secure: place.secure },
    });
}

/** Tokens of that name which `isOurs` knows, at most MAX_COOKIES. */
export function cookieTokens(
  request: Request,
  place: Omit<CookiePlace, 'paths'>,
  isOurs: (token: string) => boolean,
): string[] {
  return (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim().split('='))
    .filter(([name]) => name === fullName(place))
    .map(([, value = '']) => value)
    .filter(isOurs)
    .slice(0, MAX_COOKIES);
}
