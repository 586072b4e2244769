// A run's state as data (architecture §4): everything that the next segment needs is in `RunState`, plain JSON. A visit
// of a node is a frame; its `data` belongs to the node kind, which can be entered again at every phase.
import type { OrchestratorDecision } from '../schemas/types.generated.ts';
import type { OpenItem } from '../src/rules/endings.ts';
import type { EdgeDecision } from '../src/rules/routing.ts';
import type { JsonObject, JsonValue } from '../src/rules/json.ts';
import type { MessageOutcome, PauseRunMessage } from '../src/rules/messages.ts';
import type { Overlay } from '../src/rules/overlay.ts';
import type { RunInput } from '../src/rules/run-input.ts';
import type { InterruptKind } from '../src/rules/status.ts';
import type { Subject } from '../src/rules/subject.ts';
import type { CountedVote, Judging } from './approvals.ts';
import type { Causes } from './causes.ts';

export interface NodeError {
  readonly code: string;
  readonly message: string;
  readonly details?: JsonObject;
}

/** An agent that passes control on (RFC 0002 §B), and why. A type, not an interface: it is part of a frame's JSON. */
export type Passing = { agentId: string; reason?: string };

/** A type, not an interface: it must be assignable to JsonObject. */
export type Frame = {
  readonly nodeId: string;
  readonly visit: number;
  attempt: number;
  /** `ready`: not started (or waiting for the next attempt until `resumeAtMs`); `started`: node.started is stated. */
  phase: 'ready' | 'started';
  resumeAtMs?: number;
  /** End of this attempt's time, when the node has a timeout. */
  deadlineMs?: number;
  /** Escalations of this visit so far (architecture §9). */
  escalations: number;
  /** Times that an agent of this visit passed control to another one by itself. */
  handoffs?: number;
  /** Who passes control to this visit, where that is not stated yet. */
  passedBy?: Passing[];
  /** The agent that decided in it, and the node that its handoff named. */
  holder?: { agentId: string; told?: string };
  /** Attempts that a pause cut: they count against no retry. */
  cuts?: number;
  /** A pause cuts this attempt. */
  isCut?: true;
  /** Of a branch that left its source within this visit: entries of its log that are its source's. */
  sourceLength?: number;
  /** State of the node kind within the attempt. */
  data: JsonObject;
};

export interface Resolution {
  readonly value: JsonValue;
  readonly resolvedBy: Subject;
  /** Key of the entry that closes it. */
  readonly key: string;
  /** Of a conversation: all turns, the first and the last included. */
  readonly turnCount?: number;
  /** A source was given it, and not the run that lives. */
  readonly isRecorded?: true;
}

/** An interrupt from `node.suspended` until its frame has taken the resolution. */
export interface Interrupt {
  readonly interruptId: string;
  readonly nodeId: string;
  readonly kind: InterruptKind;
  readonly step: string;
  readonly judging: Judging;
  readonly schemaDigest: string;
  readonly suspendedKey: string;
  readonly visit: number;
  readonly attempt: number;
  deadlineMs?: number;
  /** Of a fork that goes by recorded answers: the record was asked. */
  isSought?: true;
  /** The record leaves it open, and that is still to be noted. */
  isUnnoted?: true;
  /** How many answers of that record the run has heard: from its source, until it left that, and from the record. */
  heardOfRecord?: number;
  /** Answers so far, also those that leave it open. */
  heard: number;
  /** Of a quorum, one for each voter. */
  votes: readonly CountedVote[];
  /** Questions back so far. */
  askedBack: number;
  /** Turns so far, of a conversation. */
  conversation?: {
    readonly conversationId: string;
    readonly maxTurns: number;
    /** Index of the next turn. */
    turns: number;
    /** All turns together, in UTF-8 bytes of JSON. */
    bytes: number;
    messageIds: string[];
    /** Key of its last event, and that event's time. */
    lastKey: string;
    lastMs: number;
    isClosed?: true;
  };
  resolution?: Resolution | 'timeout';
}

/** A child run that has not been taken to its end, by its parent. */
export interface OpenChild {
  readonly nodeId: string;
  readonly isDetached?: true;
  /** It has told that it ended, or somebody has for it. */
  hasEnded?: true;
  /** Of one that the record of another run has: the lower is taken first. */
  turn?: number;
  /** A step is under way that starts it or takes its end, which comes, however long the host's store is away. */
  isComing?: true;
}

export interface NodeState {
  visits: number;
  outcome?: 'completed' | 'failed' | 'skipped';
  outputs: JsonObject;
  error?: NodeError;
  /** Interrupts of this node that are over: a late answer to one gets 409, not 404. */
  resolvedInterrupts: number;
  /** Times that it was skipped; absent: none. */
  skips?: number;
}

/** What an orchestrator said comes next, until a dispatch takes it (RFC 0006). */
export interface Turn {
  /** Key of its runOrchestrator.decided. */
  readonly key: string;
  readonly decision: OrchestratorDecision;
  /** A human has seen it. */
  readonly isRatified?: true;
  /** It acts once: what it is taken by may attempt it again. */
  takenBy?: { readonly nodeId: string; readonly visit: number };
}

/** Where the clock of a rehearsal stands, and where it goes. Times in ms epoch. */
export interface ClockState {
  nowMs: number;
  /** Times that it was set. */
  stops: number;
  /** It is to move: until then, or to the end of the first wait. */
  skip?: { readonly untilMs?: number; readonly stops: number };
  /** Runs below that are still to be told where it stands. */
  telling?: { readonly toMs: number; readonly children: readonly string[] };
  /** Times that those below were asked and told. */
  asks?: number;
}

export interface RunState {
  startedAtMs: number;
  /** Of a fork that went on from a difference: names that its log has of its source, and that its own code may come to. */
  standing?: readonly string[];
  segment: number;
  variables: JsonObject;
  /** What was written to declared channels; absent before the first write. */
  channels?: Record<string, JsonValue>;
  nodes: Record<string, NodeState>;
  edges: Record<string, EdgeDecision>;
  frames: Record<string, Frame>;
  /** By interruptId, oldest first: a node may have several open. */
  readonly interrupts: Record<string, Interrupt>;
  /** By childRunId; absent before the first. */
  children?: Record<string, OpenChild>;
  /** Tools with effects of which a call was cut off, or left in doubt by a human. */
  leftTools?: string[];
  /** Of a branch: entries of its log that are its source's, once it lives. */
  sourceLength?: number;
  /** The run's orchestrator: `turns` and what `dispatches` did of them, over the whole run. */
  orchestrator?: {
    readonly agentId: string;
    turns: number;
    dispatches: number;
    /** Absent while it has only asked for others (RFC 0002 §F). */
    latest?: Turn;
  };
  executions: number;
  /** By edge: who passes control over it to a visit that has not begun. Absent before the first. */
  passing?: Record<string, Passing[]>;
  /** Times each back edge was taken. */
  loops: Record<string, number>;
  /** Targets of back edges whose region is still busy. */
  pendingLoops: string[];
  /** Of a fork that has left its source: what it goes by. */
  overlay?: Omit<Overlay, 'answer'>;
  /** Model by model class: stable within a run (RFC 0077 §B step 1). */
  models: Record<string, { provider: string; model: string }>;
  /** Nodes whose outputs are the run's, in the order in which they completed last. Absent before the first. */
  lastNodes?: readonly string[];
  /** Outcomes of messages, by update id: a repeat after continue-as-new gets the same answer. */
  outcomes: { updateId: string; atMs: number; outcome: MessageOutcome }[];
  /** Attempts that pauses cut: an operator's word spends no execution. */
  cuts?: number;
  /** Pauses so far: each has a number. */
  pauses?: number;
  pause?: {
    readonly number: number;
    readonly drainPolicy: PauseRunMessage['drainPolicy'];
    readonly reason?: string;
    /** `run.paused` is stated. */
    isEffective: boolean;
  };
  /** Of a rehearsal. */
  clock?: ClockState;
  open: readonly OpenItem[];
  /** Of what follows next; empty before the run's first event. */
  readonly causes: Causes;
}

export function newRunState(
  startedAtMs: number,
  { variables, leftTools }: Pick<RunInput, 'variables' | 'leftTools'>,
): RunState {
  return {
    startedAtMs,
    segment: 0,
    variables: { ...variables },
    ...(leftTools ? { leftTools: [...leftTools] } : {}),
    nodes: {},
    edges: {},
    frames: {},
    interrupts: {},
    executions: 0,
    loops: {},
    pendingLoops: [],
    models: {},
    outcomes: [],
    open: [],
    causes: [],
  };
}

/** The state that the segment before carried on. */
export function restoredRunState(carried: JsonValue): RunState {
  return carried as unknown as RunState;
}

export function newFrame(nodeId: string, visit: number): Frame {
  return { nodeId, visit, attempt: 0, phase: 'ready', escalations: 0, data: {} };
}
