// POST /v1/host/openwop-temporal/runs/{runId}/page-link: a one-time link to the run's page. An extension of this host.
import { requireRun } from '../../runs/find.ts';
import type { FacadeDeps } from '../deps.ts';
import type { PageSessions } from '../page-sessions.ts';
import type { Route } from '../route.ts';
import { baseUrlOf } from '../urls.ts';

export function pageLinkRoute(deps: FacadeDeps, sessions: PageSessions): Route {
  return {
    method: 'post',
    path: '/v1/host/openwop-temporal/runs/{runId}/page-link',
    operationId: 'createPageLink',
    summary: "A link that opens the run's page once, within 10 minutes. An extension of this host.",
    access: 'approvals:respond',
    success: {
      status: 201,
      description: 'The link.',
      schema: { $ref: '#/components/schemas/PageLink' },
    },
    errors: ['unauthenticated', 'forbidden', 'run_not_found', 'service_unavailable'],
    async handle({ request, response, caller, params }) {
      const row = await requireRun(deps, caller, params.runId ?? '');
      const baseUrl = baseUrlOf(request, deps.config.publicUrl);
      const { url, expiresAtMs } = await sessions.createLink(row, baseUrl);
      response.status(201).json({ url, expiresAt: new Date(expiresAtMs).toISOString() });
    },
  };
}
