// Types of a definition's variables (workflow-definition.schema.json).
import { isJsonObject, type JsonValue } from './json.ts';
import type { WorkflowVariable } from '../../schemas/types.generated.ts';

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
