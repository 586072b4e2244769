// Tools by id, wherever they live (architecture §5).
import type { JsonValue } from '../rules/json.ts';
import type { ToolDescription } from './models.ts';

/** A piece of progress of a running call. */
export interface ToolProgress {
  /** `stdout`, `stderr`, `log`, `partial_result` (text is JSON), `status`. */
  readonly channel: string;
  readonly text: string;
}

export interface ToolCallContext {
  readonly tenant: string;
  readonly runId: string;
  /** Root run of the chain; the own runId for a root. */
  readonly correlationId: string;
  readonly nodeId: string;
  readonly workflowId: string;
  readonly principal: string;
  /** The agent of the run that calls. */
  readonly callerAgentId: string;
  readonly callId: string;
  /** eventId of the agent.toolCalled entry. */
  readonly causationId?: string;
  /** Who let a tool be called that needs a word of the operator or of a human: `policy`, or `human:<principal>`. */
  readonly directive?: string;
  /** Same over every retry of this effect. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
  /** Takes progress, in order; never throws, need not be awaited. */
  readonly onProgress?: (progress: ToolProgress) => void;
}

/** What a tool may say with what it throws. Where it says nothing it is not known whether the effect happened. */
export interface ToolFailure {
  /** False when the effect certainly did not leave the host. */
  readonly sent?: boolean;
  readonly details?: {
    /** The other side said how it ended: it did not happen, and asking again gives the same. */
    readonly final?: boolean;
    /** With `final`: it happened, and its result cannot be used. */
    readonly happened?: boolean;
  };
}

export interface Tool extends ToolDescription {
  /** ms after an abort in which the tool may still say how it ended; absent: it is left at once. */
  readonly stopGraceMs?: number;
  /** What it changes belongs to this host alone, and to nobody's work: a rehearsal performs it. */
  readonly isSandbox?: true;
  call(input: JsonValue, context: ToolCallContext): Promise<JsonValue>;
  /** Asks the other side whether the effect with this key happened. */
  reconcile?(
    input: JsonValue,
    context: ToolCallContext,
  ): Promise<{ happened: true; outcome: JsonValue } | { happened: false } | 'unknown'>;
}

export interface Tools {
  /** What this process registers itself, sorted by toolId; tools of agent processes come and go. */
  list(tenant: string): readonly ToolDescription[];
  /**
   * By toolId, tools of agent processes included; one that is not known is not in the map. `startMs`: waits that long
   * for agents that are just being started and have not said yet what they can do.
   */
  find(
    tenant: string,
    toolIds: readonly string[],
    startMs?: number,
  ): Promise<ReadonlyMap<string, Tool>>;
}
