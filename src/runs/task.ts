// What an agent is given to do, held against its manifest before anything is started (RFC 0077 §B step 6, inbound).
import { HostError } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import { MESSAGE_CHANNEL } from '../rules/run-input.ts';
import type { CatalogAgent } from '../ports/catalog.ts';
import { checkAgainst } from '../wire/user-schema.ts';

/** Input under which an agent gets a text whose task schema asks for nothing by name. */
const TEXT_INPUT = 'message';

/** Throws handoff_task_schema_violation. An agent that is not there, or asks for nothing, takes any task. */
export function requireTask(
  agent: Pick<CatalogAgent, 'taskSchema'> | undefined,
  task: JsonObject,
): void {
  if (agent?.taskSchema === undefined) return;
  const checked = checkAgainst(agent.taskSchema, task);
  if (checked.ok) return;
  const [{ pointer, message }] = checked.errors;
  throw new HostError('handoff_task_schema_violation', {
    reason: `The task does not match the agent's task schema: ${pointer || '/'} ${message}.`,
  });
}

/**
 * A task that is one text: under the one name that the agent's task schema requires, else as `message`. Throws
 * handoff_task_schema_violation where the schema asks for more than a text.
 */
export function textTask(agent: Pick<CatalogAgent, 'taskSchema'>, text: string): JsonObject {
  const { required } = agent.taskSchema ?? {};
  const [only] = Array.isArray(required) && required.length === 1 ? required : [];
  // In its run the channel would stand before a variable of its name.
  const isName = typeof only === 'string' && only !== MESSAGE_CHANNEL;
  const task = { [isName ? only : TEXT_INPUT]: text };
  requireTask(agent, task);
  return task;
}
