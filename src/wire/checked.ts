// How validators answer: a value that is valid, or what is wrong with it and where (JSON pointers, RFC 6901). Messages
// name fields and rules, never the values found there: a value may be a secret.
import type { ErrorObject } from 'ajv/dist/2020.js';
import { invalid } from '../rules/errors.ts';
import { pointerSegment } from '../rules/json.ts';

export interface Fault {
  /** JSON pointer into the checked value; '' is the whole. */
  readonly pointer: string;
  readonly message: string;
}

export type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly errors: readonly [Fault, ...Fault[]] };

/** The valid value, or throws validation_error with the first fault as field and reason and all of them as errors. */
export function mustBeValid<Value>(checked: Checked<Value>): Value {
  if (checked.ok) return checked.value;
  const [first] = checked.errors;
  throw invalid(first.pointer, first.message, { errors: checked.errors });
}

/** More than this many faults of one value are not told. */
const MAX_FAULTS = 50;
/** Longest field name repeated in a message, in UTF-16 units. */
const MAX_NAME_LENGTH = 128;

/** One fault per place and rule; what failed inside a oneOf or anyOf is told once, as that. */
export function faultsOf(errors: readonly ErrorObject[] | null | undefined): [Fault, ...Fault[]] {
  const all = errors ?? [];
  const choices = all.filter((error) => error.keyword === 'oneOf' || error.keyword === 'anyOf');
  const told = all.filter(
    (error) => !choices.some((choice) => choice !== error && isInside(error, choice)),
  );
  const faults = new Map<string, Fault>();
  for (const error of told.slice(0, MAX_FAULTS)) {
    const fault = faultOf(error);
    faults.set(`${fault.pointer} ${fault.message}`, fault);
  }
  const [first = { pointer: '', message: 'is not valid' }, ...rest] = faults.values();
  return [first, ...rest];
}

function isInside(error: ErrorObject, choice: ErrorObject): boolean {
  return (
    error.schemaPath.startsWith(`${choice.schemaPath}/`) &&
    error.instancePath.startsWith(choice.instancePath)
  );
}

function faultOf(error: ErrorObject): Fault {
  const params = error.params as Record<string, unknown>;
  const pointer = error.instancePath;
  const extra = params.additionalProperty ?? params.unevaluatedProperty ?? params.propertyName;
  if (typeof extra === 'string') {
    const message =
      error.keyword === 'propertyNames' ? 'has a name that is not allowed' : 'is not a known field';
    return { pointer: `${pointer}/${pointerSegment(extra.slice(0, MAX_NAME_LENGTH))}`, message };
  }
  switch (error.keyword) {
    case 'enum':
      return { pointer, message: `must be one of ${JSON.stringify(params.allowedValues)}` };
    case 'const':
      return { pointer, message: `must be ${JSON.stringify(params.allowedValue)}` };
    case 'required':
      return {
        pointer,
        message: `must have the field ${String(params.missingProperty).slice(0, MAX_NAME_LENGTH)}`,
      };
    case 'false schema':
      return { pointer, message: 'is not permitted here' };
    case 'discriminator':
      return {
        pointer: `${pointer}/${String(params.tag)}`,
        message: 'is not one of the known types',
      };
    case 'oneOf':
    case 'not':
      return { pointer, message: presenceRule(error) ?? error.message ?? 'is not valid' };
    default:
      return { pointer, message: error.message ?? `breaks the rule ${error.keyword}` };
  }
}

/** What a rule about the presence of fields means; only our own validators tell the rule (Ajv's `verbose`). */
function presenceRule(error: ErrorObject): string | undefined {
  const rule = error.schema as { required?: string[] } | { required?: string[] }[] | undefined;
  if (Array.isArray(rule)) {
    const names = rule.flatMap((choice) => choice.required ?? []);
    return names.length === rule.length
      ? `must have exactly one of the fields ${names.join(', ')}`
      : undefined;
  }
  return rule?.required
    ? `must not have the fields ${rule.required.join(' and ')} together`
    : undefined;
}
