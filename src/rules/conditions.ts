// Edge conditions (workflow-definition.schema.json): pure, linear in their bounded inputs. `left` is a path; a bare
// word is a variable.
import type { RE2JS } from 're2js';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import type { EdgeCondition, WorkflowDefinition } from '../../schemas/types.generated.ts';

/** Longest text that a regex condition looks at, in UTF-16 units: the rest is not looked at. */
const REGEX_TEXT_LIMIT = 8_192;

/** Loaded only for runs that need it: its Unicode tables take more memory than everything else of a cached run. */
let pattern: typeof RE2JS | undefined;

export function needsPatterns({ edges }: Pick<WorkflowDefinition, 'edges'>): boolean {
  return edges.some(({ condition }) => condition?.type === 'regex');
}

/** To be awaited once per segment of a run that needs them, before its first edge is decided. */
export async function loadPatterns(): Promise<void> {
  pattern = (await import(/* webpackMode: "eager" */ 're2js')).RE2JS;
}

function matches(left: string, right: string): boolean {
  if (!pattern) throw new Error('loadPatterns was not called');
  return pattern.compile(right).matcher(left.slice(0, REGEX_TEXT_LIMIT)).find();
}

/** What `left` may address. */
export interface ConditionScope {
  readonly variables: JsonObject;
  /** Outputs of the edge's source node. */
  readonly outputs: JsonObject;
  /** Set when the source node failed. */
  readonly error?: JsonObject;
}

function at(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  let current = value;
  for (const name of path) {
    if (Array.isArray(current)) current = current[Number(name)];
    else if (isJsonObject(current) && Object.hasOwn(current, name)) current = current[name];
    else return undefined;
  }
  return current;
}

/** `outputs.<path>`, `variables.<path>`, `error.<path>`, or a variable's name with an optional path. */
function resolvePath(left: string, scope: ConditionScope): JsonValue | undefined {
  const path = left.split('.');
  switch (path[0]) {
    case 'outputs':
      return at(scope.outputs, path.slice(1));
    case 'error':
      return at(scope.error, path.slice(1));
    case 'variables':
      return at(scope.variables, path.slice(1));
    default:
      return at(scope.variables, path);
  }
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : canonicalJson(value ?? null);
}

/** Equal as JSON, or as text: `right` is often written as a string where the value is a number or a boolean. */
function equal(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  return (
    canonicalJson(left ?? null) === canonicalJson(right ?? null) ||
    (left !== undefined && text(left) === text(right))
  );
}

function contains(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (Array.isArray(left)) return left.some((item) => equal(item, right));
  if (isJsonObject(left)) return Object.hasOwn(left, text(right));
  return typeof left === 'string' && left.includes(text(right));
}

/** True when the edge is taken. No condition: always. `expression` is refused when the definition is loaded. */
export function holds(condition: EdgeCondition | undefined, scope: ConditionScope): boolean {
  if (!condition) return true;
  const left = condition.left === undefined ? undefined : resolvePath(condition.left, scope);
  const right = condition.right as JsonValue | undefined;
  switch (condition.type) {
    case 'equals':
      return equal(left, right);
    case 'notEquals':
      return !equal(left, right);
    case 'contains':
      return contains(left, right);
    case 'regex':
      return matches(text(left), text(right));
    case 'truthy':
      return Boolean(left);
    case 'falsy':
      return !left;
    case 'expression':
      return false;
  }
}
