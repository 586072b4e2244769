// Who may see the host's pages (architecture §10): a session belongs to a tenant, and is opened by the key in a form or by
// a one-time link. By the forms of its pages it starts, answers, pauses, resumes and cancels runs; it operates no agents.
import type { Request, Response } from 'express';
import { subjectOf } from '../rules/subject.ts';
import type { Caller } from '../ports/caller.ts';
import type { PageSessionStore } from '../ports/page-sessions.ts';
import { FIRST } from './majors.ts';
import {
  clearCookies,
  cookieTokens,
  csrfTokenOf,
  hashOf,
  LINK_LIFE_MS,
  SESSION_LIFE_MS,
  setCookies,
  type CookiePlace,
  type Mint,
} from './page-tokens.ts';
import type { Scope } from './route.ts';
import { isSecure } from './urls.ts';

/** What the tokens are for; those of runs begin otherwise. */
const LINK = 'host link';
const SESSION = 'host session';
const COOKIE = 'openwop_host';
/** The pages, and the event streams that they read. */
const COOKIE_PATHS = ['/pages', `${FIRST.prefix}/runs`];
const HOST_SESSION = {
  kind: 'host-session',
  scopes: [
    'manifest:read',
    'runs:create',
    'runs:read',
    'runs:cancel',
    'artifacts:read',
    'approvals:respond',
  ],
} as const;

export interface HostSession {
  readonly caller: Caller;
  readonly csrfToken: string;
}

export interface HostSessions {
  /** A link that signs in once, within 10 minutes. */
  createHostLink(
    tenant: string,
    baseUrl: string,
  ): Promise<{ readonly url: string; readonly expiresAtMs: number }>;
  /** Consumes the link and signs in. False: used, expired or unknown. */
  openHost(link: string, response: Response): Promise<boolean>;
  /** Sets the cookies of a new session. */
  signIn(tenant: string, response: Response): Promise<void>;
  /** The session of this request for the host's pages, if it has one. */
  findHost(request: Request): Promise<HostSession | undefined>;
  /** Ends the sessions of this request and takes their cookies back. */
  signOut(request: Request, response: Response): Promise<void>;
}

export function createHostSessions(
  store: PageSessionStore,
  { mint, publicUrl }: { readonly mint: Mint; readonly publicUrl: string | undefined },
): HostSessions {
  const place = (request: Request): CookiePlace => ({
    name: COOKIE,
    secure: isSecure(request, publicUrl),
    paths: COOKIE_PATHS,
  });
  const tokensOf = (request: Request) =>
    cookieTokens(request, place(request), (token) => mint.isOurs(token, SESSION));
  async function signIn(tenant: string, response: Response): Promise<void> {
    const token = mint.issue(SESSION);
    const session = { sessionHash: hashOf(token), lifeMs: SESSION_LIFE_MS };
    await store.createHostSession(tenant, session);
    setCookies(response, place(response.req), token);
  }
  return {
    signIn,
    async createHostLink(tenant, baseUrl) {
      const token = mint.issue(LINK);
      const expiresAtMs = await store.createHostLink(tenant, hashOf(token), LINK_LIFE_MS);
      return { url: `${baseUrl}/pages/sign-in?link=${token}`, expiresAtMs };
    },
    async openHost(link, response) {
      if (!mint.isOurs(link, LINK)) return false;
      const token = mint.issue(SESSION);
      const session = { sessionHash: hashOf(token), lifeMs: SESSION_LIFE_MS };
      if (!(await store.consumeHostLink(hashOf(link), session))) return false;
      setCookies(response, place(response.req), token);
      return true;
    },
    async findHost(request) {
      for (const token of tokensOf(request)) {
        const found = await store.findHostSession(hashOf(token));
        if (found) return sessionOf(found.tenant, token, HOST_SESSION);
      }
      return undefined;
    },
    async signOut(request, response) {
      for (const token of tokensOf(request)) await store.endHostSession(hashOf(token));
      clearCookies(response, place(request));
    },
  };
}

/** `kind` goes into the subject: who answers by a session is told from others. */
export function sessionOf(
  tenant: string,
  token: string,
  { kind, scopes }: { readonly kind: string; readonly scopes: readonly Scope[] },
): HostSession {
  const subject = subjectOf('session', tenant, subjectIdOf(kind, hashOf(token)));
  return { caller: { tenant, subject, scopes }, csrfToken: csrfTokenOf(token) };
}

/** By the hash of its token: who answers by a session is not to be taken for another. */
export function subjectIdOf(kind: string, hash: string): string {
  return `${kind}:${hash.slice(0, 16)}`;
}
