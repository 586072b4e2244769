// What a tool of an agent is (seed 004 §4.2.1): its schemas give the types of its function, and check what arrives and
// what leaves (§4.3.1 "Agent MUST validate").
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import type { Actor, DeclaredTool, JsonMap } from '../opensentience/messages.ts';
import { compileSchema } from './dialect.ts';

/** A JSON Schema (2020-12, or draft-07 where `$schema` says so) of an object: what tools take and give. */
export interface ObjectSchema {
  readonly type: 'object';
  readonly [keyword: string]: unknown;
}
/** Of the values that a schema admits; any object where the compiler cannot read the schema. */
export type ValueOf<Schema extends ObjectSchema> = Schema extends JSONSchema
  ? FromSchema<Schema, { keepDefaultedPropertiesOptional: true }>
  : JsonMap;

/** Output on the way: bounded per call (AgentLimits), sent in order, dropped once the call has ended. */
export interface ToolStream {
  stdout(text: string): void;
  stderr(text: string): void;
  log(text: string): void;
  status(text: string): void;
  /** A part of the result, free of secrets. */
  partial(json: object): void;
}

/** The call that a tool works for. Metadata, never an authorization (seed 004 §3.2). */
export interface ToolCall {
  readonly callId: string;
  readonly toolId: string;
  /** Stable over repeats of the same logical request, as is `idempotencyKey`. */
  readonly requestId: string | undefined;
  readonly correlationId: string | undefined;
  readonly causationId: string | undefined;
  /** Of one effect: a tool with `idempotent` has it once, however often the key arrives. */
  readonly idempotencyKey: string | undefined;
  readonly timeoutMs: number | undefined;
  readonly caller: { readonly type: Actor['type']; readonly id: string } | undefined;
  readonly actor: Actor | undefined;
  readonly context: JsonMap;
  /** Aborted by core.tool.cancel, the timeout, the end of draining and the loss of the connection. */
  readonly signal: AbortSignal;
  readonly stream: ToolStream;
}

export interface ToolOptions<Input extends ObjectSchema, Output extends ObjectSchema> {
  /** Without the agent's prefix. */
  readonly name: string;
  readonly description: string;
  /** Its `default`s are words for who calls: `run` gets the input as it was sent, which a person may have approved. */
  readonly input: Input;
  readonly output?: Output;
  /** Changes something outside of the agent. Absent: the host takes it that it does, and asks before each call. */
  readonly sideEffects?: boolean;
  readonly requiresDirective?: boolean;
  /** Repeats with one idempotency key have one effect: the tool sees to it. */
  readonly idempotent?: boolean;
  readonly streaming?: boolean;
  readonly tags?: readonly string[];
  /** An output of nothing is `{}`. Throw ToolError to say why not: of a tool with effects, that
   * nothing more comes of it. After any other throw Core does not know what became of the call. */
  readonly run: (input: ValueOf<Input>, call: ToolCall) => Result<Output>;
}
/** Without an output schema any object, or nothing. */
type Result<Output extends ObjectSchema> = ObjectSchema extends Output
  ? object | void | Promise<object | void>
  : ValueOf<Output> | Promise<ValueOf<Output>>;

/** A defined tool, ready for any agent. */
export interface Tool {
  readonly name: string;
  declare(agentId: string): DeclaredTool;
  /** Undefined when valid. Changes nothing: a person may have approved exactly this input. */
  inputFault(input: JsonMap): JsonMap | undefined;
  outputFault(output: JsonMap): JsonMap | undefined;
  run(input: JsonMap, call: ToolCall): unknown;
}

/** A tool's options without the types that only its author needs. */
type Declared = Omit<ToolOptions<ObjectSchema, ObjectSchema>, 'input' | 'output' | 'run'> & {
  readonly input: JsonMap;
  readonly output?: JsonMap;
};

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

/** Defines a tool. Throws TypeError on a bad name or an unknown `$schema`, and what Ajv throws on a bad schema. */
export function tool<
  const Input extends ObjectSchema,
  const Output extends ObjectSchema = ObjectSchema,
>(options: ToolOptions<Input, Output>): Tool {
  if (!NAME.test(options.name)) throw new TypeError(`No tool can be called "${options.name}".`);
  const of = `schema of the tool "${options.name}"`;
  const checkInput = compileSchema(options.input, `The input ${of}`);
  const checkOutput = options.output && compileSchema(options.output, `The output ${of}`);
  // Its types are for the author; what arrives is checked.
  const run = options.run as unknown as Tool['run'];
  return {
    name: options.name,
    declare: (agentId) => declarationOf(agentId, options as unknown as Declared),
    inputFault: (input) => faultOf(checkInput, input),
    outputFault: (output) => checkOutput && faultOf(checkOutput, output),
    run,
  };
}

function declarationOf(agentId: string, options: Declared): DeclaredTool {
  const { name, description, input, output, sideEffects, requiresDirective, tags } = options;
  return {
    tool_id: `${agentId}/${name}`,
    name,
    description,
    input_schema: input,
    ...(output && { output_schema: output }),
    capabilities: [
      'cancellation',
      ...(options.streaming ? ['streaming'] : []),
      ...(options.idempotent ? ['idempotency'] : []),
    ],
    ...(sideEffects === undefined ? {} : { side_effects: sideEffects }),
    requires_directive: requiresDirective ?? false,
    ...(tags && { tags }),
  };
}

/** Where and which rule: never the value itself. */
function faultOf(check: ValidateFunction, value: JsonMap): JsonMap | undefined {
  if (check(value)) return undefined;
  const [first] = check.errors ?? ([] as ErrorObject[]);
  if (!first) return {};
  return { path: first.instancePath, keyword: first.keyword, reason: first.message ?? '' };
}
