// The activities that workflow code may call: types only, so that the sandbox imports nothing else from this room.
// Inputs and outputs travel in history: values above INLINE_VALUE_BYTES go by content hash. Conversation never
// passes through here, only the hash of its newest chunk (architecture §2.6).
import type { PayloadOf } from '../src/rules/events.ts';
import type { JsonObject, JsonValue } from '../src/rules/json.ts';
import type { CausedBy, StepResult } from '../src/rules/journal.ts';
import type { HandoffTarget } from '../src/rules/handoffs.ts';
import type { RecordedLog } from '../src/rules/overlay.ts';
import type { RecordedAnswer } from '../src/rules/heard.ts';
import type { ForkOf, PinnedAgent, RunHeader } from '../src/rules/run-input.ts';
import type { ShownCall } from '../src/ports/effects.ts';
import type { MemberName } from '../src/ports/cohorts.ts';
import type { ChildEnd, ChildRequest, ChildStart } from '../src/rules/children.ts';

/** Where an activity runs: filled by Steps, the same for all. */
export interface StepContext {
  readonly runId: string;
  readonly tenant: string;
  readonly principal: string;
  readonly header: RunHeader;
  readonly workflowId: string;
  readonly nodeId: string;
  readonly visit: number;
  readonly attempt: number;
  readonly activityId: string;
  /** Of the events that it states itself. */
  readonly cause: CausedBy;
}

export interface ModelChoice {
  readonly provider: string;
  readonly model: string;
}

// --- prepareInvocation: RFC 0077 §B steps 1, 2, 3 and the inbound half of 6 -----------------------------------------

/** The agent says what comes next in its run: what it decides is an OrchestratorDecision (RFC 0006). */
export interface Orchestrates {
  /** Whom it may name. */
  readonly workerIds?: readonly string[];
}

export interface PrepareInvocationInput {
  readonly context: StepContext;
  readonly agent: PinnedAgent;
  /** The node's resolved input ports; for run-api the run's inputs. */
  readonly task: JsonValue;
  readonly configurable: JsonObject;
  readonly orchestrates?: Orchestrates;
  /** Whom the agent may pass control to. */
  readonly handoffs?: readonly HandoffTarget[];
  /** A human's answers to an escalation continue the conversation `transcript` (architecture §9). */
  readonly resume?: { readonly transcript: string; readonly answers: JsonValue };
}

export type PromptChainEntry = Readonly<PayloadOf<'agent.promptResolved'>['chain'][number]>;

/** Payload of agent.promptResolved without nodeId and agentId. */
export type ResolvedPrompt = Pick<PayloadOf<'agent.promptResolved'>, 'kind' | 'resolved'> & {
  readonly chain: readonly PromptChainEntry[];
};

/** Payload of prompt.composed without nodeId. */
export type ComposedPrompt = Pick<
  PayloadOf<'prompt.composed'>,
  'refs' | 'kind' | 'hash' | 'contentTrust'
>;

export type PrepareInvocationOutput =
  | {
      readonly ok: true;
      readonly transcript: string;
      readonly model: ModelChoice;
      readonly prompts: readonly ResolvedPrompt[];
      readonly composed: ComposedPrompt;
      /** allowlist ∩ policy ∩ registered. */
      readonly tools: readonly {
        toolId: string;
        idempotent: boolean;
        timeoutMs: number;
        transport: 'native' | 'http' | 'mcp';
        /** A tool of an agent process: where its calls wait, how long, and whether a human decides about each. */
        remote?: { agentId: string; waitMs: number; asks: boolean };
        /** A call is a run of this agent. */
        runs?: string;
        /** It changes something: after a call that was cut off it is not known whether it did. */
        sideEffects?: true;
      }[];
      /** Present when the manifest has handoff.returnSchemaRef, or the agent orchestrates. */
      readonly returnSchema?: JsonObject;
    }
  | {
      readonly ok: false;
      readonly code: string;
      readonly message: string;
      readonly details?: JsonObject;
    };

// --- inferTurn: one model call (step 5) ------------------------------------------------------------------------------

export interface InferTurnInput {
  readonly context: StepContext;
  readonly agent: PinnedAgent;
  readonly model: ModelChoice;
  readonly configurable: JsonObject;
  readonly transcript: string;
  /** Ids of the tool surface, as prepared. */
  readonly tools: readonly string[];
  /** Results of the previous turn's calls in CALL order, each by content hash. */
  readonly results: readonly { callId: string; resultHash: string }[];
  /** What the model is to have said: none is asked (a branch's overlay). */
  readonly said?: string;
  /** Why the previous output was not usable; the model is asked to repair it. */
  readonly repair?: string;
  readonly verbosity: 'summary' | 'full' | 'off';
  readonly orchestrates?: Orchestrates;
  /** Whom the agent may pass control to: `handoff:<agentId>` among `tools`. */
  readonly handoffs?: readonly HandoffTarget[];
}

/** A type, not an interface: it is part of a frame's JSON. */
export type Handoff = {
  readonly toAgentId: string;
  readonly task: JsonValue;
  readonly reason?: string;
};

/** A type, not an interface: it is part of a frame's JSON. */
export type AskedQuestion = { readonly id: string; readonly question: string };

export interface RequestedCall {
  readonly toolId: string;
  readonly arguments: JsonValue;
}

export type InferTurnOutput = { readonly transcript: string } & (
  | { readonly kind: 'calls'; readonly calls: readonly RequestedCall[] }
  | {
      readonly kind: 'decision';
      /** Valid against returnSchema where there is one: checked before the result is recorded. */
      readonly decision: JsonValue;
      readonly confidence?: number;
      readonly reasoning?: string;
      readonly schemaValidated: boolean;
    }
  | {
      /**
       * Not JSON, not a decision, more than a turn may hold, against returnSchema, or a task that its agent does not take
       * (`violation`).
       */
      readonly kind: 'invalid';
      readonly violation: 'form' | 'return-schema' | 'task-schema';
      readonly message: string;
    }
  /** The output was a `clarification.request` envelope: a human is asked, and the conversation goes on. */
  | { readonly kind: 'clarification'; readonly questions: readonly AskedQuestion[] }
  /** Control passes to another agent (RFC 0002 §B); the task fits that agent's schema. */
  | ({ readonly kind: 'handoff' } & Handoff)
  | { readonly kind: 'refusal' }
);
// events of inferTurn, in order: agent.reasoned (unless verbosity is off), provider.usage, envelope.refusal?

// --- callTool --------------------------------------------------------------------------------------------------------

export interface CallToolInput {
  readonly context: StepContext;
  readonly agentId: string;
  readonly call: {
    readonly callId: string;
    readonly toolId: string;
    readonly arguments: JsonValue;
    /** SHA-256 of the canonical arguments. */
    readonly argsHash: string;
    /** n-th call with these arguments within the node attempt, from 0 (architecture §5). */
    readonly occurrence: number;
  };
  /** The surface once more: checked again at the call (RFC 0077 §B step 3). */
  readonly tools: readonly string[];
  /** Key of the agent.toolCalled entry: causedBy of agent.toolReturned. Absent for a call outside the surface. */
  readonly calledKey?: CausedBy;
  /** A call of the tool was cut off in this run or above it, or left in doubt by a human (ClaimOptions). */
  readonly hasLeftCalls?: true;
  /**
   * A human's word on an effect in doubt: it happened with this outcome, it did not (perform it), or leave it.
   * `unreached`: no process had the tool's agent in time; nothing more is performed, what is known is told.
   */
  readonly resolution?:
    | {
        readonly kind: 'happened';
        readonly outcome: JsonValue;
        /** By a branch's overlay: what is to have come of it, whatever the tool could give. */
        readonly isSupposed?: true;
      }
    /**
     * `reason`: what the human said of it, for the agent. `isRefusal`: no to a call that was not made then, and not a word on
     * an effect in doubt.
     */
    | { readonly kind: 'skip'; readonly reason?: string; readonly isRefusal?: true }
    /**
     * `epoch` of the doubt that was answered, earlier calls that were shown (HumanWord): the answer holds for one claim. `asked`:
     * the reason that named those calls, and `askedAbout` how many were shown, where the question was asked by the source that a
     * branch has left.
     */
    | {
        readonly kind: 'perform';
        readonly epoch?: number;
        readonly shown?: readonly ShownCall[];
        readonly asked?: string;
        readonly askedAbout?: number;
      }
    | { readonly kind: 'unreached' };
  /**
   * Of a branch that left its source within this visit of the node: entries of its log that are its source's. What those
   * say was performed is not repeated silently.
   */
  readonly sourceLength?: number;
  /** The log that tells what the call comes to: nothing is performed (a branch's overlay). */
  readonly recordedBy?: RecordedLog;
  /** Who let this call be made, where the operator's policy asks a human. */
  readonly approvedBy?: string;
  /** Of a rehearsal: what changes anything outside is not performed. */
  readonly rehearsal?: true;
}

export type CallToolOutput =
  /** events: exactly one agent.toolReturned. `status` as in its payload. */
  | {
      readonly kind: 'returned';
      readonly status: 'ok' | 'error' | 'forbidden';
      readonly resultHash: string;
    }
  /** No event yet: it is not known whether the effect happened, or a later attempt differs; a human decides. */
  | {
      readonly kind: 'in-doubt';
      readonly effectId: string;
      readonly reason: string;
      /** Absent: this call was not made, and the question is about earlier ones. */
      readonly epoch?: number;
      /** Earlier calls that the reason names, or that a human was shown before. */
      readonly shown?: readonly ShownCall[];
      /** The call is refused as things stand: no answer may promise to perform it. */
      readonly refused?: true;
      /** Of a rehearsal: it is not performed, and a human says what it would have come to. */
      readonly rehearsed?: true;
    }
  /** No event yet, nothing performed: the operator's policy asks a human about this call. */
  | { readonly kind: 'needs-approval'; readonly reason: string };

// --- recordedAnswers: what people answered to the same question of a run's source (replay.md §Modes) -------------------

export interface RecordedAnswersInput {
  readonly context: StepContext;
  readonly recordedBy: RecordedLog;
  /** Of the entry that asks, here as in the source. */
  readonly askedKey: string;
  readonly interruptId: string;
  readonly question: {
    readonly kind: string;
    readonly data: JsonObject;
    readonly resumeSchema: JsonObject;
  };
  /** `accept` has a call performed that may have been before. */
  readonly mayRepeat?: true;
  /** All that was answered there is taken, and the question stands: nothing more is looked for. */
  readonly isLeft?: true;
}
/** events: none. */
export interface RecordedAnswersOutput {
  readonly interruptId: string;
  /** In their order; none where the source asked no such question there, or nobody answered it. */
  readonly answers: readonly RecordedAnswer[];
  /** As it was asked: whoever reads the record of the run knows by it what that took (src/rules/heard.ts). */
  readonly mayRepeat?: true;
}

// --- sealBlock: closes the delta block of a stream activity that ended without a result (architecture §3.5) ----------

export interface SealBlockInput {
  readonly context: StepContext;
  readonly sealedActivityId: string;
  /** A tool call's progress: recorded without a closing event. Absent: reasoning. */
  readonly kind?: 'tool';
  readonly agentId: string;
  readonly verbosity: 'summary' | 'full' | 'off';
}
/** events: agent.reasoned with the partial text when any delta was stored, else none. */
export interface SealBlockOutput {
  readonly deltas: number;
}

// --- checkValue: a value against a schema of the definition ----------------------------------------------------------

export interface CheckValueInput {
  readonly context: StepContext;
  readonly value: JsonValue;
  readonly schema: JsonObject;
}
/** events: none. */
export type CheckValueOutput =
  | { readonly ok: true }
  | { readonly ok: false; readonly message: string; readonly errors: JsonValue };

// --- child runs (RFC 0007, RFC 0022): src/runs/children.ts -----------------------------------------------------------

export interface StartChildrenInput {
  readonly context: StepContext;
  /** One batch, in its order. */
  readonly requests: readonly ChildRequest[];
  /** Of a branch whose calls were left (`ChildRequest.leftTools`): entries of its log that are its source's. */
  readonly sourceLength?: number;
  /** Nothing begins: each is what that record has for the same (src/runs/recorded-children.ts). */
  readonly recordedBy?: RecordedLog;
  /** With `recordedBy`: calls whose children were under way where the branch left its source. */
  readonly underWay?: readonly string[];
}
/** In the order of the requests, and then of `underWay`. */
export interface StartChildrenOutput {
  readonly starts: readonly ChildStart[];
}

export interface EndChildInput {
  readonly context: StepContext;
  readonly childRunId: string;
  /** The run that it is a child of; absent: this one. */
  readonly recordedOf?: string;
  /** Variables of the child that are taken. */
  readonly harvest: readonly string[];
  /** It was never started: this is told in the place of an end. */
  readonly refused?: { readonly code: string; readonly message: string };
  /** The call that it answers, where an agent called it as a tool. */
  readonly tool?: {
    readonly agentId: string;
    readonly callId: string;
    readonly toolId: string;
    readonly calledKey?: CausedBy;
  };
  /** Of a tool's call: what stands in the place of what the child came to (replay.md §Modes). */
  readonly resolution?: Extract<NonNullable<CallToolInput['resolution']>, { kind: 'happened' }>;
}
export interface EndChildOutput {
  readonly status: ChildEnd['status'];
  /** Those of `harvest` that are there; of a child that completed. */
  readonly variables?: JsonObject;
  readonly error?: { readonly code: string; readonly message: string };
  /** Of a tool's call. */
  readonly resultHash?: string;
}
// events of endChild: exactly one agent.toolReturned for a tool's call, else none.

export interface CancelChildInput {
  readonly context: StepContext;
  readonly childRunId: string;
  readonly reason: string;
}
/** As it was found: it ends soon where it was open. */
export interface CancelChildOutput {
  readonly found: 'open' | 'ended' | 'none';
}

// --- keepTime: those below a rehearsal, asked what they wait for or told where the clock stands ----------------------

export interface KeepTimeInput {
  readonly context: StepContext;
  /** Parents before their children. */
  readonly children: readonly string[];
  /** Where the clock stands, ms epoch. Absent: they are asked, and all below them. */
  readonly toMs?: number;
}
/** events: none. */
export interface KeepTimeOutput {
  /** All that were asked, parents before their children. */
  readonly children: readonly string[];
  /** End of the first wait among them, ms epoch. */
  readonly nextMs?: number;
  /** One of those that were named has ended: nothing else is told. */
  readonly hasEnded?: true;
}

// --- tellReasoning: the reasoning of an agent that is scripted node by node (RFC 0023), in test mode ------------------

export interface TellReasoningInput {
  readonly context: StepContext;
  readonly agentId: string;
  /** Each is one live delta. */
  readonly chunks: readonly string[];
  readonly verbosity: 'summary' | 'full' | 'off';
  /** Key of what the closing event follows from. */
  readonly causedBy: CausedBy;
}
/** events: agent.reasoned, with all that was told. */
export interface TellReasoningOutput {
  readonly told: true;
}

// --- readRecording: what a fork is made from (architecture §6) --------------------------------------------------------

export interface ReadRecordingInput {
  readonly runId: string;
  readonly tenant: string;
  readonly fork: ForkOf;
  /** From 0. */
  readonly page: number;
  /** Of a child: the event of its parent that it began with. Absent: as in the record. */
  readonly startedBy?: CausedBy;
}

// --- forkChildren: the child runs that a fork has of its source (architecture §6): src/runs/fork-children.ts -----------

export type ForkChildrenInput = Pick<ReadRecordingInput, 'runId' | 'tenant' | 'fork'>;
// Neither output nor events: what they are called both sides know.

export interface Activities {
  readRecording(input: ReadRecordingInput): Promise<StepResult<null>>;
  forkChildren(input: ForkChildrenInput): Promise<StepResult<null>>;
  checkValue(input: CheckValueInput): Promise<StepResult<CheckValueOutput>>;
  prepareInvocation(input: PrepareInvocationInput): Promise<StepResult<PrepareInvocationOutput>>;
  inferTurn(input: InferTurnInput): Promise<StepResult<InferTurnOutput>>;
  callTool(input: CallToolInput): Promise<StepResult<CallToolOutput>>;
  tellReasoning(input: TellReasoningInput): Promise<StepResult<TellReasoningOutput>>;
  recordedAnswers(input: RecordedAnswersInput): Promise<StepResult<RecordedAnswersOutput>>;
  sealBlock(input: SealBlockInput): Promise<StepResult<SealBlockOutput>>;
  startChildren(input: StartChildrenInput): Promise<StepResult<StartChildrenOutput>>;
  endChild(input: EndChildInput): Promise<StepResult<EndChildOutput>>;
  cancelChild(input: CancelChildInput): Promise<StepResult<CancelChildOutput>>;
  keepTime(input: KeepTimeInput): Promise<StepResult<KeepTimeOutput>>;
}

// --- cohorts (architecture §6): src/runs/cohort-members.ts ------------------------------------------------------------

export interface CohortActivities {
  /** Makes the member's fork, waits for its end, and settles what it came to. */
  replayMember(name: MemberName): Promise<void>;
  /** Settles all that is left. */
  endCohort(ended: Omit<MemberName, 'position'> & { readonly isCancelled: boolean }): Promise<void>;
}
