// POST /v1/host/sample/agents/live-invoke (RFC 0077, host-sample-test-seams.md): one live invocation from the entry that is
// asked for. What the model does wrong on demand is played by agents of this host.
import { randomUUID } from 'node:crypto';
import { invalid } from '../../rules/errors.ts';
import type { JsonObject } from '../../rules/json.ts';
import type { Caller } from '../../ports/caller.ts';
import { agentDefinition } from '../../runs/input.ts';
import { mention } from '../../runs/mention.ts';
import type { FacadeDeps } from '../deps.ts';
import { answered, type Answer, type Declaration, type InputOf, type Route } from '../route.ts';
import { CONFORMANCE_AGENTS, STRICT_HANDOFF } from './conformance-agents.ts';
import { runIdOf, seamBody, seenRun, startSeamRun, withDefinition } from './seam.ts';

interface Asked {
  readonly agentId?: string;
  readonly source?: 'workflow-node' | 'run-api' | 'chat-mention';
  readonly returnSchemaRef?: string;
  readonly forceInvalidResult?: boolean;
  readonly attemptTool?: string;
}

const text = { type: 'string', minLength: 1, maxLength: 256 };

const LIVE_INVOKE = {
  method: 'post',
  path: '/host/sample/agents/live-invoke',
  operationId: 'seamLiveInvoke',
  summary: 'Invoke an agent, and say what became of it. Test mode only.',
  access: 'runs:create',
  body: seamBody<Asked>(
    {
      type: 'object',
      properties: {
        ...{ agentId: text, attemptTool: text },
        source: { enum: ['workflow-node', 'run-api', 'chat-mention'] },
        returnSchemaRef: { const: STRICT_HANDOFF },
        forceInvalidResult: { type: 'boolean' },
      },
    },
    { source: 'run-api' },
  ),
  success: { status: 200, description: 'The run has ended, or waits for somebody.' },
} as const satisfies Declaration;

export function liveInvokeRoute(deps: FacadeDeps): Route {
  return answered(LIVE_INVOKE, (input) => liveInvoke(deps, input));
}

async function liveInvoke(
  deps: FacadeDeps,
  { caller, body }: InputOf<typeof LIVE_INVOKE>,
): Promise<Answer> {
  const runId = await invoke(deps, caller, body);
  const { rows } = await seenRun(deps, caller, runId);
  const told = rows.filter(({ payload }) => typeof payload.invocationId === 'string');
  const outcome = told.findLast(({ payload }) => payload.outcome !== undefined)?.payload.outcome;
  const invocationId = told[0]?.payload.invocationId;
  return { body: { runId, invocationId, ...(outcome === undefined ? {} : { outcome }) } };
}

/** Throws validation_error for what no agent here plays together. */
function agentOf({ agentId, returnSchemaRef, forceInvalidResult, attemptTool }: Asked): string {
  const asksMore = returnSchemaRef !== undefined || forceInvalidResult || attemptTool !== undefined;
  if (agentId !== undefined) {
    if (asksMore) throw invalid('/agentId', "is played by the host's own agents alone");
    return agentId;
  }
  if (attemptTool === undefined)
    if (forceInvalidResult) return CONFORMANCE_AGENTS.invalid;
    else return returnSchemaRef ? CONFORMANCE_AGENTS.strict : CONFORMANCE_AGENTS.live;
  if (forceInvalidResult || returnSchemaRef !== undefined)
    throw invalid('/attemptTool', 'is not asked for together with a schema');
  return CONFORMANCE_AGENTS.reaching;
}

async function invoke(deps: FacadeDeps, caller: Caller, asked: Asked): Promise<string> {
  const { source = 'workflow-node', attemptTool } = asked;
  const agentId = agentOf(asked);
  const inputs: JsonObject = attemptTool === undefined ? {} : { attemptTool };
  // The host's own are played, whatever models are configured.
  const configurable: JsonObject = asked.agentId === undefined ? { 'ai.provider': 'scripted' } : {};
  const run = { inputs, configurable };
  switch (source) {
    case 'run-api':
      return startSeamRun(deps, caller, { agentId, ...run });
    case 'workflow-node': {
      const made = { ...agentDefinition(agentId, inputs), id: 'conformance-live-invoke' };
      const catalog = withDefinition(deps.catalog, made);
      return startSeamRun({ ...deps, catalog }, caller, { workflowId: made.id, ...run });
    }
    case 'chat-mention': {
      if (attemptTool !== undefined) throw invalid('/attemptTool', 'is no part of a message');
      const content = `@${agentId} live-invoke`;
      const said = { sessionId: `session-${randomUUID()}`, content, atMs: Date.now() };
      return runIdOf(await mention(deps, caller, { said, configurable }));
    }
  }
}
