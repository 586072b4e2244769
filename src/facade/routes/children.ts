// GET /v1/host/openwop-temporal/runs/{runId}/children: the runs below a run, and what each of them asks of people: who
// waits for a run finds here whom it waits for. An extension of this host.
import { interruptView } from '../../log/fold.ts';
import { runsBelow } from '../../runs/below.ts';
import { withShownIds } from '../../wire/major.ts';
import type { FacadeDeps } from '../deps.ts';
import { iso } from '../../rules/unreadable.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';

export const LIST_CHILDREN = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/children',
  operationId: 'listChildren',
  summary:
    'The runs that a run started, and theirs, oldest first, with what each asks. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The runs below.', schema: shape('RunsBelow') },
} as const satisfies Declaration;

export function childrenRoute(deps: FacadeDeps): Route {
  return answered(LIST_CHILDREN, async ({ caller, major, run }) => {
    const { runs, more } = await runsBelow(deps, run);
    const idOf = (runId: string): string => major.ids.bind('run', runId, caller.tenant);
    return {
      body: {
        runs: runs.map(
          ({ runId, parentRunId, workflowId, status, createdAtMs, asks, unreadable }) => ({
            runId: idOf(runId),
            parentRunId: idOf(parentRunId),
            workflowId,
            status,
            createdAt: iso(createdAtMs),
            ...(unreadable ? { unreadable } : {}),
            ...(asks
              ? {
                  questions: asks.map((open) =>
                    withShownIds(major, caller.tenant, interruptView(open)),
                  ),
                }
              : {}),
          }),
        ),
        more,
      },
    };
  });
}
