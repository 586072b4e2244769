// POST /v1/host/openwop-temporal/sign-in-link: a one-time link that signs a browser in. An extension of this host.
import { iso } from '../../rules/unreadable.ts';
import type { PageSessions } from '../page-sessions.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';

export const CREATE_SIGN_IN_LINK = {
  method: 'post',
  path: '/host/openwop-temporal/sign-in-link',
  operationId: 'createSignInLink',
  summary:
    "A link that signs a browser in to the host's pages once, within 10 minutes. An extension of this host.",
  access: 'pages:sign-in',
  errors: ['service_unavailable'],
  success: { status: 201, description: 'The link.', schema: shape('PageLink') },
} as const satisfies Declaration;

export function signInLinkRoute(sessions: Pick<PageSessions, 'createHostLink'>): Route {
  return answered(CREATE_SIGN_IN_LINK, async ({ caller, baseUrl }) => {
    const { url, expiresAtMs } = await sessions.createHostLink(caller.tenant, baseUrl);
    return { body: { url, expiresAt: iso(expiresAtMs) } };
  });
}
