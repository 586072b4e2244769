// POST /v1/host/sample/test/runs/{runId}/expire: what retention does when its time has come, now. Its family must have ended,
// as always; what is left of it is deleted at once, by whoever does so on this host. `production.retention.testForceExpire`
// says that it is there.
import { HostError } from '../../rules/errors.ts';
import { expireRun } from '../../log/expirer.ts';
import { requireRun } from '../../runs/find.ts';
import type { FacadeDeps } from '../deps.ts';
import { answered, type Declaration, type Route } from '../route.ts';

const EXPIRE_RUN = {
  method: 'post',
  path: '/host/sample/test/runs/{runId}/expire',
  operationId: 'seamExpireRun',
  summary: 'Let a run that has ended expire now. Test mode only.',
  access: 'runs:cancel',
  success: { status: 200, description: 'It and its family have expired.' },
} as const satisfies Declaration;

export function expireRunRoute(deps: FacadeDeps): Route {
  return answered(EXPIRE_RUN, async ({ caller, path }) => {
    const run = await requireRun(deps, caller, path.runId);
    const outcome = await expireRun({ stores: deps.stores, restMs: 0 }, run);
    if (outcome.kind === 'kept') throw new HostError('run_state_conflict', { why: outcome.why });
    if (outcome.kind === 'none') throw new HostError('run_not_found');
    return { body: { runIds: outcome.runs.map(({ runId }) => runId) } };
  });
}
