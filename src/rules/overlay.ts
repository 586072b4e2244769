// What a branch goes by that its source did not (replay.md §Modes: runOptionsOverlay), from where it leaves its source on.
// Checked when the fork is made; it travels in the fork's input.
import type { JsonObject, JsonValue } from './json.ts';
import type { ResolveInterruptMessage } from './messages.ts';
import type { PinnedAgent, RunInput } from './run-input.ts';

/** In the place of what somebody, or something, answered at the event that the branch begins with. */
export type OverlaidAnswer =
  /** Of a tool, or of an agent that was called as one: nothing is performed. */
  | {
      readonly kind: 'outcome';
      readonly activityId: string;
      readonly outcome: JsonValue;
      /** As the event names the call. */
      readonly callId?: string;
    }
  /** Of a model, as it would have said it: none is asked. */
  | { readonly kind: 'said'; readonly activityId: string; readonly final: string }
  /** Of a human, by whoever made the fork. */
  | { readonly kind: 'message'; readonly message: ResolveInterruptMessage };

/** The first `length` entries of a run's log. */
export interface RecordedLog {
  readonly runId: string;
  readonly length: number;
}

export interface Overlay {
  /** Whole, in the place of the source's. */
  readonly configurable?: JsonObject;
  /** Those that are others, or say something else. */
  readonly agents?: Readonly<Record<string, PinnedAgent>>;
  /** By model class, in the place of what was chosen. */
  readonly models?: Readonly<Record<string, { provider: string; model: string }>>;
  readonly answer?: OverlaidAnswer;
  /** Calls of tools get what they got there; null: they are performed again. */
  readonly recordedTools?: RecordedLog | null;
  /** Questions that were asked there in the same place and words get what people answered; null: people are asked again. */
  readonly recordedAnswers?: RecordedLog | null;
  /** Where the record is not what the code of today states, the branch lives from there. Of this fork alone. */
  readonly onDivergence?: 'live';
}

/** The later over the earlier, but for answers: each is given once. */
export function mergedOverlay(before: Overlay | undefined, later: Overlay | undefined): Overlay {
  const configurable = later?.configurable ?? before?.configurable;
  const tools = later?.recordedTools === undefined ? before : later;
  const answers = later?.recordedAnswers === undefined ? before : later;
  return {
    ...(tools?.recordedTools === undefined ? {} : { recordedTools: tools.recordedTools }),
    ...(answers?.recordedAnswers === undefined ? {} : { recordedAnswers: answers.recordedAnswers }),
    ...(configurable ? { configurable } : {}),
    agents: { ...before?.agents, ...later?.agents },
    models: { ...before?.models, ...later?.models },
  };
}

/** Whether recorded answers are those of another record from now on. */
export function goesByOther(before: Overlay | undefined, now: Overlay | undefined): boolean {
  const [one, other] = [before?.recordedAnswers, now?.recordedAnswers];
  return one?.runId !== other?.runId || one?.length !== other?.length;
}

/** Runs whose records a fork goes by, its source included, once it lives. */
export function recordsOf(fork: {
  readonly sourceRunId: string;
  readonly mode: 'branch' | 'replay';
  readonly inherited?: Overlay;
  readonly overlay?: Overlay;
}): string[] {
  const { recordedTools, recordedAnswers } = mergedOverlay(fork.inherited, fork.overlay);
  // A replay goes by the record of its source alone.
  const read = fork.mode === 'branch' ? [recordedTools, recordedAnswers] : [];
  return [...new Set([fork.sourceRunId, ...read.flatMap((log) => (log ? [log.runId] : []))])];
}

/** What a branch goes by once it has left its source. */
export function withOverlay(input: RunInput, overlay: Overlay | undefined): RunInput {
  const { configurable, agents } = overlay ?? {};
  return {
    ...input,
    ...(configurable ? { configurable } : {}),
    ...(agents ? { agents: { ...input.agents, ...agents } } : {}),
  };
}
