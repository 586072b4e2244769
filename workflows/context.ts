// One run in the sandbox: its input, its state as data, and the few things that live only as long as this segment.
import { ApplicationFailure, CancellationScope } from '@temporalio/workflow';
import type { DefinitionGraph } from '../src/rules/definition-graph.ts';
import type { EventType, PayloadOf } from '../src/rules/events.ts';
import { emissionKey, type Tuple } from '../src/rules/ids.ts';
import type { CausedBy } from '../src/rules/journal.ts';
import type { JsonObject, JsonValue } from '../src/rules/json.ts';
import { DEFAULT_LOOPBACK_ITERATIONS } from '../src/rules/limits.ts';
import type { RunInput } from '../src/rules/run-input.ts';
import type { WorkflowEdge, WorkflowNode } from '../schemas/types.generated.ts';
import { causeOf } from './causes.ts';
import type { Frame, NodeError, NodeState, RunState } from './frames.ts';
import { emit } from './journal.ts';
import type { Clock } from './rehearsal.ts';
import type { Child } from './child-runs.ts';
import type { Steps } from './steps.ts';

/** How a run ends. `continue` is the end of a segment only. */
export type Ending =
  | { readonly kind: 'completed' }
  | { readonly kind: 'failed'; readonly error: NodeError; readonly failedNodeId?: string }
  | {
      readonly kind: 'cancelled';
      readonly reason?: string;
      readonly cancelledBy?: string;
      readonly parentRunId?: string;
    }
  | { readonly kind: 'continue' };

export interface Run {
  /** A branch goes by its overlay once it has left its source. */
  input: RunInput;
  readonly state: RunState;
  /** The only way to time, the world and people. */
  readonly steps: Steps;
  /** Of a rehearsal: what `steps` go by. */
  readonly clock?: Clock;
  readonly graph: DefinitionGraph;
  readonly nodes: ReadonlyMap<string, WorkflowNode>;
  /** Everything that a cancel or a failure stops. */
  scope: CancellationScope;
  /** What watches the run's time, and the clock of a rehearsal. */
  clocks?: CancellationScope;
  /** Set once; the first ending wins. */
  ending?: Ending;
  /** Key of the fact that it ended by. */
  endedBy?: string;
  /** Frames whose coroutine runs in this segment. */
  readonly active: Map<string, Promise<void>>;
  /** By node: what a pause cuts an attempt with. */
  readonly scopes: Map<string, CancellationScope>;
  /** Activities scheduled and not settled, and work that waits for the next workflow task. */
  inFlight: number;
  /** Those among them that wait on an agent's queue: nobody knows for how long. */
  readonly queued: Set<QueuedStep>;
  /** By node: its steps that a pause holds. */
  readonly atRest: Map<string, number>;
  /** Bytes of the variables and of the nodes' outputs in `state`. */
  heldBytes: number;
  /** New steps wait while there is a reason; attempts wait for some (isLeftToNextSegment, isPausing). */
  readonly holding: Set<HoldReason>;
  /** Ids of children are made of it: its own id, and in the recorded part of a fork that of the run which lived it. */
  livedAs: string;
  /** Children that were asked for and have not been taken to their end, in the order of that: a fork renames them. */
  readonly kin: Set<Kin>;
  /** State for the next segment: set once, and nothing that happens afterwards in this segment counts. */
  frozen?: JsonValue;
  /** Counts settled frames and steps, to try the end of the segment again after each. */
  progress: number;
}

/** A child in its place. */
export interface Kin {
  readonly visit: Visit;
  readonly child: Child;
  /** Asked for in a segment of the source before this one. */
  readonly isEarlier?: true;
}

/**
 * Why new steps wait: the segment tries to end, and has filled a workflow task since, or must end (the server's limit is near),
 * or an operator paused the run.
 */
export type HoldReason = 'segment' | 'full' | 'limit' | 'paused';

/** A step on an agent's queue. */
export interface QueuedStep {
  /** A segment could not end because of it: none is held up for it again. */
  outlasted: boolean;
}

/** Stopped by its own cancel alone. */
export function newScope(): CancellationScope {
  const shield = new CancellationScope({ cancellable: false });
  return new CancellationScope({ cancellable: true, parent: shield });
}

/** The first ending wins; everything else stops. */
export function endRun(run: Run, ending: Ending): void {
  if (run.ending) return;
  run.ending = ending;
  run.endedBy = causeOf();
  run.holding.clear();
  if (ending.kind !== 'completed') run.scope.cancel();
}

/** Whatever it came to: a fork has gone apart from its source. */
export function endOtherwise(run: Run, ending: Ending): void {
  run.ending = undefined;
  endRun(run, ending);
}

/** Calls of these tools may have happened, and nobody is asked about them any more: later calls are. */
export function noteLeft({ state }: Run, tools: readonly string[]): void {
  if (tools.length > 0) state.leftTools = [...new Set([...(state.leftTools ?? []), ...tools])];
}

/** Times that a back edge may still be taken (settings.maxLoopbackIterations). */
export function loopsLeft(run: Run, edge: Pick<WorkflowEdge, 'id'>): number {
  return loopLimit(run) - (run.state.loops[edge.id] ?? 0);
}

export function loopLimit({ input }: Run): number {
  return input.definition.settings.maxLoopbackIterations ?? DEFAULT_LOOPBACK_ITERATIONS;
}

export function nodeState(run: Run, nodeId: string): NodeState {
  return (run.state.nodes[nodeId] ??= { visits: 0, outputs: {}, resolvedInterrupts: 0 });
}

/** One attempt of one visit: what a node kind is given. */
export interface Visit {
  readonly run: Run;
  readonly node: WorkflowNode;
  readonly frame: Frame;
}

/** Where a step is taken. */
export type Place = Pick<Visit, 'run' | 'frame'>;

export function tupleOf({ frame }: Place, step: string): Tuple {
  const { nodeId, visit: number, attempt } = frame;
  return { nodeId, visit: number, attempt, step };
}

/** States a fact of this visit; returns its key. `step` and `index` make it unique within the attempt. */
export function emitFact<T extends EventType>(
  visit: Visit,
  type: T,
  fact: {
    step: string;
    index?: number;
    payload: PayloadOf<T>;
    causedBy?: CausedBy;
    because?: string;
  },
): string {
  const key = emissionKey(type, tupleOf(visit, fact.step), fact.index);
  const { causedBy, because } = fact;
  emit(type, fact.payload, { key, nodeId: visit.frame.nodeId, causedBy, because });
  return key;
}

/** Key of the event that the attempt began with. */
export function attemptKey(place: Place): string {
  return emissionKey('node.started', tupleOf(place, 'node'));
}

/** A node's expected failure: thrown inside a node kind, it becomes `node.failed` (or a retry). */
export function nodeFailure(
  code: string,
  message: string,
  details?: JsonObject,
): ApplicationFailure {
  return ApplicationFailure.create({
    type: code,
    message,
    nonRetryable: true,
    details: details ? [details] : undefined,
  });
}

/** What an attempt came to. */
export type NodeOutcome =
  | {
      readonly kind: 'completed';
      readonly outputs: JsonObject;
      /** Only edges with a condition that holds lead on. */
      readonly isRouted?: true;
      /** The run is complete with it, whatever else of it is under way. */
      readonly endsRun?: true;
    }
  | { readonly kind: 'failed'; readonly error: NodeError };

/** May be entered again at every phase of the frame (architecture §4). */
export type NodeKind = (visit: Visit) => Promise<NodeOutcome>;
