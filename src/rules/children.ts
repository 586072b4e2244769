// Runs that a run starts (RFC 0007, RFC 0022; seed 003 §3.4): what names them, what bounds them, and how one tells the
// run that waits for it. A child is a run of its own; that it is one stands in its header alone.
import type { JsonObject } from './json.ts';
import type { RunHeader } from './run-input.ts';

/** What in a run can start another one, as ancestry tells it. */
export const CHILD_CAUSES = ['core.subWorkflow', 'core.dispatch', 'agent-tool'] as const;
export type ChildCause = (typeof CHILD_CAUSES)[number];

/** The protocol's list of causes is closed (RFC 0040), and has no word for a call of a tool. */
export const ANCESTRY_CAUSES = {
  'core.subWorkflow': 'core.subWorkflow',
  'core.dispatch': 'core.dispatch',
  'agent-tool': 'core.subWorkflow',
} as const satisfies Readonly<Record<ChildCause, string>>;

/** Generations below a root: agents that call themselves, or each other in a ring, end here (`child-depth`). */
export const MAX_CHILD_DEPTH = 8;
/** Runs below one root over its whole life (`child-runs`). */
export const MAX_DESCENDANTS = 2_000;
/** Children that one step starts together (`child-fan-out`). */
export const MAX_FAN_OUT = 100;
/** Children of one run that have not ended (`child-open`): its state holds each of them. */
export const MAX_OPEN_CHILDREN = 500;
/** Reason by which a child is cancelled that takes too long. It stands in logs. */
export const CHILD_TIMEOUT = 'child_timeout';
/**
 * Time in ms that the end of a recorded child waits for those that came before it in the record, and of which no step is under
 * way.
 */
export const RECORDED_TURN_MS = 600_000;
/** Time in ms that a run that ends waits for the ends of the children that it cancels. */
export const CHILD_CANCEL_MS = 30_000;

/** Signal by which a child tells its parent that it has ended; its argument is a `ChildEnded`. It stands in histories. */
export const CHILD_ENDED_SIGNAL = 'childEnded';

export interface ChildEnded {
  readonly childRunId: string;
}

/** Of a child as its parent's step asks for it. JSON: it travels in history. */
export interface ChildRequest {
  readonly runId: string;
  readonly callId: string;
  /** Node of the parent. */
  readonly nodeId: string;
  /** The same at each attempt of that node (childPlaceOf). */
  readonly place: string;
  /** Tools of which the parent has left calls, which may have happened. */
  readonly leftTools?: readonly string[];
  readonly target: { readonly workflowId: string } | { readonly agentId: string };
  readonly inputs: JsonObject;
  /** Variables that begin without a value, whatever their default: what they are mapped from has none (RFC 0022). */
  readonly unset?: readonly string[];
  /** Inputs that are sensitive where they come from: what a child does not keep so, it is not given. */
  readonly sensitive?: readonly string[];
  readonly cause: ChildCause;
  /** Key of the parent's event that the child begins with. */
  readonly startedBy: string;
  readonly isDetached?: true;
  /** Of a rehearsal: where the parent's clock stands, ms epoch. */
  readonly clockMs?: number;
  /** Variables of the child that the parent will take: they must be there to be taken. */
  readonly harvest: readonly string[];
}

/** `code` is one of the error table's. */
export type ChildStart =
  | { readonly kind: 'started'; readonly workflowId: string }
  /** Nothing began: it is a child of another run, `recordedOf`, and came to its end there. */
  | {
      readonly kind: 'recorded';
      readonly childRunId: string;
      readonly workflowId: string;
      readonly recordedOf: string;
      /** Of a worker: where in that record its end was told. */
      readonly turn?: number;
      /** It was ended there since it took too long. */
      readonly hasTimedOut?: true;
    }
  | {
      readonly kind: 'refused';
      readonly code: string;
      readonly message: string;
      /** A bound that it would have passed. */
      readonly breach?: { readonly kind: 'child-depth' | 'child-runs'; readonly limit: number };
    };

/** What of a child run its parent may go by. */
export interface ChildEnd {
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly outputs: JsonObject;
  readonly variables: JsonObject;
  readonly error?: { readonly code: string; readonly message: string };
}

/** 0 for a root. */
export function depthOf({ depth = 0 }: Pick<RunHeader, 'depth'>): number {
  return depth;
}

/** Prefix by which an allowlist names an agent as a tool, and an orchestrator one as a worker: a run of that agent. */
const AGENT_PREFIX = 'agent:';

export function agentNamed(name: string): string | undefined {
  return name.startsWith(AGENT_PREFIX) ? name.slice(AGENT_PREFIX.length) : undefined;
}
