// core.subWorkflow (node-packs.md §subWorkflow contract): a child run of another definition, waited for. Its variables
// begin as `inputMapping` says, once; those of `outputMapping` come back when it completed.
import { payloadId } from '../../src/rules/ids.ts';
import type { SubWorkflowConfig } from '../../schemas/types.generated.ts';
import {
  endOf,
  newChild,
  requireRoom,
  startChildren,
  type Asked,
  type Child,
} from '../child-runs.ts';
import { mappedInputs, namesOf, needsRoom, takeMapped } from '../child-mappings.ts';
import { attemptKey, nodeFailure, tupleOf, type NodeKind, type Visit } from '../context.ts';

const STEP = 'child';

export const subWorkflow: NodeKind = async (visit) => {
  const config = visit.node.config as unknown as SubWorkflowConfig;
  const child = childOf(visit, config);
  await startChildren(visit, STEP, [
    { child, asked: askedOf(visit, config), timeoutMs: config.timeoutMs },
  ]);
  const { refusal } = child;
  if (refusal) throw nodeFailure(refusal.code, refusal.message, { childRunId: child.runId });
  const { outputMapping = {}, onChildFailure } = config;
  const harvest = namesOf(outputMapping);
  const {
    status: childStatus,
    variables = {},
    error,
    childRunId,
  } = await endOf(visit, child, { harvest });
  while (needsRoom(visit)) await visit.run.steps.nextTask(visit.run);
  if (childStatus === 'completed') {
    takeMapped(visit, { mapping: outputMapping, variables });
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
      place: STEP,
      callId: payloadId('call', run.input.idSeed, tupleOf(visit, STEP)),
      ...(propagateCancellation ? {} : { isDetached: true }),
    });
  }
  return data.child;
}

function askedOf(visit: Visit, config: SubWorkflowConfig): Asked {
  const { workflowId, inputMapping = {}, outputMapping = {} } = config;
  return {
    target: { workflowId },
    ...mappedInputs(visit, inputMapping),
    cause: 'core.subWorkflow',
    startedBy: attemptKey(visit),
    harvest: namesOf(outputMapping),
  };
}
