// POST /v1/host/openwop-temporal/runs/{runId}/page-link: a one-time link to the run's page. An extension of this host.
import type { PageSessions } from '../page-sessions.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';

export const CREATE_PAGE_LINK = {
  method: 'post',
  path: '/host/openwop-temporal/runs/{runId}/page-link',
  operationId: 'createPageLink',
  summary: "A link that opens the run's page once, within 10 minutes. An extension of this host.",
  access: 'approvals:respond',
  about: 'run',
  success: { status: 201, description: 'The link.', schema: shape('PageLink') },
} as const satisfies Declaration;

export function pageLinkRoute(sessions: Pick<PageSessions, 'createLink'>): Route {
  return answered(CREATE_PAGE_LINK, async ({ run, baseUrl }) => {
    const { url, expiresAtMs } = await sessions.createLink(run, baseUrl);
    return { body: { url, expiresAt: new Date(expiresAtMs).toISOString() } };
  });
}
