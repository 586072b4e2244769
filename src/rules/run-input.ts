// What a run is started with. It travels in Temporal history: valid, redacted and bounded before it gets here
// (architecture §2.6). Everything that may change between start and end of a run is pinned in it.
import type { AgentManifest, WorkflowDefinition } from '../../schemas/types.generated.ts';
import type { ForkBuild } from './builds.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { CausedBy } from './journal.ts';
import type { ChildCause } from './children.ts';
import type { Overlay } from './overlay.ts';
import type { Era, Revision } from './versions.ts';
import { principalOf, type StoredOwner, type Subject } from './subject.ts';

/** Version of the translation rules that this run's history is read with, for ever (architecture §3.1). */
export const TRANSLATE_VERSION = 1;

/** A manifest as pinned at start: workflow code reads these fields, activities load the whole by its hash. */
export interface PinnedAgent {
  readonly agentId: string;
  /** Content hash of the whole manifest with its resolved prompt and schemas. */
  readonly manifestHash: string;
  readonly modelClass: AgentManifest['modelClass'];
  /** Effective allowlist; an absent one is empty. */
  readonly toolAllowlist: readonly string[];
  readonly confidenceThreshold?: number;
  /** Of a fork: it takes over a conversation that another version of it began. */
  readonly isOverlaid?: true;
}

/** Constants of the run, stamped on the session stream. */
export interface RunHeader {
  readonly sessionId: string;
  readonly parentRunId?: string;
  readonly parentNodeId?: string;
  /** Root run of the chain; the own runId for a root. */
  readonly correlationId: string;
  /** callId of the call that spawned this run. */
  readonly causationId?: string;
  /** Generations between the root and this run; absent: this is a root. */
  readonly depth?: number;
  readonly childCause?: ChildCause;
  /** Event of the parent that this run began with. */
  readonly startedBy?: CausedBy;
  /** The end of its parent does not end it. */
  readonly isDetached?: true;
  /** Of a child: its place in its parent, and the series of the runs that stand there one after the other (childSeriesOf). */
  readonly place?: string;
  readonly series?: string;
}

/** Of a root: itself. */
export function seriesOf({ series }: Pick<RunHeader, 'series'>, runId: string): string {
  return series ?? runId;
}

/**
 * Epoch of an effect that a fork has of its source: it was performed under another key than its own. Nobody can be asked by
 * that, and nothing is repeated by it without a human's word, whatever the tool is.
 */
export const INHERITED_EPOCH = 0;

/** Of which run a run is a fork (replay.md). */
export interface ForkOf {
  readonly sourceRunId: string;
  /** Entries of the source before it are the fork's own log. */
  readonly fromSeq: number;
  /** Entries of the source when it was forked: it may have gone on since. */
  readonly length: number;
  readonly mode: 'replay' | 'branch';
  /** Of it, and before it of those that its source is a fork of, where their own logs are in its. */
  readonly clocks: readonly ForkClock[];
  /** Of a branch alone. */
  readonly overlay?: Overlay;
  /** What its source went by by then, being a fork. */
  readonly inherited?: Overlay;
  /** 1: its source is no fork. */
  readonly generation: number;
  /** The overlay as it was asked for, without secrets. */
  readonly asked?: JsonObject;
  /** Of a cohort that made it: lists leave it out. */
  readonly cohortId?: string;
  /** Absent: it begins where new runs do. */
  readonly build?: ForkBuild;
  /** Its source has child runs, which are forked with it before it reads its record. */
  readonly hasChildren?: true;
  /** Of a child run of a branch, and of what is below it: runs that live may stand in its place later. */
  readonly isBelowBranch?: true;
  /** A replay that leaves nothing of the record out and has nothing behind it: what is played is held against it, and that is all. */
  readonly isWhole?: true;
}

/** What was counted from before a fork left its source goes on when it was made. */
export interface ForkClock {
  /** Time of the last of the source's entries that the fork goes by. */
  readonly recordEndsMs: number;
  readonly madeAtMs: number;
}

/** When the fork was made. */
export function madeAtMs({ clocks }: Pick<ForkOf, 'clocks'>): number {
  return clocks.at(-1)?.madeAtMs ?? 0;
}

/** A time in the log of a run, as what ends some time behind it is counted from. The clock of a rehearsal goes with it. */
export function countedFromMs(
  { fork, rehearsal }: Pick<RunInput, 'fork' | 'rehearsal'>,
  atMs: number,
): number {
  if (rehearsal) return atMs;
  return (fork?.clocks ?? []).reduce(
    (fromMs, clock) =>
      fromMs <= clock.recordEndsMs ? fromMs + clock.madeAtMs - clock.recordEndsMs : fromMs,
    atMs,
  );
}

/** A run whose clock stands until somebody moves it. Deadlines end by that clock alone, and nothing outside is changed. */
export interface Rehearsal {
  /** Of a child: where its parent's clock stood (ms epoch). Absent: it begins at the run's start. */
  readonly fromMs?: number;
}

export interface RunInput {
  readonly runId: string;
  readonly tenant: string;
  /** Who started the run. */
  readonly subject: Subject;
  readonly idSeed: string;
  readonly translateVersion: number;
  readonly era: Era;
  readonly header: RunHeader;
  readonly definition: WorkflowDefinition;
  /** `run-api` when the run was started by agentId, `chat-mention` by a message that mentions it (RFC 0077 §D). */
  readonly source: 'workflow-node' | 'run-api' | 'chat-mention';
  /** What somebody said that started the run (seed 000 §G): stated first, in the channel that the definition has for it. */
  readonly message?: JsonObject;
  /** Declared variables with their start values: defaults overlaid by inputs. */
  readonly variables: JsonObject;
  readonly configurable: JsonObject;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
  /** By agentId; every agent that a node of the definition names. */
  readonly agents: Readonly<Record<string, PinnedAgent>>;
  readonly limits: {
    readonly maxNodeExecutions: number;
    readonly maxRunDurationMs: number;
    /** Time that a question to a human stands where its node names none. */
    readonly interruptTimeoutMs: number;
  };
  readonly policy: {
    /** false: low confidence is noted by cap.breached and the run goes on (RFC 0002 §F, third reaction). */
    readonly escalation: boolean;
    readonly verbosity: 'summary' | 'full' | 'off';
  };
  /** Test mode, and a definition made for tests: what its nodes ask for by test hooks happens (conformance/fixtures.md). */
  readonly testHooks?: true;
  /** What its nodes state and take, as the release did that accepted it. */
  readonly revision: Revision;
  /** Tools of which a run above has left calls, which may have happened. */
  readonly leftTools?: readonly string[];
  /** Absent: the run is no fork. */
  readonly fork?: ForkOf;
  /** Absent: time passes. */
  readonly rehearsal?: Rehearsal;
  /** Tests only: continue-as-new after this many history events, at most 5 times (architecture §4). */
  readonly forceContinueAsNewAfter?: number;
  /** State carried over continue-as-new; absent in the first segment. Its form belongs to workflows/. */
  readonly carried?: JsonValue;
}

/** Channel of a run that a message started. */
export const MESSAGE_CHANNEL = 'messages';

/** Of the message that started a run (RFC 0005: conversation, turn, role). */
export function startingMessageId(runId: string): string {
  return `${runId}:0:user`;
}

/** The principal of who started the run. */
export function ownPrincipal({ subject }: Pick<RunInput, 'subject'>): string {
  return principalOf(subject);
}

/** Owner of the run, as its first event holds it: in a replay as it was stated. */
export function ownerOf({ tenant, subject }: Pick<RunInput, 'tenant' | 'subject'>): StoredOwner {
  return { tenant, subject };
}

/** How much of an agent's reasoning a run shows. */
export function verbosityOf({
  configurable,
  policy,
}: Pick<RunInput, 'configurable' | 'policy'>): 'summary' | 'full' | 'off' {
  const asked = configurable.reasoningVerbosity;
  return asked === 'summary' || asked === 'full' || asked === 'off' ? asked : policy.verbosity;
}

/** The smallest limit that somebody asked for; the host's own ceiling bounds every run. */
export function durationLimitMs({ configurable, definition, limits }: RunInput): number {
  const { runTimeoutMs } = configurable;
  const { timeout } = definition.settings;
  return Math.min(
    limits.maxRunDurationMs,
    typeof runTimeoutMs === 'number' ? runTimeoutMs : Infinity,
    timeout !== undefined && timeout > 0 ? timeout : Infinity,
  );
}

/** Temporal workflow type and task queue of every run of a deployment. */
export const RUN_WORKFLOW = 'runWorkflow';
export const RUN_TASK_QUEUE = 'openwop';
const AGENT_QUEUES = `${RUN_TASK_QUEUE}.agent.`;

/** Queue of the calls to an agent process's tools, polled by workers while they have that agent (architecture §5). */
export function agentTaskQueue(tenant: string, agentId: string): string {
  return `${AGENT_QUEUES}${tenant}.${agentId}`;
}

export function isAgentTaskQueue(taskQueue: string): boolean {
  return taskQueue.startsWith(AGENT_QUEUES);
}
