// What the inside asks of the outside: types only. Each port has one contract suite in test/contract/, run on every
// adapter. All times are ms epoch, all ids opaque strings. Every call that touches tenant data names the tenant.
import type { CausedBy, RecordedDeltas } from './rules/journal.ts';
import type { JsonObject, JsonValue } from './rules/json.ts';
import type {
  CancelRunCommand,
  MessageOutcome,
  PinnedAgent,
  ResolveInterruptCommand,
  RunInput,
} from './rules/run-input.ts';
import type { RunStatus } from './rules/status.ts';
import type { AgentRegistry } from './ports/agents.ts';
import type { SegmentStore } from './ports/history.ts';
import type { ToolDescription } from './ports/models.ts';
import type { AgentManifest, WorkflowDefinition } from '../schemas/types.generated.ts';

export type * from './ports/agents.ts';
export type * from './ports/history.ts';
export type * from './ports/models.ts';

/** Who asks. One key = tenant `default` until there are more; every store filters by `tenant`. */
export interface Caller {
  readonly tenant: string;
  /** Opaque, not personal, never a secret. */
  readonly principal: string;
  readonly scopes: readonly string[];
}

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

// --- runs and idempotency --------------------------------------------------------------------------------------------

export interface RunRow {
  readonly runId: string;
  readonly tenant: string;
  readonly workflowId: string;
  /** Whole start input: the reaper starts again from it. */
  readonly input: RunInput;
  readonly createdAtMs: number;
  /** Temporal run id of the first segment; undefined while the start is not confirmed. */
  readonly temporalRunId?: string;
  /** Decided once: the run is never started. */
  readonly startFailure?: StartFailure;
}

/** Why a run could not be started, and when that was decided. */
export interface StartFailure {
  readonly cause: string;
  readonly atMs: number;
}

export interface RunListItem {
  readonly runId: string;
  readonly workflowId: string;
  readonly status: RunStatus;
  readonly createdAtMs: number;
  readonly tags: readonly string[];
}

export interface IdempotencyClaim {
  /** Routed operation, e.g. `POST /v1/runs`. */
  readonly endpoint: string;
  readonly key: string;
  /** SHA-256 of the canonical body. */
  readonly requestDigest: string;
}

export interface StoredResponse {
  readonly status: number;
  readonly body: JsonValue;
}

export type ClaimOutcome =
  /** Go on, with what an earlier try of the key is bound to; `owner` completes or releases the claim. */
  | {
      readonly kind: 'claimed';
      readonly owner: string;
      readonly runId?: string;
      readonly interruptId?: string;
    }
  | { readonly kind: 'replay'; readonly response: StoredResponse }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'in-flight'; readonly retryAfterSeconds: number };

export interface RunStore {
  /**
   * One transaction: claims the idempotency key (if any) and inserts the run row as `pending` with its head. A key
   * whose earlier claim accepted a run that was never answered gives `claimed` with that `runId`: the caller goes on
   * with that run instead of the new one.
   */
  accept(run: Omit<RunRow, 'temporalRunId'>, claim?: IdempotencyClaim): Promise<ClaimOutcome>;
  /** Idempotent. Also sets the head's first cursor to the segment. False: the run has failed to start, and stays so. */
  markStarted(runId: string, temporalRunId: string): Promise<boolean>;
  /** The first failure stays; it is returned. Undefined when the run is started after all. */
  markStartFailed(runId: string, failure: StartFailure): Promise<StartFailure | undefined>;
  find(tenant: string, runId: string): Promise<RunRow | undefined>;
  /** For the inside (projector, activities): no tenant filter. */
  load(runId: string): Promise<RunRow | undefined>;
  /** Newest first. `cursor` is opaque; limit 1..200. */
  list(
    tenant: string,
    query: { status?: RunStatus; workflowId?: string; cursor?: string; limit: number },
  ): Promise<{ runs: readonly RunListItem[]; nextCursor?: string }>;
  /**
   * Runs accepted before `beforeMs` whose start is not confirmed and whose log is not closed, oldest first; those that
   * failed to start only while they have a head that does not say so yet.
   */
  unstarted(beforeMs: number, limit: number): Promise<readonly RunRow[]>;
  /** Every runId above `after` ('' = from the first) in ascending order, for the rebuild. */
  allRuns(after: string, limit: number): Promise<readonly string[]>;
}

/** Layer 1 (spec/01 §4.1) for operations other than the acceptance of a run. */
export interface IdempotencyStore {
  /** What the key holds for a request already, without claiming anything: an answer, another body, or a run. */
  find(
    tenant: string,
    claim: IdempotencyClaim,
  ): Promise<
    | Extract<ClaimOutcome, { kind: 'replay' | 'mismatch' }>
    | { readonly kind: 'accepted'; readonly runId: string }
    | undefined
  >;
  claim(tenant: string, claim: IdempotencyClaim, leaseMs: number): Promise<ClaimOutcome>;
  /** Stores a final response (2xx, non-retryable 4xx). No effect when `owner` lost the claim. */
  complete(
    tenant: string,
    claim: IdempotencyClaim,
    owner: string,
    response: StoredResponse,
  ): Promise<void>;
  /** Notes the interrupt that the key's answer is for; each later claim gives it. False: `owner` lost the claim. */
  bind(
    tenant: string,
    claim: IdempotencyClaim,
    owner: string,
    interruptId: string,
  ): Promise<boolean>;
  /** Ends the claim: one that is bound to a run or an interrupt stays so, any other is forgotten. */
  release(tenant: string, claim: IdempotencyClaim, owner: string): Promise<void>;
  /** Deletes records older than `beforeMs`; returns how many. */
  expire(beforeMs: number): Promise<number>;
}

// --- the log ---------------------------------------------------------------------------------------------------------

export interface LogRow {
  readonly runId: string;
  readonly sequence: number;
  readonly eventId: string;
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  /** eventId of the cause, as on the wire. */
  readonly causationId?: string;
  /** The cause as authored (`CausedBy`), kept for forks. */
  readonly causedBy?: CausedBy;
  /** JSON text, stored as it is: byte identity. */
  readonly payload: string;
  /** Clamped: never below that of the row before. */
  readonly timestampMs: number;
}

/** A row before the head lock gives it sequence and clamped timestamp. */
export type NewRow = Omit<LogRow, 'sequence'>;

export interface HistoryCursor {
  /** Segment that is being read. '' before the start is confirmed. */
  readonly temporalRunId: string;
  /** Last history event translated in that segment; 0 before the first. */
  readonly historyEventId: number;
  /** Page token for what follows; '' to read from the segment's start. */
  readonly token: string;
}

export interface Head extends HistoryCursor {
  readonly runId: string;
  readonly tenant: string;
  readonly nextSequence: number;
  readonly lastTimestampMs: number;
  readonly status: RunStatus;
  /** True after the terminal row: everything is refused. */
  readonly closed: boolean;
  readonly translateVersion: number;
  /** Owned by translate; null before the first append. */
  readonly translateState: JsonValue;
  /** Owned by the fold; null before the first append. */
  readonly snapshot: JsonValue;
  /** A code that stopped the projection (`history_undecodable`). */
  readonly problem?: string;
}

export interface AppendBatch {
  readonly runId: string;
  /** The cursor that the batch was translated behind; another stored one makes the append `stale`. */
  readonly behind: HistoryCursor;
  /** Where the log ended when the rows were told from it, deltas included; another end makes the append `stale`, too. */
  readonly seenSequence?: number;
  readonly cursor: HistoryCursor;
  readonly rows: readonly NewRow[];
  /** Recorded deltas of closed blocks: stored ones are skipped; a missing one is an error on the live path. */
  readonly closedBlocks: readonly string[];
  readonly status: RunStatus;
  readonly closed: boolean;
  readonly translateState: JsonValue;
  /** Called inside the transaction with the rows as they will be stored. Synchronous, pure. */
  readonly fold: (snapshot: JsonValue, rows: readonly LogRow[]) => JsonValue;
}

export type AppendOutcome =
  | { readonly kind: 'appended'; readonly head: Head }
  /** Somebody else moved the cursor, or the log's end where that matters. */
  | { readonly kind: 'stale'; readonly head: Head }
  | { readonly kind: 'closed'; readonly head: Head };

export interface NewDelta {
  readonly k: number;
  readonly row: NewRow;
}

export type DeltaOutcome =
  | {
      readonly kind: 'appended';
      readonly rows: readonly { k: number; sequence: number; timestampMs: number }[];
    }
  | {
      readonly kind: 'refused';
      readonly reason: 'no-head' | 'run-closed' | 'block-closed' | 'superseded';
    };

export interface LogStore {
  head(runId: string): Promise<Head | undefined>;
  /** Of the head no more than where the log ends: what is asked again and again must not carry the snapshot. */
  tail(runId: string): Promise<Pick<Head, 'nextSequence' | 'closed'> | undefined>;
  /** One transaction: lock head, check cursor, insert, move status, cursor and sequence together, notify. */
  append(batch: AppendBatch): Promise<AppendOutcome>;
  /** Ascending; `after` exclusive (-1 = from the start). */
  read(runId: string, query: { after: number; limit: number }): Promise<readonly LogRow[]>;
  /** Sequence of an eventId of this run. */
  sequenceOf(runId: string, eventId: string): Promise<number | undefined>;
  /** A closed run gets none: another process could read what this one could not, and nobody would take it back. */
  setProblem(runId: string, problem: string | undefined): Promise<void>;
  problems(limit: number): Promise<readonly { runId: string; problem: string }[]>;

  /** Same lock. Opens the block with the first call. A higher `try` supersedes lower ones. */
  appendDeltas(
    runId: string,
    activityId: string,
    tryNumber: number,
    deltas: readonly NewDelta[],
  ): Promise<DeltaOutcome>;
  /** Closes the block for ever and returns what it holds. Idempotent; a block never opened is closed empty. */
  closeBlock(runId: string, activityId: string): Promise<readonly LogRow[]>;
  storedDeltas(runId: string, activityId: string): Promise<readonly LogRow[]>;
  openBlocks(runId: string): Promise<readonly string[]>;

  /**
   * Rebuild: replaces head and rows of a run in one transaction. Refused (false) while a block is open, and when the
   * stored head is not any more where it was `seen`.
   */
  restore(head: Head, rows: readonly LogRow[], seen: Head | undefined): Promise<boolean>;

  /** Calls back after commits that added rows or moved a status, from any process. At most once per commit. */
  onChange(listener: (change: { runId: string; nextSequence: number }) => void): () => void;
  /** Calls back when the notification connection was lost and is there again: re-read what you watch. */
  onReconnect(listener: () => void): () => void;
}

/** Who wants which run now, who is alive, and how far the sweep got (design §3.4). */
export interface ProjectionStore {
  watch(runId: string, watcher: string, ttlMs: number): Promise<void>;
  unwatch(runId: string, watcher: string): Promise<void>;
  watched(runIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Renews this process's lease. */
  renewLease(holder: string, ttlMs: number): Promise<void>;
  /** Deletes one expired lease of another and returns its holder: the caller won it. */
  takeExpiredLease(): Promise<string | undefined>;
  releaseLease(holder: string): Promise<void>;
  openRuns(after: string, limit: number): Promise<readonly string[]>;
  sweepWatermark(): Promise<number | undefined>;
  setSweepWatermark(ms: number): Promise<void>;
}

// --- content ---------------------------------------------------------------------------------------

export interface ContentStore {
  /** Returns `sha256:<hex>` of the bytes. Idempotent. Throws HostError payload_too_large above 64 MiB. */
  put(tenant: string, bytes: Uint8Array): Promise<string>;
  /** Throws HostError content_missing. */
  get(tenant: string, hash: string): Promise<Uint8Array>;
}

// --- Temporal: history is read as src/ports/history.ts says --------------------------------------------------------------

export interface RunEngine {
  /** Starts the run's workflow; duplicates are rejected and count as success. Returns the first segment's id. */
  start(input: RunInput): Promise<{ temporalRunId: string }>;
  /**
   * Throws HostError with the code the workflow's validator gave (interrupt_not_found, interrupt_already_resolved,
   * interrupt_expired, …), run_state_conflict when the run is closed, service_unavailable after 5 s.
   */
  resolveInterrupt(
    runId: string,
    updateId: string,
    command: ResolveInterruptCommand,
  ): Promise<MessageOutcome>;
  /** An Update with a 2 s deadline, else Temporal's durable cancel request (`status: 'cancelling'`). A closed run: 'unchanged'. */
  cancel(runId: string, updateId: string, command: CancelRunCommand): Promise<MessageOutcome>;
  /** Throws HostError service_unavailable when the frontend does not answer within 2 s. */
  ping(): Promise<void>;
}

// --- what can be run ---------------------------------------------------------------------------------------------------

export interface CatalogAgent {
  readonly manifest: AgentManifest;
  readonly packName: string;
  readonly packVersion: string;
  readonly pinned: PinnedAgent;
  readonly degraded: readonly string[];
}

/** Everything of an agent that activities need, stored as content under `pinned.manifestHash` (JSON). */
export interface ResolvedAgent {
  readonly manifest: AgentManifest;
  readonly packName: string;
  readonly packVersion: string;
  readonly systemPrompt: string;
  readonly taskSchema?: JsonObject;
  readonly returnSchema?: JsonObject;
}

/** Definitions and agents of this process, loaded and validated at start. */
export interface Catalog {
  definition(tenant: string, workflowId: string): WorkflowDefinition | undefined;
  definitions(tenant: string): readonly WorkflowDefinition[];
  agent(tenant: string, agentId: string): CatalogAgent | undefined;
  /** Sorted by agentId. */
  agents(tenant: string): readonly CatalogAgent[];
  /** Ids of definitions that came from OPENWOP_FIXTURES_DIR. */
  fixtures(): readonly string[];
}

// --- tools, effects -----------------------------------------------------------------------------------------------------

/** A piece of progress of a running call. */
export interface ToolProgress {
  /** `stdout`, `stderr`, `log`, `partial_result` (text is JSON), `status`. */
  readonly channel: string;
  readonly text: string;
}

export interface ToolCallContext {
  readonly tenant: string;
  readonly runId: string;
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

/** Thrown with `sent: false` when the effect certainly did not leave the host. */
export interface ToolFailure {
  readonly sent: boolean;
}

export interface Tool extends ToolDescription {
  /** ms after an abort in which the tool may still say how it ended; absent: it is left at once. */
  readonly stopGraceMs?: number;
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

/** Identity of an effect (design §5): what it is, not which try performs it. */
export interface EffectIdentity {
  readonly tenant: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly visit: number;
  readonly toolId: string;
  readonly argsHash: string;
  readonly occurrence: number;
}

export type EffectState = 'claimed' | 'done' | 'failed-before-send' | 'failed-final' | 'in-doubt';

export interface EffectRow {
  readonly effectId: string;
  readonly identity: EffectIdentity;
  /** Node attempt that claimed last. */
  readonly attempt: number;
  readonly state: EffectState;
  readonly epoch: number;
  readonly leaseUntilMs: number;
  /** Content hash of the outcome (done) or of {code, message} (failed-final). */
  readonly outcomeHash?: string;
}

export type EffectClaim =
  /** Perform it under this epoch. */
  | {
      readonly kind: 'perform';
      readonly effectId: string;
      readonly epoch: number;
      /** A former sending may have happened: a failure of this one does not tell. A human's word has settled that. */
      readonly inDoubt: boolean;
    }
  | { readonly kind: 'done'; readonly effectId: string; readonly outcomeHash: string }
  | { readonly kind: 'failed'; readonly effectId: string; readonly outcomeHash: string }
  /** Claimed, lease still running elsewhere: try later. */
  | { readonly kind: 'busy'; readonly effectId: string; readonly leaseUntilMs: number }
  /** The lease ran out without a word: it may have happened. */
  | { readonly kind: 'in-doubt'; readonly effectId: string; readonly epoch: number }
  /**
   * It matches no row, its tool is not idempotent, and a human must know what stands: this visit has done or in-doubt
   * rows of the tool from an earlier node attempt, or the same call is in doubt.
   */
  | { readonly kind: 'differs'; readonly effectId: string; readonly why: 'attempt' | 'doubt' }
  | { readonly kind: 'run-closed' };

/** What a former claim left, for who will not perform it. */
export type EffectRecall = Extract<EffectClaim, { kind: 'done' | 'failed' | 'busy' | 'in-doubt' }>;

export interface EffectLedger {
  /**
   * Atomic claim, or the state that stands in its way. `again` is true when a former claim ended `failed-before-send`,
   * or the tool is idempotent and the former claim is in doubt.
   */
  claim(
    identity: EffectIdentity,
    attempt: number,
    options: { idempotent: boolean; leaseMs: number; force?: boolean },
  ): Promise<EffectClaim>;
  /**
   * What became of an effect, without a claim: undefined when nothing was performed under this identity. A claim whose
   * lease is over is in doubt from then on, also of an idempotent tool.
   */
  recall(identity: EffectIdentity): Promise<EffectRecall | undefined>;
  renew(effectId: string, epoch: number, leaseMs: number): Promise<boolean>;
  /** False when the epoch was lost: the result must not be used. */
  settle(
    effectId: string,
    epoch: number,
    state: 'done' | 'failed-before-send' | 'failed-final' | 'in-doubt',
    outcomeHash?: string,
  ): Promise<boolean>;
  ofRun(tenant: string, runId: string): Promise<readonly EffectRow[]>;
}

// --- page sessions --------------------------------------------------------------------------------------------------------

export interface PageSessionStore {
  /** Stores the hash of a one-time link for a run. */
  createLink(tenant: string, runId: string, linkHash: string, expiresAtMs: number): Promise<void>;
  /** Consumes it, once. */
  consumeLink(
    linkHash: string,
    nowMs: number,
  ): Promise<{ tenant: string; runId: string } | undefined>;
  createSession(
    tenant: string,
    runId: string,
    sessionHash: string,
    expiresAtMs: number,
  ): Promise<void>;
  findSession(
    sessionHash: string,
    nowMs: number,
  ): Promise<{ tenant: string; runId: string } | undefined>;
}

/** All stores of one database. */
export interface Stores {
  readonly runs: RunStore;
  readonly idempotency: IdempotencyStore;
  readonly log: LogStore;
  readonly projection: ProjectionStore;
  readonly segments: SegmentStore;
  readonly content: ContentStore;
  readonly effects: EffectLedger;
  readonly pageSessions: PageSessionStore;
  readonly agents: AgentRegistry;
  /** Throws HostError service_unavailable when the database does not answer within 2 s. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Kept for readers of results: what a recorded stream means to rebuild. */
export type { RecordedDeltas };
