// Who may see a run's page (architecture §10): a one-time link opens a session for one run. Links and sessions are
// random, stored hashed, and die on their own; the CSRF token follows from the session, so that it survives restarts.
import { subjectOf } from '../rules/subject.ts';
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Caller } from '../ports/caller.ts';
import type { PageSessionStore } from '../ports/page-sessions.ts';
import { FIRST } from './majors.ts';
import { addressedHost, isSecure } from './urls.ts';

const LINK_LIFE_MS = 10 * 60 * 1000;
const SESSION_LIFE_MS = 12 * 3600 * 1000;
const RANDOM_BYTES = 32;
const SEAL_BYTES = 16;
/** Random bytes and their seal in base64url. */
const TOKEN = /^[\w-]{64}$/;
const COOKIE = 'openwop_page';
/** Sessions of one request that are looked up: a browser sends one for each path that fits. */
const MAX_COOKIES = 4;

export interface PageSession {
  readonly caller: Caller;
  readonly runId: string;
  readonly csrfToken: string;
}

export interface PageSessions {
  /** A link that opens the run's page once, within 10 minutes. */
  createLink(
    run: { readonly tenant: string; readonly runId: string },
    baseUrl: string,
  ): Promise<{ url: string; expiresAtMs: number }>;
  /** Consumes the link and sets the cookies of a new session. False: used, expired, unknown, or another run's. */
  open(
    target: { readonly runId: string; readonly link: string },
    response: Response,
  ): Promise<boolean>;
  /** The session of this request for this run, if it has one. */
  find(request: Request, runId: string): Promise<PageSession | undefined>;
  /** A form that another site sends carries that site's Origin; `null` is no origin of ours. */
  isOwnOrigin(request: Request): boolean;
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * Tokens carry a seal of this deployment over what they are for: what somebody made up, or another run's, is known
 * without asking the database. All facades have the same key, and a new key ends all links and sessions.
 */
function createMint(apiKey: string) {
  const key = createHmac('sha256', apiKey).update('openwop run pages').digest();
  const sealOf = (random: Buffer, purpose: string): Buffer =>
    createHmac('sha256', key).update(random).update(purpose).digest().subarray(0, SEAL_BYTES);
  return {
    issue(purpose: string): string {
      const random = randomBytes(RANDOM_BYTES);
      return Buffer.concat([random, sealOf(random, purpose)]).toString('base64url');
    },
    isOurs(token: string, purpose: string): boolean {
      if (!TOKEN.test(token)) return false;
      const bytes = Buffer.from(token, 'base64url');
      const random = bytes.subarray(0, RANDOM_BYTES);
      return timingSafeEqual(bytes.subarray(RANDOM_BYTES), sealOf(random, purpose));
    },
  };
}

export function createPageSessions(
  store: PageSessionStore,
  { apiKey, publicUrl }: { readonly apiKey: string; readonly publicUrl?: string },
): PageSessions {
  const mint = createMint(apiKey);
  return {
    async createLink({ tenant, runId }, baseUrl) {
      const token = mint.issue(`link ${runId}`);
      const expiresAtMs = Date.now() + LINK_LIFE_MS;
      await store.createLink(tenant, runId, hashOf(token), expiresAtMs);
      return {
        url: `${baseUrl}/pages/runs/${encodeURIComponent(runId)}?link=${token}`,
        expiresAtMs,
      };
    },
    async open({ runId, link }, response) {
      const nowMs = Date.now();
      if (!mint.isOurs(link, `link ${runId}`)) return false;
      const target = await store.consumeLink(hashOf(link), nowMs);
      if (target?.runId !== runId) return false;
      const token = mint.issue(`session ${runId}`);
      await store.createSession(target.tenant, runId, hashOf(token), nowMs + SESSION_LIFE_MS);
      setCookies(response, { runId, token, secure: isSecure(response.req, publicUrl) });
      return true;
    },
    async find(request, runId) {
      const name = cookieName(isSecure(request, publicUrl));
      const tokens = cookieTokens(request, name).filter((token) =>
        mint.isOurs(token, `session ${runId}`),
      );
      for (const token of tokens.slice(0, MAX_COOKIES)) {
        const found = await store.findSession(hashOf(token), Date.now());
        if (found?.runId === runId) return sessionOf(found, token);
      }
      return undefined;
    },
    isOwnOrigin(request) {
      const { origin } = request.headers;
      if (origin === undefined || origin === publicUrl) return true;
      return URL.canParse(origin) && new URL(origin).host === addressedHost(request);
    },
  };
}

/** A browser takes the prefixed name over TLS only: nobody on an open network can plant a session. */
function cookieName(secure: boolean): string {
  return secure ? `__Secure-${COOKIE}` : COOKIE;
}

function setCookies(
  response: Response,
  { runId, token, secure }: { runId: string; token: string; secure: boolean },
): void {
  const id = encodeURIComponent(runId);
  for (const path of [`/pages/runs/${id}`, `${FIRST.prefix}/runs/${id}/events`]) {
    response.cookie(cookieName(secure), token, {
      path,
      httpOnly: true,
      sameSite: 'strict',
      secure,
      maxAge: SESSION_LIFE_MS,
      encode: String,
    });
  }
}

function cookieTokens(request: Request, cookie: string): string[] {
  return (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim().split('='))
    .filter(([name]) => name === cookie)
    .map(([, value = '']) => value);
}

function sessionOf(
  { tenant, runId }: { tenant: string; runId: string },
  token: string,
): PageSession {
  const caller: Caller = {
    tenant,
    subject: subjectOf('session', tenant, `page-session:${hashOf(token).slice(0, 16)}`),
    scopes: ['runs:read', 'approvals:respond'],
  };
  return {
    caller,
    runId,
    csrfToken: createHmac('sha256', token).update('csrf').digest('base64url'),
  };
}

export function isCsrfToken(session: PageSession, given: string): boolean {
  const expected = createHash('sha256').update(session.csrfToken).digest();
  return timingSafeEqual(expected, createHash('sha256').update(given).digest());
}
