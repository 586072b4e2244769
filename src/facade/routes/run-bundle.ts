// GET /v1/host/openwop-temporal/runs/{runId}/bundle: the file that `openwop export` writes and `openwop import` replays.
// An extension of this host: the protocol's own debug bundle (debug-bundle.ts) has no place for a recording.
import { runBundle } from '../../runs/bundle.ts';
import type { FacadeDeps } from '../deps.ts';
import { implementationOf } from '../host-facts.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';
import { renderSnapshot } from '../snapshot.ts';

export const GET_RUN_BUNDLE = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/bundle',
  operationId: 'getRunBundle',
  summary:
    'A run in one file, with its prompts and what it was given: to be replayed elsewhere. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The file.', schema: shape('RunBundle') },
  errors: [
    ...(['capability_not_provided', 'payload_too_large', 'service_unavailable'] as const),
    ...(['history_missing', 'content_missing', 'subject_erased'] as const),
  ],
} as const satisfies Declaration;

export function runBundleRoute(deps: FacadeDeps): Route {
  return answered(GET_RUN_BUNDLE, async ({ major, run }) => {
    const text = await runBundle(deps, run, {
      host: implementationOf(deps.config),
      temporalSdk: deps.config.sdkVersion ?? 'unknown',
      shown: (head) => renderSnapshot(major, head, run),
    });
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
    };
    return { headers, text };
  });
}
