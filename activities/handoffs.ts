// Handoffs as a model sees them (RFC 0002 §B, RFC 0077 §E): each agent that control may pass to is a tool, whose call
// says the task in the form that this agent takes. A call of one is no call of a tool: it ends the invocation, and
// what would be refused there is refused here, while the model can still mend it.
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { handoffToolId, type HandoffTarget } from '../src/rules/handoffs.ts';
import { boundText } from '../src/rules/tokens.ts';
import type { ResolvedAgent } from '../src/ports/catalog.ts';
import type { ModelResponse, ToolDescription } from '../src/ports/models.ts';
import { checkAgainst } from '../src/wire/user-schema.ts';
import type { Handoff } from './contract.ts';
import { movedTo } from './decision.ts';
import type { ActivityPorts } from './ports.ts';
import { readJson } from './transcript.ts';

/** Longest reason in bytes. */
const REASON_BYTES = 2048;
/** Longest text in bytes that tells what was wrong. */
const MESSAGE_BYTES = 2048;
const MAX_TOLD_FAULTS = 5;
/** What an agent without a task schema takes. */
const ANY_TASK: JsonObject = { type: 'object' };
/** Nothing runs under this name: the host takes the call itself. */
const NO_TIME_MS = 1;

/** By the id of its tool. */
export type Handoffs = ReadonlyMap<string, ResolvedAgent>;

/** As they are pinned in the run, whatever is loaded now. */
export async function loadHandoffs(
  { stores }: Pick<ActivityPorts, 'stores'>,
  tenant: string,
  targets: readonly HandoffTarget[] = [],
): Promise<Handoffs> {
  const loaded = await Promise.all(
    targets.map(async ({ agentId, manifestHash }): Promise<[string, ResolvedAgent]> => [
      handoffToolId(agentId),
      await readJson<ResolvedAgent>(stores.content, tenant, manifestHash),
    ]),
  );
  return new Map(loaded);
}

/** What the model is shown of one. */
export function handoffTool(
  toolId: string,
  { manifest, taskSchema }: ResolvedAgent,
): ToolDescription {
  const { persona, label, description } = manifest;
  const whom = label ?? persona;
  const task = movedTo('/properties/task', taskSchema ?? ANY_TASK);
  return {
    toolId,
    description:
      `Hands over to ${whom}, who decides in your place: you are not asked again. ` +
      `It is the only call of its turn. ${description ?? ''}`.trimEnd(),
    inputSchema: {
      type: 'object',
      properties: { task, reason: { type: 'string' } },
      required: ['task'],
      additionalProperties: false,
    },
    idempotent: false,
    timeoutMs: NO_TIME_MS,
    transport: 'native',
    safetyTier: 'write',
  };
}

/** Undefined: no call of the turn is a handoff. `calls` must be redacted, and each of a size that is carried. */
export function readHandoff(
  handoffs: Handoffs,
  calls: ModelResponse['calls'],
):
  | ({ readonly kind: 'handoff' } & Handoff)
  | {
      readonly kind: 'invalid';
      readonly violation: 'form' | 'task-schema';
      readonly message: string;
    }
  | undefined {
  const call = calls.find(({ toolId }) => handoffs.has(toolId));
  const target = call && handoffs.get(call.toolId);
  if (!target) return undefined;
  const unusable = (message: string) =>
    ({ kind: 'invalid', violation: 'form', message: boundText(message, MESSAGE_BYTES) }) as const;
  if (calls.length > 1)
    return unusable('A handoff is the only call of its turn. Nothing of that turn was performed.');
  const given = call.arguments;
  if (!isJsonObject(given) || !Object.hasOwn(given, 'task'))
    return unusable('The arguments of a handoff are an object with a member "task".');
  const { task = null, reason } = given;
  if (reason !== undefined && typeof reason !== 'string')
    return unusable('The member "reason" of a handoff is a string.');
  const message = taskFault(target, task);
  if (message !== undefined)
    return {
      kind: 'invalid',
      violation: 'task-schema',
      message: boundText(message, MESSAGE_BYTES),
    };
  return {
    kind: 'handoff',
    toAgentId: target.manifest.agentId,
    task,
    ...(reason === undefined ? {} : { reason: boundText(reason, REASON_BYTES) }),
  };
}

function taskFault({ taskSchema }: ResolvedAgent, task: JsonValue): string | undefined {
  const checked = checkAgainst(taskSchema ?? ANY_TASK, task);
  if (checked.ok) return undefined;
  const told = checked.errors
    .slice(0, MAX_TOLD_FAULTS)
    .map(({ pointer, message }) => `${pointer || '/'} ${message}`);
  return `The task does not match what that agent takes: ${told.join('; ')}.`;
}
