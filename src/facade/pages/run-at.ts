// GET /pages/runs/{runId}/at?event=: a run as it was at an event of its log, for who is signed in.
import type { Router } from 'express';
import type { JsonObject } from '../../rules/json.ts';
import { renderAtPage, type AtPageModel } from '../../pages/index.ts';
import type { RunRow } from '../../ports/runs.ts';
import { runAt, type RunAt } from '../../runs/at.ts';
import { requireRun } from '../../runs/find.ts';
import { isDeclined } from '../../words/declined.js';
import { queryText } from '../parameters.ts';
import { STALE_HEADER } from '../read-head.ts';
import { sequenceIn } from '../routes/run-at.ts';
import { page, parameter, signedIn, type PageDeps, type SignedInCall } from './page.ts';

export function mountAtPage(router: Router, deps: PageDeps): void {
  router.get('/pages/runs/:runId/at', page(deps, signedIn(showAt)));
}

async function showAt(deps: PageDeps, call: SignedInCall): Promise<void> {
  const { request, response, session } = call;
  const runId = parameter(request, 'runId');
  response.locals.runId = runId;
  const row = await requireRun(deps, session.caller, runId);
  const { stale, ...was } = await runAt(deps, row, sequenceIn(queryText(request, 'event') ?? '0'));
  if (stale) response.setHeader(STALE_HEADER, 'true');
  const html = renderAtPage({ ...stateOf(row, was), stale });
  response.status(200).type('html').send(html);
}

function stateOf(
  { runId, input }: RunRow,
  { event, length, snapshot, nodeErrors }: RunAt,
): Omit<AtPageModel, 'stale'> {
  const { name, nodes } = input.definition;
  const { status, nodeStates = {}, variables, interrupt, metrics, outputs, error } = snapshot;
  const nameOf = (nodeId: unknown): string =>
    nodes.find(({ id }) => id === nodeId)?.name ?? String(nodeId);
  const states = nodeStates as Readonly<Record<string, { readonly status?: string }>>;
  const statusOf = (id: string): string => {
    const was = states[id]?.status ?? '';
    return was === 'failed' && isDeclined(nodeErrors.get(id)) ? 'declined' : was;
  };
  const reached = nodes.filter(({ id }) => Object.hasOwn(states, id));
  const { title, kind, nodeId } = (interrupt ?? {}) as JsonObject;
  const { openwopCost } = (metrics ?? {}) as { readonly openwopCost?: JsonObject };
  return {
    ...{ runId, name, sequence: event.sequence, length, type: event.type },
    ...{ timestampMs: event.timestampMs, status },
    nodes: reached.map(({ id }) => ({ name: nameOf(id), status: statusOf(id) })),
    ...(interrupt
      ? {
          question: {
            title: typeof title === 'string' ? title : (kind as string),
            nodeName: nameOf(nodeId),
          },
        }
      : {}),
    variables: (variables ?? {}) as JsonObject,
    ...(openwopCost ? { cost: openwopCost } : {}),
    ...(outputs === undefined ? {} : { outputs }),
    ...(error ? { error } : {}),
  };
}
