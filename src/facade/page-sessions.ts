// Who may see a run's page (architecture §10): a one-time link opens a session for one run, and who is signed in sees those
// of the tenant. Links and sessions are random, stored hashed, and die on their own, or are revoked by run.
import type { Request, Response } from 'express';
import type { PageSessionStore } from '../ports/page-sessions.ts';
import type { RunRef } from '../ports/runs.ts';
import {
  createHostSessions,
  sessionOf,
  subjectIdOf,
  type HostSession,
  type HostSessions,
} from './host-sessions.ts';
import { FIRST } from './majors.ts';
import {
  cookieTokens,
  createMint,
  hashOf,
  LINK_LIFE_MS,
  SESSION_LIFE_MS,
  setCookies,
} from './page-tokens.ts';
import { baseUrlOf, isSecure } from './urls.ts';

const COOKIE = 'openwop_page';
const RUN_SESSION = { kind: 'page-session', scopes: ['runs:read', 'approvals:respond'] } as const;

export interface PageSession extends HostSession {
  readonly runId: string;
  /** Of who is signed in, and sees the host's pages too; also where a link had opened the run's page. */
  readonly host?: HostSession;
}

export interface PageSessions extends HostSessions {
  /** A link that opens the run's page once, within 10 minutes. */
  createLink(run: RunRef, baseUrl: string): Promise<{ url: string; expiresAtMs: number }>;
  /** Consumes the link and sets the cookies of a new session. False: used, expired, revoked, unknown, or another run's. */
  open(
    target: { readonly runId: string; readonly link: string },
    response: Response,
  ): Promise<boolean>;
  /**
   * Ends the run's links and the sessions that they opened: the next request of each is refused. Returns how many of both
   * were valid, and the principals whose streams are to be cut.
   */
  revoke(run: RunRef): Promise<{
    readonly links: number;
    readonly sessions: number;
    readonly principals: ReadonlySet<string>;
  }>;
  /**
   * The session of this request for this run, if it has one: of its link, or of who is signed in. Whether the run is
   * there for its caller is for the reader to find out.
   */
  find(request: Request, runId: string): Promise<PageSession | undefined>;
  /**
   * A form that another site sends carries that site's Origin; `null` is no origin of ours, nor is `https` one of a host that
   * knows of no TLS, here or at a proxy.
   */
  isOwnOrigin(request: Request): boolean;
}

export function createPageSessions(
  store: PageSessionStore,
  { apiKey, publicUrl }: { readonly apiKey: string; readonly publicUrl?: string },
): PageSessions {
  const mint = createMint(apiKey);
  const hosts = createHostSessions(store, { mint, publicUrl });
  async function findOfRun(request: Request, runId: string): Promise<HostSession | undefined> {
    const tokens = cookieTokens(
      request,
      { name: COOKIE, secure: isSecure(request, publicUrl) },
      (token) => mint.isOurs(token, `session ${runId}`),
    );
    for (const token of tokens) {
      const found = await store.findSession(hashOf(token));
      if (found?.runId === runId) return sessionOf(found.tenant, token, RUN_SESSION);
    }
    return undefined;
  }
  return {
    ...hosts,
    async createLink(run, baseUrl) {
      const { runId } = run;
      const token = mint.issue(`link ${runId}`);
      const expiresAtMs = await store.createLink(run, hashOf(token), LINK_LIFE_MS);
      return {
        url: `${baseUrl}/pages/runs/${encodeURIComponent(runId)}?link=${token}`,
        expiresAtMs,
      };
    },
    async open({ runId, link }, response) {
      if (!mint.isOurs(link, `link ${runId}`)) return false;
      const token = mint.issue(`session ${runId}`);
      const session = { sessionHash: hashOf(token), lifeMs: SESSION_LIFE_MS };
      if (!(await store.consumeLink({ runId, linkHash: hashOf(link) }, session))) return false;
      const id = encodeURIComponent(runId);
      const paths = [`/pages/runs/${id}`, `${FIRST.prefix}/runs/${id}/events`];
      const secure = isSecure(response.req, publicUrl);
      setCookies(response, { name: COOKIE, secure, paths }, token);
      return true;
    },
    async revoke(run) {
      const { sessionHashes, ...ended } = await store.revoke(run);
      const principals = sessionHashes.map((hash) => subjectIdOf(RUN_SESSION.kind, hash));
      return { ...ended, principals: new Set(principals) };
    },
    async find(request, runId) {
      const ofRun = await findOfRun(request, runId);
      const ofHost = await hosts.findHost(request);
      const session = ofRun ?? ofHost;
      if (!session) return undefined;
      const isSame = ofHost?.caller.tenant === session.caller.tenant;
      return { ...session, runId, ...(isSame ? { host: ofHost } : {}) };
    },
    isOwnOrigin(request) {
      const { origin } = request.headers;
      if (origin === undefined || origin === publicUrl) return true;
      const own = baseUrlOf(request, undefined);
      return (
        URL.canParse(origin) && URL.canParse(own) && new URL(origin).origin === new URL(own).origin
      );
    },
  };
}
