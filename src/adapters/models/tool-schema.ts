// Schemas of tools as providers take them: objects alone, without alternatives at the top. Other arguments travel as the
// one member of an object, whose schema is told.
import { isJsonObject, type JsonObject, type JsonValue } from '../../rules/json.ts';
import type { ModelRequest } from '../../ports/models.ts';
import { functionNameOf } from './tool-names.ts';

const WRAPPED_MEMBER = 'value';
const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf', 'enum', 'not'];

type ObjectSchema = JsonObject & { readonly type: 'object' };

/** A schema that is wrapped is told and not imposed: its references keep their meaning, and the host checks anyway. */
export function objectSchema(schema: JsonObject): ObjectSchema {
  if (!isWrapped(schema)) return { ...schema, type: 'object' };
  const description = `Matches this JSON Schema: ${JSON.stringify(schema)}`;
  return {
    type: 'object',
    properties: { [WRAPPED_MEMBER]: { description } },
    required: [WRAPPED_MEMBER],
  };
}

function isWrapped(schema: JsonObject): boolean {
  const alternatives = ALTERNATIVES.some((keyword) => Object.hasOwn(schema, keyword));
  return alternatives || (schema.type !== undefined && schema.type !== 'object');
}

/** Arguments as the model gives them, for the conversation: it goes on as it sees that it began. */
export function objectArguments(
  { toolId, arguments: sent }: { readonly toolId: string; readonly arguments: JsonValue },
  tools: ModelRequest['tools'],
): JsonObject {
  const tool = tools.find((each) => each.toolId === toolId);
  const asIs = tool === undefined || !isWrapped(tool.inputSchema);
  return asIs && isJsonObject(sent) ? sent : { [WRAPPED_MEMBER]: sent };
}

/** Arguments as the tool's own schema knows them. A model may forget the wrapping, and have a `value` of its own. */
export function unwrapped(sent: JsonValue, name: string, tools: ModelRequest['tools']): JsonValue {
  const tool = toolNamed(name, tools);
  if (!tool || !isWrapped(tool.inputSchema)) return sent;
  const [member, ...others] = isJsonObject(sent) ? Object.entries(sent) : [];
  return member?.[0] === WRAPPED_MEMBER && others.length === 0 ? member[1] : sent;
}

/** Whether the tool that a model calls by this name takes an object and nothing else. */
export function takesObject(name: string, tools: ModelRequest['tools']): boolean {
  const tool = toolNamed(name, tools);
  return tool !== undefined && !isWrapped(tool.inputSchema);
}

function toolNamed(
  name: string,
  tools: ModelRequest['tools'],
): ModelRequest['tools'][number] | undefined {
  return tools.find(({ toolId }) => functionNameOf(toolId) === name);
}
