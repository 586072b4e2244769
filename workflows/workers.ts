// Workers that an orchestrator named (RFC 0007, RFC 0037 §handoff): each is a child run, told of step by step.
//
//   phase      what happens                                             next
//   waiting    nothing yet                                              began
//   began      dispatch.began: it is asked for                          running, or ended: dispatch.failed
//   running    dispatch.succeeded: it is there                          ended
//   ended      child.completed, .failed or .cancelled; output.harvested
//
// Each is caused by the one before, the first by the decision. A worker that is not there, or fails, fails no node: its
// orchestrator is told, and decides what comes of it.
import { agentNamed } from '../src/rules/children.ts';
import { payloadId } from '../src/rules/ids.ts';
import { NODE_INPUTS_BYTES } from '../src/rules/limits.ts';
import type { DispatchConfig, WorkflowChainEventPayload } from '../schemas/types.generated.ts';
import { mappedInputs, namesOf, needsRoom, takeMapped } from './child-mappings.ts';
import {
  endOf,
  newChild,
  refuse,
  startChildren,
  type Asked,
  type Child,
  type ChildResult,
  type Wanted,
} from './child-runs.ts';
import { emitFact, tupleOf, type Visit } from './context.ts';
import { bounded } from './values.ts';

/** A type, not an interface: it is part of a frame's JSON. */
export type Worker = {
  readonly workerId: string;
  /** Names it within the node attempt. */
  readonly step: string;
  phase: 'waiting' | 'began' | 'running' | 'ended';
  /** Step by which it is started, whichever segment does. */
  startedBy?: string;
  child?: Child;
  /** Key of what was last told of it. */
  told: string;
  status?: ChildResult['status'];
  code?: string;
};

/** Those of one decision, at one node. */
export interface Workers {
  readonly visit: Visit;
  readonly config: DispatchConfig;
  readonly workers: readonly Worker[];
  /** Notes in the frame that a worker came to its end. */
  readonly ended: (worker: Worker) => void;
}

/** The workers of a decision, in its order; `decidedKey`: of its event. */
export function newWorkers(workerIds: readonly string[], decidedKey: string): Worker[] {
  return workerIds.map((workerId, index) => ({
    ...{ workerId, step: `w${index}` },
    phase: 'waiting',
    told: decidedKey,
  }));
}

type Told = Pick<WorkflowChainEventPayload, 'phase' | 'childRunId' | 'harvestedKeys'> & {
  readonly error?: { readonly code: string; readonly message: string };
};

function tell({ visit }: Workers, worker: Worker, told: Told): void {
  const { workerId, step } = worker;
  worker.told = emitFact(visit, 'core.workflowChain.event', {
    step: `${step}.${told.phase}`,
    payload: { workerId, parentRunId: visit.run.input.runId, ...told },
    causedBy: worker.told,
  });
}

/**
 * Starts these, as one batch; those that are there already stay so. Throws payload_too_large before any of them began.
 */
export async function startWorkers(
  all: Workers,
  step: string,
  batch: readonly Worker[],
): Promise<void> {
  const { visit } = all;
  const waiting = batch.filter(({ phase }) => phase === 'waiting');
  const given = waiting.map(({ workerId }) => inputsFor(all, workerId).inputs);
  bounded(given, 'what workers that start together are given', NODE_INPUTS_BYTES);
  for (const worker of waiting) begin(all, worker, step);
  const wanted = batch.flatMap((worker) =>
    worker.phase === 'began' && worker.child ? [wantedOf(all, worker, worker.child)] : [],
  );
  await startChildren(visit, step, wanted);
  for (const worker of batch) if (worker.phase === 'began') noteStart(all, worker);
}

function begin(all: Workers, worker: Worker, startedBy: string): void {
  const { visit } = all;
  const { step } = worker;
  const callId = payloadId('call', visit.run.input.idSeed, tupleOf(visit, step));
  worker.child = newChild(visit, { step, callId, place: step });
  worker.phase = 'began';
  worker.startedBy = startedBy;
  tell(all, worker, { phase: 'dispatch.began' });
}

function inputsFor(
  { visit, config }: Workers,
  workerId: string,
): Pick<Asked, 'inputs' | 'unset' | 'sensitive'> {
  const { inputMapping = {}, perWorkerInputMappings = {} } = config;
  return mappedInputs(visit, own(perWorkerInputMappings, workerId) ?? inputMapping);
}

function wantedOf(all: Workers, { workerId, told }: Worker, child: Child): Wanted {
  const agentId = agentNamed(workerId);
  return {
    child,
    asked: {
      target: agentId === undefined ? { workflowId: workerId } : { agentId },
      ...inputsFor(all, workerId),
      cause: 'core.dispatch',
      startedBy: told,
      harvest: namesOf(outputMappingOf(all.config, workerId)),
    },
  };
}

function outputMappingOf(
  { outputMapping = {}, perWorkerOutputMappings = {} }: DispatchConfig,
  workerId: string,
): Readonly<Record<string, string>> {
  return own(perWorkerOutputMappings, workerId) ?? outputMapping;
}

/** A worker may have any name. */
function own<T>(mappings: Readonly<Record<string, T>>, workerId: string): T | undefined {
  return Object.hasOwn(mappings, workerId) ? mappings[workerId] : undefined;
}

/** Workers whose start came to nothing, by a fault of the host: they are not asked for again. */
export function failStart(
  all: Workers,
  batch: readonly Worker[],
  { code, message }: { readonly code: string; readonly message: string },
): void {
  for (const worker of batch) {
    if (worker.phase !== 'began' || !worker.child) continue;
    refuse(worker.child, code, message);
    noteStart(all, worker);
  }
}

function noteStart(all: Workers, worker: Worker): void {
  const { refusal, runId: childRunId } = worker.child ?? {};
  if (!refusal) {
    worker.phase = 'running';
    tell(all, worker, { phase: 'dispatch.succeeded', childRunId });
    stateHandoff(all, worker);
    return;
  }
  tell(all, worker, { phase: 'dispatch.failed', error: refusal });
  end(all, worker, { status: 'failed', code: refusal.code });
}

/** An orchestrator passes control to a worker that is another agent (RFC 0002 §B; RFC 0007). */
function stateHandoff({ visit }: Workers, { workerId, step, told }: Worker): void {
  const { state } = visit.run;
  const from = state.orchestrator?.agentId;
  const to = agentNamed(workerId);
  if (from === undefined || to === undefined || from === to) return;
  emitFact(visit, 'agent.handoff', {
    step: `${step}.handoff`,
    payload: { fromAgentId: from, toAgentId: to },
    causedBy: told,
  });
}

function end(
  all: Workers,
  worker: Worker,
  as: { readonly status: ChildResult['status']; readonly code?: string },
): void {
  worker.phase = 'ended';
  worker.status = as.status;
  if (as.code !== undefined) worker.code = as.code;
  all.ended(worker);
}

/**
 * Waits for the end of one that was started, and takes of it what is mapped: nothing where `takes` says no. Throws the
 * node failures of what cannot be taken; it has ended all the same.
 */
export async function finishWorker(
  all: Workers,
  worker: Worker,
  takes: () => boolean = () => true,
): Promise<void> {
  if (worker.phase !== 'running' || !worker.child) return;
  const mapping = outputMappingOf(all.config, worker.workerId);
  const { visit } = all;
  const result = await endOf(visit, worker.child, { harvest: namesOf(mapping) });
  // It ends, and gives what it has, in one breath: in a task that has room for that.
  while (needsRoom(visit)) await visit.run.steps.nextTask(visit.run);
  const { status, childRunId, error, variables = {} } = result;
  const isTaken = takes();
  tell(all, worker, { phase: `child.${status}`, childRunId, ...(error ? { error } : {}) });
  end(all, worker, { status, ...(error ? { code: error.code } : {}) });
  if (status !== 'completed' || !isTaken || namesOf(mapping).length === 0) return;
  const place = { step: `${worker.step}.var`, causedBy: worker.told };
  const harvestedKeys = takeMapped(visit, { mapping, variables }, place);
  tell(all, worker, { phase: 'output.harvested', childRunId, harvestedKeys });
}
