// Variables of a definition (workflow-definition.schema.json): their types, and what of them is not shown.
import { isJsonObject, type JsonValue } from './json.ts';
import type { WorkflowDefinition, WorkflowVariable } from '../../schemas/types.generated.ts';

export function hasType(value: JsonValue, type: WorkflowVariable['type']): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isJsonObject(value);
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
  }
}

/**
 * Variables and channels that are declared sensitive begin with values that are as sensitive: `shown` says what stands in
 * the place of each.
 */
export function withDefaultsShown(
  definition: WorkflowDefinition,
  shown: (value: JsonValue) => JsonValue,
): WorkflowDefinition {
  const { variables, channels } = definition;
  return {
    ...definition,
    variables: variables.map((variable) =>
      variable.sensitive && variable.defaultValue !== undefined
        ? { ...variable, defaultValue: shown(variable.defaultValue as JsonValue) }
        : variable,
    ),
    ...(channels && {
      channels: Object.fromEntries(
        Object.entries(channels).map(([name, channel]) => [
          name,
          channel.sensitive && channel.default !== undefined
            ? { ...channel, default: shown(channel.default as JsonValue) }
            : channel,
        ]),
      ),
    }),
  };
}
