// POST /v1/host/openwop-temporal/runs/{runId}/page-link: a one-time link to the run's page; and page-links:revoke, which ends
// all of a run, and the sessions that they opened. Extensions of this host.
import { requireRunRef } from '../../runs/find.ts';
import type { FacadeDeps } from '../deps.ts';
import { iso } from '../../rules/unreadable.ts';
import type { PageSessions } from '../page-sessions.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';
import type { StreamRegistry } from '../stream-registry.ts';
import { shownRunId } from '../urls.ts';

export const CREATE_PAGE_LINK = {
  method: 'post',
  path: '/host/openwop-temporal/runs/{runId}/page-link',
  operationId: 'createPageLink',
  summary: "A link that opens the run's page once, within 10 minutes. An extension of this host.",
  access: 'approvals:respond',
  about: 'run',
  success: { status: 201, description: 'The link.', schema: shape('PageLink') },
} as const satisfies Declaration;

/** Not `about` a run, whose row would be read: links of one that cannot be read are revoked as well. */
export const REVOKE_PAGE_LINKS = {
  method: 'post',
  path: '/host/openwop-temporal/runs/{runId}/page-links:revoke',
  operationId: 'revokePageLinks',
  summary:
    "Revoke all links to the run's page, and end the sessions that they opened. Their event streams are cut at once, and within 30 seconds where another process sends them. An extension of this host.",
  access: 'approvals:respond',
  success: {
    status: 200,
    description: 'How many valid links and sessions were ended.',
    schema: shape('PageLinkRevocation'),
  },
  errors: ['run_not_found', 'run_expired', 'service_unavailable'],
} as const satisfies Declaration;

interface PageLinkParts {
  readonly sessions: Pick<PageSessions, 'createLink' | 'revoke'>;
  readonly streams: Pick<StreamRegistry, 'cut'>;
}

export function pageLinkRoutes(
  deps: Pick<FacadeDeps, 'stores' | 'logger'>,
  parts: PageLinkParts,
): Route[] {
  return [
    answered(CREATE_PAGE_LINK, async ({ run, baseUrl }) => {
      const { url, expiresAtMs } = await parts.sessions.createLink(run, baseUrl);
      return { body: { url, expiresAt: iso(expiresAtMs) } };
    }),
    answered(REVOKE_PAGE_LINKS, (input) => revokeLinks(deps, parts, input)),
  ];
}

async function revokeLinks(
  deps: Pick<FacadeDeps, 'stores' | 'logger'>,
  { sessions, streams }: PageLinkParts,
  input: InputOf<typeof REVOKE_PAGE_LINKS>,
): Promise<Answer> {
  const run = await requireRunRef(deps, input.caller, input.path.runId);
  const { links, sessions: ended, principals } = await sessions.revoke(run);
  streams.cut(principals);
  const { tenant, runId } = run;
  deps.logger.info('links to a page were revoked', { tenant, runId, links, sessions: ended });
  return { body: { runId: shownRunId(input, runId), links, sessions: ended } };
}
