// core.subWorkflow (node-packs.md §subWorkflow contract): a child run of another definition, waited for. Its variables
// begin as `inputMapping` says, once; those of `outputMapping` come back when it completed.
import type { JsonObject } from '../../src/rules/json.ts';
import { payloadId } from '../../src/rules/ids.ts';
import { hasType } from '../../src/rules/variables.ts';
import type { SubWorkflowConfig } from '../../schemas/types.generated.ts';
import {
  endOf,
  newChild,
  requireRoom,
  startChildren,
  type Asked,
  type Child,
} from '../child-runs.ts';
import { attemptKey, nodeFailure, tupleOf, type NodeKind, type Visit } from '../context.ts';
import { inputsOf, sensitiveInputs, setVariable } from '../values.ts';

const STEP = 'child';

export const subWorkflow: NodeKind = async (visit) => {
  const config = visit.node.config as unknown as SubWorkflowConfig;
  const child = childOf(visit, config);
  await startChildren(visit, STEP, [
    { child, asked: askedOf(visit, config), timeoutMs: config.timeoutMs },
  ]);
  const { refusal, runId: childRunId } = child;
  if (refusal) throw nodeFailure(refusal.code, refusal.message, { childRunId });
  const { outputMapping = {}, onChildFailure } = config;
  const harvest = [...new Set(Object.values(outputMapping))];
  const { status: childStatus, variables = {}, error } = await endOf(visit, child, { harvest });
  if (childStatus === 'completed') {
    takeOutputs(visit, outputMapping, variables);
  } else if (onChildFailure !== 'absorb') {
    const message = `The child run ended as ${childStatus}${error ? `: ${error.message}` : '.'}`;
    const code =
      error?.code === 'child_timeout' || error?.code === 'child_lost' ? error.code : 'child_failed';
    throw nodeFailure(code, message, { childRunId, childStatus, ...(error ? { error } : {}) });
  }
  return {
    kind: 'completed',
    outputs: { childRunId, childStatus, ...(error ? { error } : {}) },
  };
};

function childOf(visit: Visit, { propagateCancellation = true }: SubWorkflowConfig): Child {
  const { run, frame } = visit;
  const data = frame.data as { child?: Child };
  if (!data.child) {
    requireRoom(visit, STEP, 1);
    data.child = newChild(visit, {
      step: STEP,
      callId: payloadId('call', run.input.idSeed, tupleOf(visit, STEP)),
      ...(propagateCancellation ? {} : { isDetached: true }),
    });
  }
  return data.child;
}

/** Input ports by their names, and over them what is mapped; a variable of the parent without a value maps to none. */
function askedOf(visit: Visit, config: SubWorkflowConfig): Asked {
  const { workflowId, inputMapping = {}, outputMapping = {} } = config;
  const { variables } = visit.run.state;
  const mapped: [string, string][] = Object.entries(inputMapping);
  const isSet = ([, from]: [string, string]) => variables[from] !== undefined;
  const values = mapped.filter(isSet).map(([to, from]) => [to, variables[from] ?? null] as const);
  const unset = mapped.filter((one) => !isSet(one)).map(([to]) => to);
  const inputs: JsonObject = Object.fromEntries([...Object.entries(inputsOf(visit)), ...values]);
  const sensitive = sensitiveInputs(visit, inputMapping);
  return {
    target: { workflowId },
    inputs,
    ...(unset.length > 0 ? { unset } : {}),
    ...(sensitive.length > 0 ? { sensitive } : {}),
    cause: 'core.subWorkflow',
    startedBy: attemptKey(visit),
    harvest: [...new Set(Object.values(outputMapping))],
  };
}

/** What the child has no value for leaves the parent's as it is. */
function takeOutputs(
  visit: Visit,
  outputMapping: Readonly<Record<string, string>>,
  variables: JsonObject,
): void {
  const declared = new Map(
    visit.run.input.definition.variables.map((variable) => [variable.name, variable.type]),
  );
  for (const [to, from] of Object.entries(outputMapping)) {
    const value = variables[from];
    if (value === undefined) continue;
    const type = declared.get(to);
    if (type !== undefined && value !== null && !hasType(value, type))
      throw nodeFailure('validation_error', `The variable ${to} must be of type ${type}.`, {
        field: `/outputMapping/${to}`,
      });
    setVariable(visit, to, value);
  }
}
