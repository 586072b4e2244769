// What the inside asks of the outside: types only. Each port has one contract suite in test/contract/, run on every
// adapter. All times are ms epoch, all ids opaque strings. Every call that touches tenant data names the tenant.
import type { temporal } from '@temporalio/proto';
import type { CausedBy, RecordedDeltas } from './core/journal.ts';
import type { JsonObject, JsonValue } from './core/json.ts';
import type {
  CancelRunCommand,
  MessageOutcome,
  PinnedAgent,
  ResolveInterruptCommand,
  RunInput,
} from './core/run-input.ts';
import type { RunStatus } from './core/status.ts';
import type { AgentRegistry, RemoteTool } from './ports/agents.ts';
import type { AgentManifest, WorkflowDefinition } from './wire/types.generated.ts';

export type * from './ports/agents.ts';

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
  /** Go on; `owner` completes or releases the claim. */
  | { readonly kind: 'claimed'; readonly owner: string; readonly runId?: string }
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
  /** Idempotent. Also sets the head's first cursor to the segment. */
  markStarted(runId: string, temporalRunId: string): Promise<void>;
  find(tenant: string, runId: string): Promise<RunRow | undefined>;
  /** For the inside (projector, activities): no tenant filter. */
  load(runId: string): Promise<RunRow | undefined>;
  /** Newest first. `cursor` is opaque; limit 1..200. */
  list(
    tenant: string,
    query: { status?: RunStatus; workflowId?: string; cursor?: string; limit: number },
  ): Promise<{ runs: readonly RunListItem[]; nextCursor?: string }>;
  /** Runs accepted before `beforeMs` whose start is not confirmed, oldest first. */
  unstarted(beforeMs: number, limit: number): Promise<readonly RunRow[]>;
  /** Every runId above `after` ('' = from the first) in ascending order, for the rebuild. */
  allRuns(after: string, limit: number): Promise<readonly string[]>;
}

/** Layer 1 (spec/01 §4.1) for operations other than the acceptance of a run. */
export interface IdempotencyStore {
  /** What already stands against a request, without claiming anything: an answer, or another body. */
  find(
    tenant: string,
    claim: IdempotencyClaim,
  ): Promise<Extract<ClaimOutcome, { kind: 'replay' | 'mismatch' }> | undefined>;
  claim(tenant: string, claim: IdempotencyClaim, leaseMs: number): Promise<ClaimOutcome>;
  /** Stores a final response (2xx, non-retryable 4xx). No effect when `owner` lost the claim. */
  complete(
    tenant: string,
    claim: IdempotencyClaim,
    owner: string,
    response: StoredResponse,
  ): Promise<void>;
  /** Forgets the claim: the next request with the key runs anew. */
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
  /** Somebody else moved the cursor. */
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
  /** One transaction: lock head, check cursor, insert, move status, cursor and sequence together, notify. */
  append(batch: AppendBatch): Promise<AppendOutcome>;
  /** Ascending; `after` exclusive (-1 = from the start). */
  read(runId: string, query: { after: number; limit: number }): Promise<readonly LogRow[]>;
  /** Sequence of an eventId of this run. */
  sequenceOf(runId: string, eventId: string): Promise<number | undefined>;
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

  /** Rebuild: replaces head and rows of a run in one transaction. Refused (false) while a block is open. */
  restore(head: Head, rows: readonly LogRow[]): Promise<boolean>;

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

// --- segments, archive, content ---------------------------------------------------------------------------------------

export interface ContentStore {
  /** Returns `sha256:<hex>` of the bytes. Idempotent. Throws HostError payload_too_large above 64 MiB. */
  put(tenant: string, bytes: Uint8Array): Promise<string>;
  /** Throws HostError content_missing. */
  get(tenant: string, hash: string): Promise<Uint8Array>;
}

export interface Segment {
  readonly runId: string;
  readonly index: number;
  readonly temporalRunId: string;
  /** Content hash of the raw, still encoded history (protobuf temporal.api.history.v1.History); absent = not yet. */
  readonly archive?: string;
}

export interface SegmentStore {
  /** Idempotent on (runId, index); sets `archive` when given. */
  record(segment: Segment): Promise<void>;
  ofRun(runId: string): Promise<readonly Segment[]>;
  /** Closed segments that still lack their archive. */
  unarchived(limit: number): Promise<readonly Segment[]>;
}

// --- Temporal ---------------------------------------------------------------------------------------------------------

export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

export interface HistoryPage {
  /** Payloads that may hold carriers or step results are decoded by the codec; unreadable ones threw. */
  readonly events: readonly HistoryEvent[];
  /** '' when the segment is closed and everything was delivered. */
  readonly token: string;
}

export interface HistoryReader {
  /**
   * Events of one segment behind `token` ('' = from the start). `waitMs` 0: answers at once with what is there
   * (long poll with a 900 ms deadline, spec/07 §3.2); above 0: waits up to that for something new. May return events
   * at or below the cursor again: filter by eventId. Throws HostError history_undecodable, history_missing,
   * service_unavailable.
   */
  page(runId: string, temporalRunId: string, token: string, waitMs: number): Promise<HistoryPage>;
  /** Raw bytes of a whole closed segment, for the archive. */
  raw(runId: string, temporalRunId: string): Promise<Uint8Array>;
  /** The same events as `page` would give, from archived bytes. */
  decode(raw: Uint8Array): Promise<readonly HistoryEvent[]>;
  /** Runs closed since `sinceMs`, newest close time included, for the sweeper. */
  closedSince(sinceMs: number): Promise<{ runIds: readonly string[]; newestMs: number }>;
}

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

// --- models, tools, effects ---------------------------------------------------------------------------------------------

export type TranscriptItem =
  | { readonly role: 'system'; readonly text: string }
  | { readonly role: 'user'; readonly text: string; readonly trusted: boolean }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly calls: readonly { callId: string; toolId: string; arguments: JsonValue }[];
    }
  | {
      readonly role: 'tool';
      readonly callId: string;
      readonly toolId: string;
      readonly text: string;
    };

export interface ModelRequest {
  readonly provider: string;
  readonly model: string;
  /** The agent asking: scripts are chosen by it. */
  readonly agentId: string;
  readonly items: readonly TranscriptItem[];
  readonly tools: readonly ToolDescription[];
  /** Schema of the final structured output `{decision, confidence?, reasoning?}`. */
  readonly outputSchema: JsonObject;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** Stable over retries of one logical call, for providers that take an Idempotency-Key. */
  readonly idempotencyKey: string;
}

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface ModelResponse {
  /** Assistant text before a call or decision: the reasoning. The whole text, equal to the streamed pieces. */
  readonly reasoning: string;
  readonly kind: 'calls' | 'final' | 'refusal' | 'truncated';
  readonly calls: readonly { toolId: string; arguments: JsonValue }[];
  /** Final output text (JSON expected), when kind is `final`. */
  readonly final: string;
  readonly refusal?: string;
  readonly usage: ModelUsage;
  /** As stamped by the provider. */
  readonly model: string;
}

export interface Model {
  /**
   * One call. `onReasoning` gets pieces in order as they arrive and must not be awaited per token. Throws HostError:
   * model_unavailable, rate_limited (retryable), model_rejected_request, model_output_too_large. `signal` really
   * stops the request.
   */
  infer(
    request: ModelRequest,
    options: { signal: AbortSignal; onReasoning: (piece: string) => void },
  ): Promise<ModelResponse>;
}

export interface Models {
  /** Provider ids, for discovery. */
  providers(): readonly string[];
  /** Throws HostError model_not_configured. */
  choose(
    modelClass: string,
    override: { provider?: string; model?: string },
  ): { provider: string; model: string };
  get(provider: string): Model;
}

export interface ToolDescription {
  readonly toolId: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly idempotent: boolean;
  readonly timeoutMs: number;
  readonly transport: 'native' | 'http' | 'mcp';
  readonly safetyTier: 'pure' | 'read' | 'write';
  /** Present for a tool of an agent process: its calls are performed only where that agent is connected (design §5). */
  readonly remote?: RemoteTool;
}

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
      readonly again: boolean;
    }
  | { readonly kind: 'done'; readonly effectId: string; readonly outcomeHash: string }
  | { readonly kind: 'failed'; readonly effectId: string; readonly outcomeHash: string }
  /** Claimed, lease still running elsewhere: try later. */
  | { readonly kind: 'busy'; readonly effectId: string; readonly leaseUntilMs: number }
  /** The lease ran out without a word: it may have happened. */
  | { readonly kind: 'in-doubt'; readonly effectId: string; readonly epoch: number }
  /** A later node attempt asks for an effect that matches no row while this visit has done or in-doubt rows of the tool. */
  | { readonly kind: 'differs'; readonly effectId: string }
  | { readonly kind: 'run-closed' };

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
