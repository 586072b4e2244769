// Values inside a run: where a node's inputs come from, what may be shown of them, and how large they may get
// (workflow-definition.schema.json, observability.md; architecture §2.6).
import type { ApplicationFailure } from '@temporalio/workflow';
import { channelValues } from '../src/rules/channels.ts';
import type { CausedBy } from '../src/rules/journal.ts';
import type { JsonObject, JsonValue } from '../src/rules/json.ts';
import { jsonBytes } from '../src/rules/json.ts';
import { mask } from '../src/rules/redaction.ts';
import { isSensitiveOutput, isSensitivePort } from '../src/rules/variables.ts';
import { INLINE_VALUE_BYTES, NODE_INPUTS_BYTES, RUN_VALUES_BYTES } from '../src/rules/limits.ts';
import type { PortValue, WorkflowDefinition } from '../schemas/types.generated.ts';
import { emitFact, nodeFailure, nodeState, type Run, type Visit } from './context.ts';
import type { RunState } from './frames.ts';

const MASK = mask();

/** Variables and channels by name, as conditions and input ports read them. */
export function readable({ input, state }: Pick<Run, 'input' | 'state'>): JsonObject {
  const { channels } = input.definition;
  if (!channels) return state.variables;
  return { ...state.variables, ...channelValues(channels, state.channels ?? {}) };
}

function portValue({ state }: Run, variables: JsonObject, port: PortValue): JsonValue | undefined {
  switch (port.type) {
    case 'static':
      return port.value as JsonValue;
    case 'variable':
      return variables[port.variableName];
    case 'connection':
      return state.nodes[port.nodeId]?.outputs[port.outputKey];
    case 'expression':
      return undefined; // refused when the definition is loaded
  }
}

/** The node's input ports with their values now; ports without a value are left out. */
export function inputsOf(visit: Visit): JsonObject {
  const { run } = visit;
  const variables = readable(run);
  // Not by assignment: it would lose one called __proto__.
  const inputs: JsonObject = Object.fromEntries(
    Object.entries(visit.node.inputs).flatMap(([name, port]): [string, JsonValue][] => {
      const value = portValue(run, variables, port);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return bounded(inputs, 'the inputs of the node', NODE_INPUTS_BYTES);
}

/** Those among `inputsOf`, and what is mapped from variables over them, that come from where they are masked. */
export function sensitiveInputs(
  { run, node }: Visit,
  mapping: Readonly<Record<string, string>>,
): string[] {
  const { definition } = run.input;
  const ports = Object.entries(node.inputs).filter(([, port]) => isSensitivePort(definition, port));
  const mapped = Object.entries(mapping).filter(([, from]) => isSensitive(run, from));
  const isOver = ([name]: [string, PortValue]) =>
    mapping[name] === undefined || run.state.variables[mapping[name]] === undefined;
  return [...ports.filter(isOver), ...mapped].map(([name]) => name);
}

/** A value that workflow code builds itself fails the node above the limit. */
export function bounded<T extends JsonValue>(
  value: T,
  what: string,
  limitBytes: number = INLINE_VALUE_BYTES,
): T {
  const bytes = jsonBytes(value);
  if (bytes > limitBytes) throw tooLarge(what, limitBytes, bytes);
  return value;
}

function tooLarge(what: string, limitBytes: number, bytes: number): ApplicationFailure {
  return nodeFailure('payload_too_large', `${what} is larger than ${limitBytes} bytes.`, { bytes });
}

/** Size of the values that a run keeps. */
export function heldBytesOf({ variables, channels = {}, nodes }: RunState): number {
  const written = Object.values(channels).map(jsonBytes);
  const outputs = Object.values(nodes).map((node) => jsonBytes(node.outputs));
  return [...written, ...outputs].reduce((sum, bytes) => sum + bytes, jsonBytes(variables));
}

/** Keeps room for `next` in the place of `before` among the values of the run, or fails the node. */
export function hold(run: Run, before: JsonValue | undefined, next: JsonValue): void {
  const freed = before === undefined ? 0 : jsonBytes(before);
  const held = run.heldBytes + jsonBytes(next) - freed;
  if (held > RUN_VALUES_BYTES && held > run.heldBytes)
    throw tooLarge('what the run keeps of values', RUN_VALUES_BYTES, held);
  run.heldBytes = held;
}

/** A node that failed or was skipped has no outputs: a step behind its no is not given the yes of an earlier visit. */
export function dropOutputs(run: Run, nodeId: string): void {
  const state = nodeState(run, nodeId);
  hold(run, state.outputs, {});
  state.outputs = {};
}

/** Whether a variable is declared sensitive. */
export function isSensitive({ input }: Run, name: string): boolean {
  return input.definition.variables.some(
    (variable) => variable.name === name && variable.sensitive === true,
  );
}

/** Keeps a variable's value and returns the one before; it is not stated yet (`stateVariable`). */
export function keepVariable(run: Run, name: string, value: JsonValue): JsonValue | undefined {
  bounded(value, `variable ${name}`);
  const previous = run.state.variables[name];
  hold(run, previous, value);
  run.state.variables[name] = value;
  return previous;
}

interface VariableChange {
  readonly name: string;
  readonly previous: JsonValue | undefined;
  readonly next: JsonValue;
}

/** States what a variable became; sensitive values are masked in the event (observability.md). */
export function stateVariable(
  visit: Visit,
  { name, previous, next }: VariableChange,
  place: { readonly step: string; readonly causedBy?: CausedBy },
): void {
  const sensitive = isSensitive(visit.run, name);
  emitFact(visit, 'variable.changed', {
    ...place,
    payload: {
      name,
      ...(previous === undefined ? {} : { previous: sensitive ? MASK : previous }),
      next: sensitive ? MASK : next,
      nodeId: visit.frame.nodeId,
    },
  });
}

/** Sets a variable and states it. */
export function setVariable(visit: Visit, name: string, value: JsonValue): void {
  const previous = keepVariable(visit.run, name, value);
  stateVariable(visit, { name, previous, next: value }, { step: `var.${name}` });
}

/** Start values as `run.started` may show them: declared variables only (the input holds no others). */
export function shownVariables(definition: WorkflowDefinition, variables: JsonObject): JsonObject {
  const sensitive = new Set(definition.variables.filter((it) => it.sensitive).map((it) => it.name));
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, sensitive.has(name) ? MASK : value]),
  );
}

/** Outputs as `node.completed` may show them: what is marked in outputSensitivity, or comes masked from elsewhere, is masked. */
export function shownOutputs(
  { run, node }: Pick<Visit, 'run' | 'node'>,
  outputs: JsonObject,
): JsonObject {
  const { definition } = run.input;
  return Object.fromEntries(
    Object.entries(outputs).map(([port, value]) => [
      port,
      isSensitiveOutput(definition, node, port) ? MASK : value,
    ]),
  );
}

/**
 * Outputs as `run.completed` may show them: what each last node gave in its last visit, nothing if it was skipped since, or if
 * that visit has no end: an orchestrator's `terminate` cut it. Of two outputs with one name the later stands.
 */
export function runOutputs(run: Run): JsonObject {
  const { frames, lastNodes = [], nodes } = run.state;
  return Object.fromEntries(
    lastNodes.flatMap((nodeId) => {
      const node = frames[nodeId] ? undefined : run.nodes.get(nodeId);
      return node ? Object.entries(shownOutputs({ run, node }, nodes[nodeId]?.outputs ?? {})) : [];
    }),
  );
}
