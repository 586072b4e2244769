// Kinds of parameters: each says how it is described and how its text is read. Read strictly: a value that is given and
// wrong is 400, never a silent default.
import type { Request } from 'express';
import { invalid, type ErrorCode, type HostError } from '../rules/errors.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';

/** Makes the refusal of a value. */
export type Refuse = (reason: string, more?: Record<string, unknown>) => HostError;

export interface Parameter<Value> {
  readonly in: 'query' | 'header';
  /** On the wire, where it is not the name among the input's parameters. */
  readonly name?: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly example: JsonValue;
  /** Refused where it is absent. */
  readonly required?: true;
  /** An older name: served, and told as such. */
  readonly deprecated?: true;
  /** The value where the parameter is absent. */
  readonly absent: Value;
  /** Given without a value it counts as absent. */
  readonly emptyIsAbsent?: true;
  /** Read where this one is absent, and only then: its schema promises no refusal beside this one. */
  readonly otherwise?: Parameter<Value> & { readonly name: string };
  /** Default: validation_error with the parameter's name. */
  readonly refuse?: Refuse;
  /** What it can be refused with beyond validation_error. */
  readonly errors?: readonly ErrorCode[];
  parse(text: string, refuse: Refuse): Value;
}

/** The one value of a query parameter; undefined when absent. Given twice it is refused. */
export function queryText(
  { query }: Pick<Request, 'query'>,
  name: string,
  refuse: Refuse = (reason) => invalid(name, reason),
): string | undefined {
  const value = query[name];
  if (value === undefined || typeof value === 'string') return value;
  throw refuse('must be given once');
}

/** Throws validation_error, or what the parameter refuses with. */
export function readParameter<Value>(
  request: Pick<Request, 'query' | 'headers'>,
  name: string,
  parameter: Parameter<Value>,
): Value {
  const { otherwise, absent } = parameter;
  const refuse: Refuse = parameter.refuse ?? ((reason, more) => invalid(name, reason, more));
  const header = request.headers[name.toLowerCase()];
  const text =
    parameter.in === 'query'
      ? queryText(request, name, refuse)
      : typeof header === 'string'
        ? header
        : undefined;
  if (text !== undefined && !(text === '' && parameter.emptyIsAbsent))
    return parameter.parse(text, refuse);
  if (parameter.required) throw refuse('is required');
  return otherwise ? readParameter(request, otherwise.name, otherwise) : absent;
}

interface Range<Default> {
  readonly min: number;
  readonly max: number;
  readonly default?: Default;
  readonly example: number;
}

export function integer<Default extends number | undefined = undefined>(
  description: string,
  { min, max, default: absent, example }: Range<Default>,
): Parameter<number | Default> {
  const bounds = { minimum: min, maximum: max };
  return {
    ...{ in: 'query', description, example, absent: absent as Default },
    schema: { type: 'integer', ...bounds, ...(absent === undefined ? {} : { default: absent }) },
    parse(text, refuse) {
      const value = /^-?\d{1,16}$/.test(text) ? Number(text) : NaN;
      if (!Number.isSafeInteger(value) || value < min || value > max)
        throw refuse('must be an integer in range', { min, max });
      return value;
    },
  };
}

interface Form {
  readonly pattern?: RegExp;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** What a text is told that breaks any of them. */
  readonly reason?: string;
  readonly example: string;
}

export function text(description: string, form: Form): Parameter<string | undefined> {
  const { pattern, minLength, maxLength, reason = 'is not valid', example } = form;
  return {
    ...{ in: 'query', description, example, absent: undefined },
    schema: {
      type: 'string',
      ...(pattern && { pattern: pattern.source }),
      ...(minLength !== undefined && { minLength }),
      ...(maxLength !== undefined && { maxLength }),
    },
    parse(given, refuse) {
      const fits = given.length >= (minLength ?? 0) && given.length <= (maxLength ?? Infinity);
      if (!fits || pattern?.test(given) === false) throw refuse(reason);
      return given;
    },
  };
}

/** The same kind, which must be there. */
export function required<Value>(kind: Parameter<Value | undefined>): Parameter<Value> {
  // What is absent is refused before it is given.
  return { ...(kind as Parameter<Value>), required: true };
}

export function oneOf<Value extends string>(
  description: string,
  values: readonly Value[],
  { reason, example }: { readonly reason: string; readonly example: NoInfer<Value> },
): Parameter<Value | undefined> {
  return {
    ...{ in: 'query', description, example, absent: undefined },
    schema: { enum: [...values] },
    parse(given, refuse) {
      const value = values.find((one) => one === given);
      if (value === undefined) throw refuse(reason, { supported: values });
      return value;
    },
  };
}

/** The same kind, read from a header. */
export function header<Value>(
  name: string,
  kind: Parameter<Value>,
): Parameter<Value> & { name: string } {
  return { ...kind, in: 'header', name };
}
