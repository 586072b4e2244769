// An invocation as data (RFC 0077 §B): its state in the frame, the calls of its current turn, and where it works.
import type {
  AskedQuestion,
  CallToolInput,
  Handoff,
  ModelChoice,
  Orchestrates,
  PrepareInvocationOutput,
} from '../activities/contract.ts';
import type { JsonObject, JsonValue } from '../src/rules/json.ts';
import type { PinnedAgent } from '../src/rules/run-input.ts';
import type { Child } from './child-runs.ts';
import type { Visit } from './context.ts';
import type { NodeError } from './frames.ts';

export type Prepared = Extract<PrepareInvocationOutput, { ok: true }>;

/** A type, not an interface: it is part of a frame's JSON. */
export type AgentDecision = {
  decision: JsonValue;
  confidence?: number;
  reasoning?: string;
  schemaValidated: boolean;
};

/** What an invocation comes to. */
export type Concluded =
  | { readonly kind: 'decided'; readonly decision: AgentDecision }
  | { readonly kind: 'asking'; readonly questions: AskedQuestion[] }
  | { readonly kind: 'handing-off'; readonly handoff: Handoff };

/** One call, as data of the frame. */
export type ToolCall = {
  readonly step: string;
  readonly callId: string;
  readonly toolId: string;
  readonly arguments: JsonValue;
  readonly argsHash: string;
  readonly occurrence: number;
  /** Of a call of an agent: the n-th of that agent in the node attempt. Its run stands there. */
  readonly place?: string;
  /** Absent for a tool outside the surface: it is refused by the activity and never called. */
  readonly calledKey?: string;
  /** Times a human was asked. */
  rounds: number;
  doubt?: {
    effectId: string;
    reason: string;
    epoch?: number;
    shown?: NonNullable<Extract<CallToolInput['resolution'], { kind: 'perform' }>['shown']>;
    refused?: true;
    rehearsed?: true;
    /** So many were shown before the run left its source, whose ledger knows the calls that it names by other ids. */
    askedAbout?: number;
  };
  /** No worker with the tool's agent took it in time: the step that waited, until its progress is sealed. */
  unreached?: { waited?: string };
  /** The operator's policy asks a human: needed, or given by somebody. */
  approval?: 'needed' | { by: string };
  /** It failed, and so does the turn, as soon as no call of it is under way. */
  failed?: NodeError;
  /** What a human said about the call, until the call has a result. */
  resolution?: CallToolInput['resolution'];
  resultHash?: string;
  /** A call of an agent: its run. */
  child?: Child;
};

export type Invocation = {
  /** n-th invocation of the node attempt. */
  readonly number: number;
  readonly invocationId: string;
  phase: 'infer' | 'calls' | 'decided' | 'asking' | 'handing-off';
  readonly model: ModelChoice;
  readonly prompts: Prepared['prompts'];
  readonly composed: Prepared['composed'];
  readonly tools: Prepared['tools'];
  readonly returnSchema?: JsonObject;
  transcript: string;
  turn: number;
  schemaRounds: number;
  repair?: string;
  calls: ToolCall[];
  results: { callId: string; resultHash: string }[];
  decision?: AgentDecision;
  /** What the model wants to know of a human, in the place of a decision. */
  questions?: AskedQuestion[];
  /** Whom control passes to, in the place of a decision. */
  handoff?: Handoff;
};

/** An invocation at work: where it stands in the run, and where its state is kept. */
export interface AgentWork {
  readonly visit: Visit;
  readonly agent: PinnedAgent;
  readonly number: number;
  readonly task: JsonValue;
  readonly resume?: { transcript: string; answers: JsonValue };
  /** Of an agent that took over: the fact that control passed to it. */
  readonly because?: string;
  /** The agent says what comes next in the run. */
  readonly orchestrates?: Orchestrates;
  /**
   * Calls of the node attempt so far, by tool and arguments: the n-th equal call is an effect of its own. Those of an agent
   * also by its name alone.
   */
  readonly occurrences: { [call: string]: number };
  keep(invocation: Invocation): void;
  current(): Invocation | undefined;
}

/** Outputs of an agent node: what edges decide on. */
export function outputsOf({ decision, confidence }: AgentDecision): JsonObject {
  return { decision, ...(confidence === undefined ? {} : { confidence }) };
}

/** Name of a step of the invocation within the node attempt. */
export function stepName(work: AgentWork, name: string): string {
  return `i${work.number}.${name}`;
}
