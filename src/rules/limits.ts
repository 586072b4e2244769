// Every bound that more than one room must agree on, by name and with its unit. A bound that one room alone uses
// stands in that room.

/**
 * Values above this size (UTF-8 bytes of JSON) are kept in the content store and referred to by hash
 * (architecture §2.6).
 */
export const INLINE_VALUE_BYTES = 32 * 1024;
/** A carrier above this size is split over several commands (architecture §2.3). */
export const CARRIER_BYTES = 512 * 1024;
/**
 * What one workflow task puts on its commands, entries and inputs of steps together, before work that has time waits
 * for the next one. Temporal takes 2 MiB in one command and 4 MiB in all of a task's.
 */
export const TASK_BYTES = 512 * 1024;
/**
 * Activities of one run that are under way at once; more wait for one to end. Temporal refuses each workflow task that
 * would leave more than 2,000, and a run that ends seals streams and cancels children beside what is under way.
 */
export const MAX_PENDING_STEPS = 700;
/** Of them, those on an agent's queue: while nobody comes for those, everything else goes on. */
export const MAX_QUEUED_STEPS = 350;
/** All inputs of one node together: an agent's task, what an approval shows. */
export const NODE_INPUTS_BYTES = 256 * 1024;
/** Arguments of one model turn's calls together. */
export const TURN_ARGUMENTS_BYTES = 256 * 1024;
/** Outputs of a run: they stand in one entry. */
export const RUN_OUTPUTS_BYTES = 256 * 1024;
/** Variables, channels and outputs of all nodes that a run keeps: every segment carries them on. */
export const RUN_VALUES_BYTES = 1024 * 1024;
/** One channel, reduced. All of them together are among RUN_VALUES_BYTES. */
export const CHANNEL_BYTES = 256 * 1024;
/** What a segment is started with: the run's input and its state. */
export const SEGMENT_BYTES = 1792 * 1024;
/** Entries that ride on the start of the next segment; more go on a command of their own. */
export const SEGMENT_CARRIER_BYTES = 64 * 1024;
/** Largest request body the facade reads. Advertised as limits.maxRequestBodyBytes. */
export const REQUEST_BODY_BYTES = 1024 * 1024;
/** Largest file of a whole run (run-bundle.schema.json), as it is made and as it is read. */
export const RUN_BUNDLE_BYTES = 64 * 1024 * 1024;
/** Largest workflow definition: it travels in every segment's start input. */
export const DEFINITION_BYTES = 256 * 1024;
/**
 * Ceiling of node executions per run (capabilities.md §Engine-enforced limits `node-executions`). Advertised as
 * limits.maxNodeExecutions.
 */
export const MAX_NODE_EXECUTIONS = 1000;
/** Ceiling of a run's wall-clock duration in ms: one year. Advertised as limits.maxRunDurationMs. */
export const MAX_RUN_DURATION_MS = 365 * 24 * 3600 * 1000;
/** Retention is told in days, and counted in ms. */
export const DAY_MS = 24 * 3600 * 1000;
/**
 * Visits that a back edge may start when settings.maxLoopbackIterations is absent (workflow-definition.schema.json).
 */
export const DEFAULT_LOOPBACK_ITERATIONS = 5;
/** Model turns within one invocation; above it the invocation fails with `turn_limit_exceeded`. */
export const MAX_TURNS_PER_INVOCATION = 64;
/**
 * Tool calls that one model turn may ask for. Above it the model is told, once in an invocation, and then the invocation
 * fails with `tool_call_limit_exceeded`.
 */
export const MAX_CALLS_PER_TURN = 32;
/**
 * Repair turns after an invalid structured output (limits.schemaRounds, capabilities.md §Engine-enforced limits kind
 * `schema`).
 */
export const SCHEMA_ROUNDS = 2;
/** Human escalations within one visit of a node (architecture §9, `escalation_limit`). */
export const MAX_ESCALATIONS_PER_VISIT = 3;
/** Default time in ms that a question to a human stands: 7 days. A setting of the operator, and of a node. */
export const INTERRUPT_TIMEOUT_MS = 7 * 24 * 3600 * 1000;
/** People who vote on one question: each vote stands with it in every segment, and in the snapshot. */
export const MAX_VOTERS = 100;
/** Turns of one conversation between the first and the last. A node may permit fewer. */
export const MAX_CONVERSATION_TURNS = 200;
/** All turns of one conversation together. */
export const CONVERSATION_BYTES = 256 * 1024;
/** Default confidence threshold (RFC 0002 §F). */
export const DEFAULT_CONFIDENCE_THRESHOLD = 0.7;
/** Confidence of an orchestrator's decision below which a human is asked before anything comes of it (RFC 0039 §A). */
export const CONFIDENCE_FLOOR = 0.5;
/** Bound of a `summary` reasoning trace in tokens (RFC 0002 §B, agents.reasoning.tokenLimit). */
export const REASONING_TOKEN_LIMIT = 512;
/** Seconds that an Idempotency-Key record lives: 24 h (idempotency.md §Layer 1). */
export const IDEMPOTENCY_RETENTION_SECONDS = 24 * 3600;
/** How long in ms one request may hold its claim before another may take it over: above the 5 s of an Update. */
export const CLAIM_LEASE_MS = 15_000;
/** Activity heartbeat timeout in ms (architecture §4): the recovery bound of work inside an activity. */
export const HEARTBEAT_TIMEOUT_MS = 5_000;
/** Longest time in ms that clean-up waits for a cancelled activity to acknowledge (architecture §4). */
export const CANCELLATION_GRACE_MS = 3_000;
/** Most that one model call may give (reasoning, arguments, final output), in UTF-8 bytes. */
export const MODEL_OUTPUT_BYTES = 1024 * 1024;
/** Deepest nesting of objects and arrays in what a model says: what walks a value needs a stack for it. */
export const MODEL_VALUE_LEVELS = 128;
/** Longest time that one message skips in a rehearsal, in ms: a year. */
export const MAX_SKIP_MS = 366 * 24 * 3600 * 1000;
/** Stops of the clock on the way of one skip; there it stands. */
export const MAX_SKIP_STOPS = 1_000;
