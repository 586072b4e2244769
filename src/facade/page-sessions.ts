// Who may see a run's page (design §10): a one-time link opens a session for one run. Links and sessions are random,
// stored hashed, and die on their own; the CSRF token follows from the session, so that it survives restarts.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Caller, PageSessionStore } from '../ports.ts';

export const LINK_LIFE_MS = 10 * 60 * 1000;
export const SESSION_LIFE_MS = 12 * 3600 * 1000;
const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;
const COOKIE = 'openwop_page';

export interface PageSession {
  readonly caller: Caller;
  readonly runId: string;
  readonly csrfToken: string;
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** A link that opens the run's page once, within 10 minutes. */
export async function createPageLink(
  store: PageSessionStore,
  run: { tenant: string; runId: string },
  options: { baseUrl: string; nowMs?: number },
): Promise<{ url: string; expiresAtMs: number }> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const expiresAtMs = (options.nowMs ?? Date.now()) + LINK_LIFE_MS;
  await store.createLink(run.tenant, run.runId, hashOf(token), expiresAtMs);
  return {
    url: `${options.baseUrl}/pages/runs/${encodeURIComponent(run.runId)}?link=${token}`,
    expiresAtMs,
  };
}

/** Consumes the link and sets the cookies of a new session. False: used, expired, unknown, or another run's. */
export async function openSession(
  store: PageSessionStore,
  { runId, link, secure }: { runId: string; link: string; secure: boolean },
  response: Response,
): Promise<boolean> {
  const nowMs = Date.now();
  const target = TOKEN.test(link) ? await store.consumeLink(hashOf(link), nowMs) : undefined;
  if (target?.runId !== runId) return false;
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  await store.createSession(target.tenant, runId, hashOf(token), nowMs + SESSION_LIFE_MS);
  const id = encodeURIComponent(runId);
  for (const path of [`/pages/runs/${id}`, `/v1/runs/${id}/events`]) {
    response.cookie(COOKIE, token, {
      path,
      httpOnly: true,
      sameSite: 'strict',
      secure,
      maxAge: SESSION_LIFE_MS,
      encode: String,
    });
  }
  return true;
}

function cookieTokens(request: Request): string[] {
  return (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim().split('='))
    .filter(([name]) => name === COOKIE)
    .map(([, value = '']) => value)
    .filter((value) => TOKEN.test(value))
    .slice(0, 4);
}

/** The session of this request for this run, if it has one. */
export async function findSession(
  store: PageSessionStore,
  request: Request,
  runId: string,
): Promise<PageSession | undefined> {
  for (const token of cookieTokens(request)) {
    const hash = hashOf(token);
    const found = await store.findSession(hash, Date.now());
    if (found?.runId !== runId) continue;
    const caller: Caller = {
      tenant: found.tenant,
      principal: `page-session:${hash.slice(0, 16)}`,
      scopes: ['runs:read', 'approvals:respond'],
    };
    return {
      caller,
      runId,
      csrfToken: createHmac('sha256', token).update('csrf').digest('base64url'),
    };
  }
  return undefined;
}

export function isCsrfToken(session: PageSession, given: string): boolean {
  const expected = createHash('sha256').update(session.csrfToken).digest();
  return timingSafeEqual(expected, createHash('sha256').update(given).digest());
}

/** A form that another site sends carries that site's Origin; `null` is no origin of ours. */
export function isOwnOrigin(request: Request): boolean {
  const { origin } = request.headers;
  if (origin === undefined) return true;
  try {
    return new URL(origin).host === request.headers.host;
  } catch {
    return false;
  }
}
