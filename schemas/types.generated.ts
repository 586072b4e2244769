// Written by `npm run generate` from schemas/. Do not edit.
export interface AgentInventoryResponse {
  agents: AgentInventoryEntry[];
  total: number;
}
export interface AgentInventoryEntry {
  agentId: string;
  persona: string;
  label: string;
  modelClass: string;
  packName: string;
  packVersion: string;
  toolAllowlist: string[];
  hasHandoffSchemas: boolean;
  description?: string;
  memoryShape?: {
    scratchpad?: boolean;
    conversation?: boolean;
    longTerm?: boolean;
  };
  confidenceThreshold?: number;
  degraded?: string[];
  memoryDegraded?: boolean;
  degradedMemoryDimensions?: string[];
  roster?: {
    rosterId: string;
    persona: string;
    workflows: string[];
  }[];
}

export interface AgentManifest {
  agentId: string;
  persona: string;
  modelClass: 'reasoning' | 'writing' | 'coding' | 'research' | 'classification' | 'general';
  systemPrompt?: string;
  systemPromptRef?: string;
  evalSuiteRef?: string;
  role?: 'skill' | 'assistant';
  toolAllowlist?: string[];
  requiresCapabilities?: string[];
  memoryShape?: {
    scratchpad?: boolean;
    conversation?: boolean;
    longTerm?: boolean;
  };
  confidence?: {
    defaultThreshold?: number;
  };
  handoff?: {
    taskSchemaRef?: string;
    returnSchemaRef?: string;
  };
  label?: string;
  description?: string;
  promptLibraryRef?: string;
  promptOverrides?: {
    system?: unknown;
    user?: unknown;
    'few-shot'?: unknown;
    'schema-hint'?: unknown;
  };
}

export interface AgentScript {
  /**
   * @minItems 1
   * @maxItems 200
   */
  turns: [AgentScriptTurn, ...AgentScriptTurn[]];
}
export interface AgentScriptTurn {
  /**
   * Said aloud before the call or decision.
   */
  reasoning?: string;
  /**
   * The reasoning in exactly these pieces, in place of `reasoning`.
   *
   * @maxItems 10000
   */
  chunks?: string[];
  /**
   * Characters per piece of `reasoning`; absent: words.
   */
  chunkSize?: number;
  delayMsPerChunk?: number;
  /**
   * @minItems 1
   * @maxItems 1000
   */
  calls?: [AgentScriptCall, ...AgentScriptCall[]];
  final?: AgentScriptFinal;
  /**
   * Final output as text, in place of `final`: to be something else than a decision.
   */
  raw?: string;
  refusal?: string;
  truncated?: boolean;
  usage?: AgentScriptUsage;
  fault?: AgentScriptFault;
  /**
   * The first one that holds is played in place of this turn.
   *
   * @maxItems 100
   */
  cases?: AgentScriptCase[];
}
export interface AgentScriptCall {
  toolId: string;
  arguments: unknown;
}
export interface AgentScriptFinal {
  decision: unknown;
  confidence?: number;
  reasoning?: string;
}
export interface AgentScriptUsage {
  inputTokens: number;
  outputTokens: number;
}
export interface AgentScriptFault {
  kind: 'http' | 'disconnect' | 'nonsense' | 'oversize' | 'hang';
  /**
   * Tries of this call that fail before it works.
   */
  times: number;
  /**
   * For `http`; 503 when absent.
   */
  status?: number;
  retryAfterSeconds?: number;
}
export interface AgentScriptCase {
  /**
   * As in a template.
   */
  path: string;
  equals: string | number | boolean | null;
  turn: AgentScriptTurn;
}

export interface BuildPromoteRequest {
  /**
   * Part of new runs; 100 makes the build current, less lets it share them with the one that is.
   */
  percent?: number;
}

export interface Capabilities {
  protocolVersion: string;
  supportedEnvelopes: string[];
  schemaVersions: {
    [k: string]: number;
  };
  limits: {
    clarificationRounds: number;
    schemaRounds: number;
    envelopesPerTurn: number;
    maxNodeExecutions?: number;
    maxRunDurationMs?: number;
    maxLoopIterations?: number;
    maxBudgetTokens?: number;
    maxBudgetCostUsd?: number;
    maxRequestBodyBytes?: number;
    idempotencyAckTimeoutSec?: number;
  };
  protocolVersions?: string[];
  implementation?: {
    name: string;
    version: string;
    vendor: string;
  };
  engineVersion?: number;
  eventLogSchemaVersion?: number;
  supportedTransports?: ('rest' | 'mcp' | 'a2a' | 'grpc')[];
  configurable?: {
    [k: string]: {
      type?: string;
      min?: number;
      max?: number;
      description?: string;
      [k: string]: unknown;
    };
  };
  runtimeCapabilities?: string[];
  extensions?: {
    [k: string]: unknown;
  };
  fixtures?: string[];
  testing?: {
    mockProviders?: string[];
    testKeyPrefix?: string;
    [k: string]: unknown;
  };
  runs?: {
    pauseResume?: {
      supported: boolean;
      drainPolicies?: ('immediate' | 'drain-current-node')[];
      [k: string]: unknown;
    };
    [k: string]: unknown;
  };
  replay?: {
    supported: boolean;
    modes?: ('replay' | 'branch')[];
    [k: string]: unknown;
  };
  debugBundle?: {
    supported: boolean;
    [k: string]: unknown;
  };
  idempotency?: {
    supported: boolean;
    layer1RetentionSeconds?: number;
    layer2RetentionSeconds?: number;
    crossRegion?: string;
    [k: string]: unknown;
  };
  webhooks?: {
    supported: boolean;
    signatureAlgorithms?: string[];
    [k: string]: unknown;
  };
  observability?: {
    [k: string]: unknown;
  };
  auth?: {
    [k: string]: unknown;
  };
  agents?: {
    supported?: boolean;
    profile?: string;
    modelClasses?: (
      | 'reasoning'
      | 'tool-using'
      | 'chat'
      | 'code'
      | 'vision'
      | 'multimodal'
      | 'embedding'
      | 'classification'
      | 'retrieval'
    )[];
    orchestratorPattern?: string;
    memoryBackends?: 'long-term'[];
    orchestrator?: boolean;
    dispatch?: boolean;
    dispatchMapping?: boolean;
    subRunAttestation?: boolean;
    reasoning?: {
      verbosity?: 'summary' | 'full' | 'off';
      tokenLimit?: number;
      streaming?: boolean;
    };
    manifestRuntime?: {
      supported: boolean;
      handoffValidation?: boolean;
      installScope?: 'host' | 'tenant';
    };
    liveRuntime?: {
      supported: boolean;
      structuredOutput?: boolean;
      confidenceEscalation?: boolean;
      sources?: ('workflow-node' | 'run-api' | 'chat-mention')[];
    };
    reasoningEvents?: boolean;
    toolEvents?: boolean;
    handoffEvents?: boolean;
    decisionEvents?: boolean;
    [k: string]: unknown;
  };
  aiProviders?: {
    supported?: string[];
    byok?: string[];
    [k: string]: unknown;
  };
  providerUsage?: {
    supported: boolean;
    costEstimates?: boolean;
    currency?: string;
    [k: string]: unknown;
  };
  prompts?: {
    supported: boolean;
    endpointsSupported?: boolean;
    templateKinds?: string[];
    variableSources?: string[];
    maxTemplateBytes?: number;
    observability?: 'off' | 'hashed' | 'full';
    packsSupported?: boolean;
    mutableLibrary?: boolean;
    library?: {
      [k: string]: unknown;
    };
    defaults?: {
      [k: string]: unknown;
    };
    agentBindings?: boolean;
  };
  toolHooks?: {
    supported: boolean;
    prePostEvents?: boolean;
    perToolAuthorization?: boolean;
    perToolRateLimit?: boolean;
    [k: string]: unknown;
  };
  envelopes?: {
    [k: string]: unknown;
  };
  /**
   * The families once more, for readers of the older layout (architecture §9).
   */
  capabilities?: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}

export interface CohortCreateRequest {
  select: CohortSelection;
  change?: CohortChange;
  /**
   * Members that are under way at once. Default 4.
   */
  parallel?: number;
  /**
   * Longest time of one fork. Default 600000.
   */
  memberTimeoutMs?: number;
}
export interface CohortSelection {
  workflowId?: string;
  status?: 'completed' | 'failed' | 'cancelled';
  tag?: string;
  sessionId?: string;
  /**
   * Accepted at this time or later.
   */
  from?: string;
  /**
   * Accepted before this time.
   */
  until?: string;
  /**
   * So many of them. Default 50.
   */
  last?: number;
}
export interface CohortChange {
  /**
   * Of the worker, and nothing beside it: each run is replayed by its code, whatever build takes new runs.
   */
  build?: string;
  /**
   * By agentId, by the last part of one, or by the node that invokes it.
   */
  agents?: {
    [k: string]: {
      systemPrompt?: string;
      /**
       * The version that the host has now.
       */
      packVersion?: string;
    };
  };
  /**
   * Over that of each run.
   */
  configurable?: {
    [k: string]: unknown;
  };
}

export interface Cohort {
  cohortId: string;
  state: 'running' | 'cancelling' | 'completed' | 'cancelled';
  /**
   * replay: by the code of this build, or of the one that is named, and nothing else is another.
   */
  mode: 'replay' | 'branch';
  createdAt: string;
  endedAt?: string;
  select: CohortShownSelection;
  change: CohortChange;
  parallel: number;
  memberTimeoutMs: number;
  /**
   * Picked runs.
   */
  members: number;
  /**
   * Those that have come to an end.
   */
  settled: number;
  totals: CohortTotals;
  before: CohortUse;
  after: CohortUse1;
  /**
   * One page of members. Absent in lists.
   */
  results?: CohortMemberResult[];
  /**
   * `from` of the next page; absent: it is the last.
   */
  nextFrom?: number;
  leftOut?: CohortLeftOut;
  /**
   * Why what was asked for cannot be read: defaults are in its place, and no fork is made by it.
   */
  unreadable?: {
    code: string;
    message: string;
  };
}
export interface CohortShownSelection {
  workflowId?: string;
  status?: 'completed' | 'failed' | 'cancelled';
  tag?: string;
  sessionId?: string;
  /**
   * Accepted at this time or later.
   */
  from?: string;
  /**
   * Accepted before this time.
   */
  until?: string;
  /**
   * So many of them. Default 50.
   */
  last: number;
}
export interface CohortTotals {
  same: number;
  diverged: number;
  'outcome-changed': number;
  asks: number;
  failed: number;
  'source-missing': number;
  /**
   * The fork's log, or its source's, is too long to be compared.
   */
  'not-compared': number;
  'not-finished': number;
}
export interface CohortUse {
  inputTokens: number;
  outputTokens: number;
  usd?: number;
}
export interface CohortUse1 {
  inputTokens: number;
  outputTokens: number;
  usd?: number;
}
export interface CohortMemberResult {
  position: number;
  sourceRunId: string;
  /**
   * Absent: no fork was made.
   */
  forkRunId?: string;
  /**
   * Absent: it waits, or is under way.
   */
  outcome?:
    | 'same'
    | 'diverged'
    | 'outcome-changed'
    | 'asks'
    | 'failed'
    | 'source-missing'
    | 'not-compared'
    | 'not-finished';
  error?: {
    code: string;
    message: string;
  };
  before?: CohortSide;
  after?: {
    status: string;
    durationMs?: number;
    inputTokens?: number;
    outputTokens?: number;
    usd?: number;
  };
  /**
   * Where the fork went apart first, and why.
   */
  divergence?: {
    seq: number;
    cause: string;
    overlay?: string;
    /**
     * Of a fork by a build of the worker.
     */
    build?: {
      buildId: string;
      /**
       * Whose worker performed the source's last task. Absent: nobody knows it.
       */
      sourceBuildId?: string;
    };
    nodeId?: string;
    nodeName?: string;
    type?: string;
  };
  /**
   * What came out otherwise. Values are the beginnings of their JSON texts.
   */
  changes?: CohortOutcomeChange[];
  /**
   * What it asks that nobody answered in its source; nobody was asked.
   */
  asks?: {
    nodeId: string;
    kind: string;
    /**
     * The beginning of what is asked, as JSON text.
     */
    data: string;
  };
  /**
   * Why its report cannot be read: what it holds is left out.
   */
  unreadable?: {
    code: string;
    message: string;
  };
}
export interface CohortSide {
  status: string;
  durationMs?: number;
  inputTokens?: number;
  outputTokens?: number;
  usd?: number;
}
export interface CohortOutcomeChange {
  /**
   * Absent: of the run as a whole.
   */
  nodeId?: string;
  /**
   * Of the node.
   */
  visit?: number;
  pointer: string;
  before?: string;
  after?: string;
}
export interface CohortLeftOut {
  runs: number;
  /**
   * The newest of them, at most 20.
   */
  runIds: string[];
}

export interface DebugBundle {
  bundleVersion: string;
  generatedAt: string;
  host: {
    name: string;
    version: string;
    vendor?: string;
  };
  /**
   * A RunSnapshot.
   */
  run: {
    runId: string;
    workflowId: string;
    status:
      | 'pending'
      | 'running'
      | 'paused'
      | 'waiting-approval'
      | 'waiting-input'
      | 'waiting-external'
      | 'cancelling'
      | 'completed'
      | 'failed'
      | 'cancelled';
    [k: string]: unknown;
  };
  events: RunEventDoc[];
  spans: DebugSpan[];
  metrics: {
    openwopCost: {
      [k: string]: unknown;
    } | null;
    nodeCount: number;
    eventCount: number;
  };
  redactionApplied: boolean;
  redactionMode: 'mask' | 'omit' | 'hash' | 'passthrough';
  truncated?: true;
  truncatedReason?: string;
}
export interface RunEventDoc {
  eventId: string;
  runId: string;
  type: string;
  payload: unknown;
  timestamp: string;
  sequence: number;
  nodeId?: string;
  causationId?: string;
  schemaVersion?: number;
  engineVersion?: string;
  [k: string]: unknown;
}
export interface DebugSpan {
  name: string;
  spanId: string;
  parentSpanId: string | null;
  startedAt: string;
  endedAt: string | null;
  attributes: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}

export interface ErrorEnvelope {
  error: string;
  message: string;
  details?: {
    [k: string]: unknown;
  };
}

export interface EventsPollResponse {
  events: RunEventDoc[];
  isComplete: boolean;
  runId: string;
  lastEventSeq: number;
  runStatus:
    | 'pending'
    | 'running'
    | 'paused'
    | 'waiting-approval'
    | 'waiting-input'
    | 'waiting-external'
    | 'cancelling'
    | 'completed'
    | 'failed'
    | 'cancelled';
  isTerminal: boolean;
  [k: string]: unknown;
}
export interface InterruptResolveRequest {
  resumeValue: unknown;
  interruptId?: string;
}

export type ApprovalAction =
  | string
  | {
      action: string;
      label?: string;
      /**
       * What the answer does to the step: `continue`, done; `route`, done, and only edges with a condition that holds lead on; `end`, declined; `ask-again`, the question stays open. An answer of the protocol has its own, and takes no other. `refine` takes every one but `continue`. `route` is refused without an edge with a condition, and with a quorum.
       */
      effect?: 'continue' | 'route' | 'end' | 'ask-again';
    };

export interface NodeKindConfigs {
  'core.start': StartConfig;
  'core.end': EndConfig;
  'core.noop': NoopConfig;
  'core.identity': IdentityConfig;
  'core.conditional': ConditionalConfig;
  'core.fail': FailConfig;
  'core.delay': DelayConfig;
  'core.setVariable': SetVariableConfig;
  'core.channelWrite': ChannelWriteConfig;
  'core.approvalGate': ApprovalGateConfig;
  'core.clarificationGate': ClarificationGateConfig;
  'core.conversationGate': ConversationGateConfig;
  'core.agent': AgentNodeConfig;
  'conformance.requiresMissing': RequiresMissingConfig;
  'core.subWorkflow': SubWorkflowConfig;
  'core.conformance.mock-agent': MockAgentConfig;
  'core.orchestrator.supervisor': SupervisorConfig;
  'core.dispatch': DispatchConfig;
}
export interface StartConfig {
  [k: string]: unknown;
}
export interface EndConfig {
  [k: string]: unknown;
}
export interface NoopConfig {
  [k: string]: unknown;
}
export interface IdentityConfig {
  [k: string]: unknown;
}
export interface ConditionalConfig {
  [k: string]: unknown;
}
export interface FailConfig {
  code?: string;
  message?: string;
  [k: string]: unknown;
}
export interface DelayConfig {
  ms?: number;
  durationMs?: number;
  delayMs?: number;
  [k: string]: unknown;
}
export interface SetVariableConfig {
  variableName: string;
  value?: unknown;
  [k: string]: unknown;
}
export interface ChannelWriteConfig {
  channelName: string;
  reducer?: string;
  ttlMs?: number;
  value?: unknown;
  [k: string]: unknown;
}
export interface ApprovalGateConfig {
  title?: string;
  description?: string;
  /**
   * @minItems 1
   */
  actions?: [ApprovalAction, ...ApprovalAction[]];
  /**
   * Votes for it that a quorum needs. Above 1 it is refused outside test mode: votes cannot be told apart.
   */
  requiredApprovals?: number;
  /**
   * How many votes against it decline. It is refused without `requiredApprovals` above 1.
   */
  rejectionPolicy?: 'single-veto' | 'majority';
  /**
   * Who is meant, as clients may show it. A list with an entry is refused outside test mode: people cannot be told apart.
   */
  approversList?: string[];
  /**
   * It has no effect, and is refused but in definitions made for tests, in test mode.
   */
  profile?: string;
  timeoutMs?: number;
  [k: string]: unknown;
}
export interface ClarificationGateConfig {
  /**
   * @minItems 1
   * @maxItems 50
   */
  questions: [
    {
      id: string;
      question: string;
      schema?: {
        [k: string]: unknown;
      };
      [k: string]: unknown;
    },
    ...{
      id: string;
      question: string;
      schema?: {
        [k: string]: unknown;
      };
      [k: string]: unknown;
    }[],
  ];
  timeoutMs?: number;
  title?: string;
  [k: string]: unknown;
}
export interface ConversationGateConfig {
  title?: string;
  prompt?: string;
  agentId?: string;
  turnSchema?: {
    [k: string]: unknown;
  };
  outcomeSchema?: {
    [k: string]: unknown;
  };
  maxTurns?: number;
  timeoutMs?: number;
  lifecycle?: 'open-exchange-close';
  mockAutoResume?: boolean;
  turnCount?: number;
  [k: string]: unknown;
}
export interface AgentNodeConfig {
  escalationTimeoutMs?: number;
  [k: string]: unknown;
}
export interface RequiresMissingConfig {
  [k: string]: unknown;
}
export interface SubWorkflowConfig {
  workflowId: string;
  waitForCompletion?: true;
  onChildFailure?: 'fail-parent' | 'absorb';
  /**
   * child variable <- parent variable
   */
  inputMapping?: {
    [k: string]: string;
  };
  /**
   * parent variable <- child variable
   */
  outputMapping?: {
    [k: string]: string;
  };
  propagateCancellation?: boolean;
  timeoutMs?: number;
  [k: string]: unknown;
}
export interface MockAgentConfig {
  agentId?: string;
  mockReasoning?: true | MockReasoning;
  /**
   * @maxItems 32
   */
  mockToolCalls?: MockToolCall[];
  mockHandoff?: MockHandoff;
  mockDecision?: MockDecision;
  mockConfidence?: number;
}
export interface MockReasoning {
  summary: string;
  trace?: string;
  tokenCount?: number;
  /**
   * @maxItems 256
   */
  streamChunks?: string[];
}
export interface MockToolCall {
  toolId: string;
  arguments?: unknown;
  result?: unknown;
  error?: {
    error: string;
    message: string;
  };
  durationMs?: number;
}
export interface MockHandoff {
  toAgentId: string;
  reason?: string;
  context?: unknown;
}
export interface MockDecision {
  decision: unknown;
  confidence?: number;
  reasoning?: string;
}
export interface SupervisorConfig {
  escalationTimeoutMs?: number;
  /**
   * @minItems 1
   * @maxItems 256
   */
  workerIds?: [string, ...string[]];
  agentId?: string;
  mockConfidence?: number;
  mockPendingDecision?: {
    [k: string]: unknown;
  };
  mockDispatchPlan?: {
    [k: string]: unknown;
  }[];
  mockDecisions?: {
    [k: string]: unknown;
  }[];
  [k: string]: unknown;
}
export interface DispatchConfig {
  askUserRouting?: 'conversation' | 'clarification' | 'auto';
  workerDispatchModel?: 'child-run';
  fanOutPolicy?: 'sequential' | 'reject' | 'parallel';
  joinPolicy?: {
    mode: 'wait-all' | 'quorum' | 'first' | 'race';
    quorum?: number;
    onChildFailure?: 'collect' | 'fail-fast' | 'absorb';
  };
  maxConcurrency?: number;
  iterationCap?: number;
  /**
   * child variable <- parent variable
   */
  inputMapping?: {
    [k: string]: string;
  };
  /**
   * parent variable <- child variable
   */
  outputMapping?: {
    [k: string]: string;
  };
  /**
   * by worker: in the place of inputMapping
   */
  perWorkerInputMappings?: {
    [k: string]: {
      [k: string]: string;
    };
  };
  /**
   * by worker: in the place of outputMapping
   */
  perWorkerOutputMappings?: {
    [k: string]: {
      [k: string]: string;
    };
  };
}

export interface NodeSettings {
  retry?: {
    maxAttempts?: number;
    initialDelayMs?: number;
    backoff?: number;
    maxDelayMs?: number;
  };
  timeoutMs?: number;
  [k: string]: unknown;
}

export interface OpensentienceAgent {
  $schema?: string;
  id: string;
  /**
   * Absent: 0.0.0.
   */
  version?: string;
  name?: string;
  description?: string;
  manifest_version?: 1;
  /**
   * Where the agent comes from. Not fetched.
   */
  source?: {
    [k: string]: unknown;
  };
  /**
   * How the agent is started where `launch` does not say it. command, release: an executable, in the agent's folder or on PATH, with arguments behind it if no such file is there; mix_task: a task of mix.
   */
  entrypoint?: {
    type: 'command' | 'release' | 'mix_task';
    value: string;
    [k: string]: unknown;
  };
  /**
   * What the agent speaks; hello and registration are authoritative.
   *
   * @maxItems 256
   */
  capabilities?: string[];
  /**
   * What the agent asks for. The host enforces none of it: an agent with a permission that policy.acknowledgedPermissions does not name is neither started nor let in.
   *
   * @maxItems 256
   */
  permissions?: string[];
  homepage_url?: string;
  repository_url?: string;
  /**
   * For display; registration is authoritative.
   */
  tool_summary?: {
    [k: string]: unknown;
  };
  /**
   * Absent: as `entrypoint` says; without either the agent is started by hand and attaches with a minted token.
   */
  launch?: {
    /**
     * With a slash relative to the agent's folder, else looked up on PATH.
     */
    command: string;
    /**
     * @maxItems 256
     */
    args?: string[];
    env?: {
      [k: string]: string;
    };
    /**
     * Names of Core's variables that the agent gets besides PATH, HOME, LANG and TMPDIR.
     *
     * @maxItems 256
     */
    inheritEnv?: string[];
  };
  restart?: {
    /**
     * Absent: always.
     */
    policy?: 'always' | 'on-failure' | 'never';
    firstDelayMs?: number;
    maxDelayMs?: number;
    /**
     * So many exits within that time: the agent is not started again.
     */
    crashLoop?: {
      exits: number;
      withinMs: number;
    };
  };
  limits?: {
    /**
     * Resident memory of the agent's process group; above it the group is ended.
     */
    memoryBytes?: number;
    openFiles?: number;
    /**
     * CPU time of each process of the agent.
     */
    cpuSeconds?: number;
    maxInflightRequests?: number;
  };
  /**
   * Absent: a human decides on each call of a tool that has side effects or declares requires_directive; a tool has them unless it declares side_effects: false, or tools says so.
   */
  policy?: {
    sideEffects?: 'allow' | 'ask' | 'deny';
    directives?: 'allow' | 'ask' | 'deny';
    /**
     * Permissions of the agent that the operator gives it, letter for letter, knowing that the host does not enforce their bounds.
     *
     * @maxItems 256
     */
    acknowledgedPermissions?: string[];
    /**
     * By tool name, without the agent's id.
     */
    tools?: {
      [k: string]: OpensentienceToolPolicy;
    };
  };
  /**
   * Sent with every call (seed 004 §4.3.1). No secrets.
   */
  context?: {
    project_root?: string;
    /**
     * @maxItems 256
     */
    resource_paths?: string[];
  };
  [k: string]: unknown;
}
export interface OpensentienceToolPolicy {
  approval?: 'allow' | 'ask' | 'deny';
  /**
   * The operator's word above the tool's own. Absent: as the tool declares; a tool that declares nothing has them.
   */
  sideEffects?: boolean;
  /**
   * Repeats with one idempotency key have one effect. Absent: as the tool's capabilities declare.
   */
  idempotent?: boolean;
  timeoutMs?: number;
  /**
   * Longest wait for a process that has the agent. Absent: one hour.
   */
  waitMs?: number;
  maxInputBytes?: number;
  maxOutputBytes?: number;
}

export interface OpenSentienceEnvelope {
  v: number;
  type: string;
  id: string;
  ts: string;
  payload: {
    [k: string]: unknown;
  };
  in_reply_to?: string;
  request_id?: string;
  correlation_id?: string;
  causation_id?: string;
  actor?: OpenSentienceActor;
  error?: OpenSentienceError;
  [k: string]: unknown;
}
export interface OpenSentienceActor {
  type: 'human' | 'agent' | 'system';
  id: string;
  display?: string;
  [k: string]: unknown;
}
export interface OpenSentienceError {
  code: string;
  message: string;
  details?: {
    [k: string]: unknown;
  };
  retryable?: boolean;
  where?: string;
  debug?: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}

export interface OpenSentiencePayloads {
  'agent.hello': AgentHelloPayload;
  'agent.tools.register': AgentToolsRegisterPayload;
  'agent.tools.unregister': AgentToolsUnregisterPayload;
  'agent.tool.stream': AgentToolStreamPayload;
  'agent.tool.result': AgentToolResultPayload;
  'agent.tool.cancel_ack': AgentToolCancelAckPayload;
  'agent.heartbeat': AgentHeartbeatPayload;
  'agent.pong': AgentPongPayload;
  'agent.goodbye': AgentGoodbyePayload;
  'agent.error': AgentErrorPayload;
  'declared-tool': DeclaredAgentTool;
}
export interface AgentHelloPayload {
  session_token: string;
  agent_id: string;
  agent_version: string;
  manifest_hash?: string;
  protocol: AgentProtocol;
  sdk?: AgentSdk;
  [k: string]: unknown;
}
export interface AgentProtocol {
  /**
   * @maxItems 64
   */
  supported_versions: number[];
  /**
   * @maxItems 64
   */
  capabilities: string[];
  [k: string]: unknown;
}
export interface AgentSdk {
  name: string;
  version: string;
  [k: string]: unknown;
}
export interface AgentToolsRegisterPayload {
  /**
   * @maxItems 1024
   */
  tools: AgentToolOffer[];
  replace?: boolean;
  [k: string]: unknown;
}
export interface AgentToolOffer {
  tool_id: string;
  [k: string]: unknown;
}
export interface AgentToolsUnregisterPayload {
  /**
   * @maxItems 4096
   */
  tool_ids: string[];
  [k: string]: unknown;
}
export interface AgentToolStreamPayload {
  call_id: string;
  seq: number;
  channel: 'stdout' | 'stderr' | 'log' | 'partial_result' | 'status';
  data: {
    text?: string;
    json?: {
      [k: string]: unknown;
    };
    [k: string]: unknown;
  };
  done?: boolean;
  [k: string]: unknown;
}
export interface AgentToolResultPayload {
  call_id: string;
  status: 'succeeded' | 'failed' | 'canceled';
  output?: {
    [k: string]: unknown;
  };
  error?: OpenSentienceError;
  started_at?: string;
  finished_at?: string;
  metrics?: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface AgentToolCancelAckPayload {
  call_id: string;
  accepted: boolean;
  note?: string;
  [k: string]: unknown;
}
export interface AgentHeartbeatPayload {
  session_id: string;
  uptime_ms: number;
  inflight_calls: number;
  status: 'ok' | 'degraded' | 'unhealthy';
  details?: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface AgentPongPayload {
  [k: string]: unknown;
}
export interface AgentGoodbyePayload {
  reason?: string;
  [k: string]: unknown;
}
export interface AgentErrorPayload {
  [k: string]: unknown;
}
export interface DeclaredAgentTool {
  tool_id: string;
  name: string;
  description: string;
  input_schema: {
    [k: string]: unknown;
  };
  output_schema?: {
    [k: string]: unknown;
  };
  /**
   * @maxItems 64
   */
  capabilities?: string[];
  side_effects?: boolean;
  requires_directive?: boolean;
  /**
   * @maxItems 64
   */
  tags?: string[];
  [k: string]: unknown;
}

export type OpenSentienceStatus =
  | 'connected'
  | 'draining'
  | 'starting'
  | 'waiting'
  | 'backing-off'
  | 'crash-loop'
  | 'stopped'
  | 'refused'
  | 'absent';
export type OpenSentienceHealth = 'ok' | 'degraded' | 'unhealthy' | 'silent';

export interface OpenSentienceOperations {
  agents?: OpenSentienceAgentList;
  agent?: OpenSentienceAgentDetail;
  audit?: OpenSentienceAudit;
  attachment?: OpenSentienceAttachment;
}
export interface OpenSentienceAgentList {
  agents: OpenSentienceAgentSummary[];
}
export interface OpenSentienceAgentSummary {
  agentId: string;
  name?: string;
  version?: string;
  status: OpenSentienceStatus;
  health?: OpenSentienceHealth;
  toolCount: number;
  inFlight: number;
  queued: number;
  instances: OpenSentienceInstance[];
}
export interface OpenSentienceInstance {
  instanceId: string;
  coreHost: string;
  socket: string;
  launch: 'process' | 'attach';
  status: OpenSentienceStatus;
  version: string;
  restarts: number;
  /**
   * Absent: it asks for none.
   */
  permissions?: OpenSentiencePermission[];
  lastExit?: {
    at: string;
    reason: string;
  };
  session?: OpenSentienceSession;
}
export interface OpenSentiencePermission {
  permission: string;
  state: 'acknowledged' | 'refused';
}
export interface OpenSentienceSession {
  sessionId: string;
  agentVersion: string;
  sdk?: {
    name: string;
    version: string;
  };
  transport: 'unix' | 'tcp';
  attached: boolean;
  pid?: number;
  state: 'ready' | 'draining';
  health: OpenSentienceHealth;
  connectedAt: string;
  lastHeartbeatAt?: string;
  uptimeMs?: number;
  manifestMatches?: boolean;
  inFlight: number;
  queued: number;
  bytesIn: number;
  bytesOut: number;
}
export interface OpenSentienceAgentDetail {
  agentId: string;
  name?: string;
  version?: string;
  status: OpenSentienceStatus;
  health?: OpenSentienceHealth;
  toolCount: number;
  inFlight: number;
  queued: number;
  instances: OpenSentienceInstance[];
  tools: OpenSentienceTool[];
  calls: OpenSentienceCall[];
  metrics: OpenSentienceToolMetrics[];
}
export interface OpenSentienceTool {
  toolId: string;
  name: string;
  description: string;
  inputSchema: {
    [k: string]: unknown;
  };
  outputSchema?: {
    [k: string]: unknown;
  };
  capabilities: string[];
  sideEffects: boolean;
  requiresDirective: boolean;
  tags: string[];
  approval: 'none' | 'ask' | 'deny';
  timeoutMs: number;
  waitMs: number;
  maxInputBytes: number;
  maxOutputBytes: number;
}
export interface OpenSentienceCall {
  callId: string;
  toolId: string;
  runId: string;
  instanceId: string;
  state: 'queued' | 'in-flight' | 'canceling';
  since: string;
}
export interface OpenSentienceToolMetrics {
  toolId: string;
  calls: number;
  succeeded: number;
  failed: number;
  canceled: number;
  unanswered: number;
  meanMs: number;
  maxMs: number;
}
export interface OpenSentienceAudit {
  entries: OpenSentienceAuditEntry[];
  nextBefore?: number;
}
export interface OpenSentienceAuditEntry {
  position: number;
  at: string;
  instanceId: string;
  agentId?: string;
  sessionId?: string;
  kind: string;
  details: {
    [k: string]: unknown;
  };
}
export interface OpenSentienceAttachment {
  agentId: string;
  socket: string;
  token: string;
  expiresAt: string;
}

export type BundledStimulus =
  | {
      kind: 'step';
      activityId: string;
      outcome: BundledOutcome;
    }
  | {
      kind: 'timer';
      deadlineMs: number;
    }
  | {
      kind: 'message';
      update: string;
      updateId: string;
      message: unknown;
    }
  | {
      kind: 'child-ended';
      childRunId: string;
    }
  | {
      kind: 'cancel-requested';
    };
export type BundledOutcome =
  | {
      kind: 'completed';
      result: {
        output: unknown;
        events: BundledEvent[];
        deltas?: {
          [k: string]: unknown;
        };
      };
    }
  | {
      kind: 'failed';
      code: string;
      message: string;
      details?: unknown;
    }
  | {
      kind: 'timed-out';
      type: string;
    }
  | {
      kind: 'cancelled';
    };
export type BundledCause =
  | string
  | {
      runId: string;
      key: string;
    };

export interface RunBundle {
  /**
   * Of the canonical JSON (RFC 8785) of everything else.
   */
  checksum: string;
  exportedAt: string;
  format: 'openwop-temporal.run-bundle';
  formatVersion: 1;
  host: {
    name: string;
    version: string;
    vendor?: string;
  };
  versions: {
    engine: number;
    eventLog: number;
    translate: number;
    revision: number;
    temporalSdk: string;
    node: string;
  };
  redaction: {
    redactionApplied: boolean;
    redactionMode: 'mask' | 'omit' | 'hash' | 'passthrough';
    /**
     * Variables declared sensitive: their values are not in the file.
     */
    withheld: string[];
  };
  /**
   * A RunSnapshot.
   */
  run: {
    runId: string;
    workflowId: string;
    status:
      | 'pending'
      | 'running'
      | 'paused'
      | 'waiting-approval'
      | 'waiting-input'
      | 'waiting-external'
      | 'cancelling'
      | 'completed'
      | 'failed'
      | 'cancelled';
    [k: string]: unknown;
  };
  input: BundledInput;
  manifests: {
    agentId: string;
    manifestHash: string;
    /**
     * Manifest, prompt and schemas as pinned when the run began.
     */
    resolved: {
      [k: string]: unknown;
    };
  }[];
  recording: {
    batches: BundledBatch[];
    entries: BundledEntry[];
  };
}
export interface BundledInput {
  runId: string;
  tenant: string;
  subject: {
    subjectId: string;
    tenant?: string;
    issuer?: string;
    lane?: string;
    kind?: string;
    [k: string]: unknown;
  };
  idSeed: string;
  translateVersion: number;
  era: number;
  header: {
    sessionId: string;
    correlationId: string;
    parentRunId?: string;
    [k: string]: unknown;
  };
  definition: {
    id: string;
    nodes: {
      [k: string]: unknown;
    }[];
    edges: {
      [k: string]: unknown;
    }[];
    variables: {
      [k: string]: unknown;
    }[];
    settings: {
      [k: string]: unknown;
    };
    [k: string]: unknown;
  };
  source: 'workflow-node' | 'run-api' | 'chat-mention';
  message?: {
    [k: string]: unknown;
  };
  variables: {
    [k: string]: unknown;
  };
  configurable: {
    [k: string]: unknown;
  };
  tags?: string[];
  metadata?: {
    [k: string]: unknown;
  };
  agents: {
    [k: string]: {
      [k: string]: unknown;
    };
  };
  limits: {
    maxNodeExecutions: number;
    maxRunDurationMs: number;
    interruptTimeoutMs: number;
    [k: string]: unknown;
  };
  policy: {
    [k: string]: unknown;
  };
  testHooks?: true;
  revision: number;
  forceContinueAsNewAfter?: number;
}
export interface BundledBatch {
  atMs: number;
  begins?: true;
  /**
   * Of a first batch: the time that the run began with, where that is another.
   */
  beganMs?: number;
  leaves?: BundledLeaving;
  /**
   * The run whose own tasks begin with it: ids of children are made of it.
   */
  lived?: string;
  position: number;
  stimuli: BundledStimulus[];
  began: string[];
}
export interface BundledLeaving {
  sourceRunId: string;
  fromSeq: number;
  length: number;
  mode: 'replay' | 'branch';
  clocks: {
    recordEndsMs: number;
    madeAtMs: number;
  }[];
  overlay?: {
    [k: string]: unknown;
  };
  inherited?: {
    [k: string]: unknown;
  };
  generation: number;
  hasChildren?: true;
}
export interface BundledEvent {
  type: string;
  nodeId?: string;
  causedBy?: BundledCause;
  payload: {
    [k: string]: unknown;
  };
}
export interface BundledEntry {
  key: string;
  type: string;
  nodeId?: string;
  causedBy?: BundledCause;
  /**
   * JSON.
   */
  payload: string;
  timestampMs: number;
  /**
   * No workflow code stated it: the run was ended from outside.
   */
  isDerived?: true;
}

export interface RunCancelRequest {
  reason?: string;
}

export interface RunComparison {
  a: ComparedRun;
  b: ComparedRun;
  /**
   * Both were compared to their ends, and say the same.
   */
  same: boolean;
  divergence: null | Divergence;
  /**
   * What the runs were made of and differ in, whether or not it made a difference.
   */
  pinned: PinnedDifference[];
  /**
   * One visit of a node each, in order.
   */
  steps: ComparedStep[];
  /**
   * Differences of status, variables, channels, outputs and error.
   */
  end: ValueDifference[];
  /**
   * One of the runs is under way, or there is more than one answer holds.
   */
  truncated?: true;
}
export interface ComparedRun {
  runId: string;
  workflowId: string;
  workflowName: string;
  /**
   * Of the definition, as its author named it.
   */
  version: string;
  definitionDigest: string;
  status: string;
  /**
   * From its start to its end; absent while it is under way.
   */
  durationMs?: number;
  inputTokens?: number;
  outputTokens?: number;
  usd?: number;
  /**
   * The run that it is a fork of.
   */
  forkOf?: string;
  fromSeq?: number;
  /**
   * What it goes by in its source's place.
   */
  overlay?: ('inputs' | 'configurable' | 'agents' | 'answer')[];
}
export interface Divergence {
  seq: number;
  cause:
    | 'inputs'
    | 'agents'
    | 'options'
    | 'definition'
    | 'code'
    | 'answer'
    | 'message'
    | 'tool-result'
    | 'model'
    | 'child'
    | 'intervention'
    | 'branch'
    | 'replay'
    | 'unknown';
  nodeId?: string;
  nodeName?: string;
  /**
   * RunEventDoc
   */
  aEvent?: {
    [k: string]: unknown;
  };
  /**
   * RunEventDoc
   */
  bEvent?: {
    [k: string]: unknown;
  };
  /**
   * Of what the two events say.
   */
  differences: ValueDifference[];
  /**
   * One is a branch of the other, and this part of its overlay is the cause.
   */
  overlay?: 'inputs' | 'configurable' | 'agents' | 'answer';
  /**
   * Of a fork by a build of the worker.
   */
  build?: {
    buildId: string;
    /**
     * Whose worker performed the source's last task. Absent: nobody knows it.
     */
    sourceBuildId?: string;
  };
}
export interface ValueDifference {
  /**
   * JSON pointer (RFC 6901).
   */
  pointer: string;
  a?: unknown;
  b?: unknown;
  /**
   * Of a large value the beginning is shown, as text.
   */
  cut?: true;
}
export interface PinnedDifference {
  fact: 'inputs' | 'agents' | 'options' | 'definition' | 'code';
  differences: ValueDifference[];
}
export interface ComparedStep {
  nodeId: string;
  nodeName: string;
  visit: number;
  a?: StepSide;
  b?: StepSide;
  differences: ValueDifference[];
}
export interface StepSide {
  status: string;
  durationMs?: number;
  inputTokens?: number;
  outputTokens?: number;
  usd?: number;
  confidence?: number;
}

export interface RunCreateRequest {
  workflowId?: string;
  agentId?: string;
  inputs?: {
    [k: string]: unknown;
  };
  /**
   * Extension of this host (seed 003): the conversation that the run belongs to, of the caller's tenant. One that is not there yet is made; absent, the run has a session of its own.
   */
  sessionId?: string;
  /**
   * Extension of this host: what people call the session. The first title of a session stays.
   */
  sessionTitle?: string;
  /**
   * Extension of this host, of `npm start` alone: the clock of the run stands until somebody moves it, and nothing outside is changed.
   */
  rehearsal?: boolean;
  /**
   * Extension of this host, where payloads are encrypted: whose data the run holds, by the caller's own reference. What the run leaves, its children and its forks, is sealed with a key of that subject, which `subjects:erase` destroys. Absent, the subject of the session, if that has one. The reference itself is kept nowhere.
   */
  dataSubject?: string;
  tenantId?: string;
  scopeId?: string;
  callbackUrl?: string;
  configurable?: {
    recursionLimit?: number;
    runTimeoutMs?: number;
    escalationThreshold?: number;
    reasoningVerbosity?: 'summary' | 'full' | 'off';
    model?: string;
    temperature?: number;
    maxTokens?: number;
    ai?: {
      provider?: string;
      model?: string;
      credentialRef?: string;
      [k: string]: unknown;
    };
    'ai.provider'?: string;
    'ai.model'?: string;
    'ai.credentialRef'?: string;
    mockProvider?: {
      id: string;
      config?: {
        [k: string]: unknown;
      };
    };
    [k: string]: unknown;
  };
  /**
   * @maxItems 100
   */
  tags?: string[];
  metadata?: {
    [k: string]: unknown;
  };
  residency?: {
    region: string;
    [k: string]: unknown;
  };
  mode?: 'eval';
  evalSuiteRef?: string;
}

export interface RunCreateResponse {
  runId: string;
  status:
    | 'pending'
    | 'running'
    | 'waiting-approval'
    | 'waiting-input'
    | 'waiting-external'
    | 'completed'
    | 'failed'
    | 'cancelled'
    | 'cancelling'
    | 'paused';
  /**
   * Extension of this host (seed 003): the session that the run is in.
   */
  sessionId?: string;
  eventsUrl: string;
  statusUrl?: string;
  /**
   * What was accepted and has no effect here, or not the effect that was asked for, at most 16; absent when there is nothing of the kind.
   */
  warnings?: RunCreateWarning[];
  [k: string]: unknown;
}
export interface RunCreateWarning {
  code: 'configurable_unknown_key' | 'configurable_without_effect' | 'value_masked';
  key: string;
  /**
   * The key that is known here and looks most like it.
   */
  nearest?: string;
  message: string;
}

export interface RunDiffResponse {
  /**
   * The run of the path.
   */
  a: string;
  /**
   * The run of `against`.
   */
  b: string;
  /**
   * `seq` of the first of `eventDiffs`; null where there is none.
   */
  divergedAtSeq: number | null;
  /**
   * By `seq`. Facts are the same where both logs have them under one key.
   */
  eventDiffs: {
    /**
     * Place in a's log; in b's where only b has the event.
     */
    seq: number;
    /**
     * Only b has it, only a has it, or they say something else.
     */
    op: 'added' | 'removed' | 'changed';
    /**
     * RunEventDoc
     */
    aEvent?: {
      [k: string]: unknown;
    };
    /**
     * RunEventDoc
     */
    bEvent?: {
      [k: string]: unknown;
    };
  }[];
  /**
   * Differences of status, variables, channels, outputs and error, by JSON pointer.
   */
  stateDiff: {
    [k: string]: {
      op: 'added' | 'removed' | 'changed';
      a?: unknown;
      b?: unknown;
    };
  };
  /**
   * One of the runs is under way, or there is more than one answer holds: only a part was compared.
   */
  truncated?: boolean;
}

export type OrchestratorDecision =
  | {
      kind: 'next-worker';
      /**
       * @minItems 1
       */
      nextWorkerIds: [string, ...string[]];
      confidence?: number;
    }
  | {
      kind: 'ask-user';
      prompt: string;
    }
  | {
      kind: 'terminate';
      reason?: string;
      confidence?: number;
      successCriteria?: {
        key: string;
        met: boolean;
      }[];
    };

export interface RunEventPayloads {
  'run.started': RunStartedPayload;
  'run.paused': RunPausedPayload;
  'run.resumed': RunResumedPayload;
  'replay.diverged': ReplayDivergedPayload;
  'openwop-temporal.clock-set': ClockSetPayload;
  'run.completed': RunCompletedPayload;
  'run.failed': RunFailedPayload;
  'run.cancelled': RunCancelledPayload;
  'node.started': NodeStartedPayload;
  'node.completed': NodeCompletedPayload;
  'node.failed': NodeFailedPayload;
  'node.suspended': NodeSuspendedPayload;
  'node.resumed': NodeResumedPayload;
  'node.retried': NodeRetriedPayload;
  'node.skipped': NodeSkippedPayload;
  'node.cancelled': NodeCancelledPayload;
  'node.dispatched': NodeDispatchedPayload;
  'runOrchestrator.decided': RunOrchestratorDecidedPayload;
  'core.workflowChain.event': WorkflowChainEventPayload;
  'core.workflowChain.confidence-escalated': ConfidenceEscalatedPayload;
  'core.dispatch.fanOut': DispatchFanOutPayload;
  'core.dispatch.join': DispatchJoinPayload;
  'interrupt.requested': InterruptRequestedPayload;
  'interrupt.resolved': InterruptResolvedPayload;
  'approval.requested': ApprovalRequestedPayload;
  'approval.received': ApprovalReceivedPayload;
  'approval.granted': ApprovalGrantedPayload;
  'approval.rejected': ApprovalRejectedPayload;
  'openwop-temporal.voted': VotedPayload;
  'openwop-temporal.asked-back': AskedBackPayload;
  'clarification.requested': ClarificationRequestedPayload;
  'clarification.resolved': ClarificationResolvedPayload;
  'variable.changed': VariableChangedPayload;
  'channel.written': ChannelWrittenPayload;
  'conversation.opened': ConversationOpenedPayload;
  'conversation.exchanged': ConversationExchangedPayload;
  'conversation.closed': ConversationClosedPayload;
  'output.chunk': OutputChunkPayload;
  'workflow.loopback-limit': WorkflowLoopbackLimitPayload;
  'cap.breached': CapBreachedPayload;
  'agent.invocation.started': AgentInvocationStartedPayload;
  'agent.promptResolved': AgentPromptResolvedPayload;
  'prompt.composed': PromptComposedPayload;
  'agent.reasoning.delta': AgentReasoningDeltaPayload;
  'agent.reasoned': AgentReasonedPayload;
  'agent.toolCalled': AgentToolCalledPayload;
  'agent.toolReturned': AgentToolReturnedPayload;
  'agent.decided': AgentDecidedPayload;
  'agent.handoff': AgentHandoffPayload;
  'agent.invocation.completed': AgentInvocationCompletedPayload;
  'provider.usage': ProviderUsagePayload;
  'envelope.refusal': EnvelopeRefusalPayload;
  'envelope.retry.exhausted': EnvelopeRetryExhaustedPayload;
}
export interface RunStartedPayload {
  workflowId: string;
  inputs?: {
    [k: string]: unknown;
  };
  transport?: 'rest' | 'mcp' | 'a2a' | 'ui';
  engineVersion?: string;
  owner?: {
    tenant: string;
    workspace?: string;
    principal?: string;
  };
  tags?: string[];
  metadata?: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface RunPausedPayload {
  reason?: string;
  drainPolicy: 'drain-current-node' | 'immediate';
  [k: string]: unknown;
}
export interface RunResumedPayload {
  reason?: string;
  [k: string]: unknown;
}
export interface ReplayDivergedPayload {
  sourceRunId: string;
  atSequence: number;
  originalEventId?: string;
  replayEventId?: string;
  divergenceKind?: 'output' | 'missing' | 'extra' | 'type-mismatch';
  divergencePoint?: string;
  [k: string]: unknown;
}
export interface ClockSetPayload {
  now: string;
  skippedMs: number;
}
export interface RunCompletedPayload {
  outputs?: {
    [k: string]: unknown;
  };
  durationMs?: number;
  [k: string]: unknown;
}
export interface RunFailedPayload {
  error: EventError;
  failedNodeId?: string;
  durationMs?: number;
  [k: string]: unknown;
}
export interface EventError {
  code: string;
  message: string;
  details?: {
    [k: string]: unknown;
  };
  retryable?: boolean;
  [k: string]: unknown;
}
export interface RunCancelledPayload {
  reason?: string;
  cancelledBy?: string;
  durationMs?: number;
  parentRunId?: string;
  [k: string]: unknown;
}
export interface NodeStartedPayload {
  nodeId: string;
  typeId: string;
  attempt?: number;
  agent?: AgentRef;
  [k: string]: unknown;
}
export interface AgentRef {
  agentId: string;
  name?: string;
  modelClass?:
    | 'reasoning'
    | 'tool-using'
    | 'chat'
    | 'code'
    | 'vision'
    | 'multimodal'
    | 'embedding'
    | 'classification'
    | 'retrieval';
  memoryRef?: string;
  version?: string;
  channel?: string;
  sourceManifestId?: string;
}
export interface NodeCompletedPayload {
  nodeId: string;
  outputs?: {
    [k: string]: unknown;
  };
  durationMs?: number;
  agent?: AgentRef;
  [k: string]: unknown;
}
export interface NodeFailedPayload {
  nodeId: string;
  error: EventError;
  attempts?: number;
  [k: string]: unknown;
}
export interface NodeSuspendedPayload {
  nodeId: string;
  interruptId: string;
  kind?:
    | 'approval'
    | 'clarification'
    | 'external-event'
    | 'custom'
    | 'conversation.start'
    | 'conversation.exchange'
    | 'conversation.close'
    | 'low-confidence';
  key?: string;
  reason?: string;
  agentId?: string;
  threshold?: number;
  observed?: number;
  [k: string]: unknown;
}
export interface NodeResumedPayload {
  nodeId: string;
  interruptId?: string;
  resumeValue?: unknown;
  [k: string]: unknown;
}
export interface NodeRetriedPayload {
  nodeId: string;
  attempt: number;
  delayMs?: number;
  lastError?: EventError;
  [k: string]: unknown;
}
export interface NodeSkippedPayload {
  nodeId: string;
  reason?: string;
  [k: string]: unknown;
}
export interface NodeCancelledPayload {
  nodeId: string;
  reason?: string;
  [k: string]: unknown;
}
export interface NodeDispatchedPayload {
  childRunId: string;
  childWorkflowId: string;
  childStatus?: string;
}
export interface RunOrchestratorDecidedPayload {
  agentId: string;
  decision: OrchestratorDecision;
  iteration?: number;
  causationHostId?: string;
}
export interface WorkflowChainEventPayload {
  phase:
    | 'dispatch.began'
    | 'dispatch.succeeded'
    | 'dispatch.failed'
    | 'child.completed'
    | 'child.failed'
    | 'child.cancelled'
    | 'output.harvested';
  workerId: string;
  parentRunId: string;
  childRunId?: string;
  harvestedKeys?: string[];
  attestation?: {
    checksum: string;
    algorithm: 'sha256';
  };
  error?: EventError;
  causationHostId?: string;
}
export interface ConfidenceEscalatedPayload {
  confidence: number;
  floor: number;
  escalationKind: 'clarify' | 'escalate';
  workerId?: string;
  parentRunId: string;
  originalDecision?: OrchestratorDecision;
  causationHostId?: string;
}
export interface DispatchFanOutPayload {
  fanOutPolicy: 'parallel';
  childCount: number;
  maxConcurrency?: number;
  joinMode?: 'wait-all' | 'quorum' | 'first' | 'race';
}
export interface DispatchJoinPayload {
  joinOutcome: 'satisfied' | 'failed' | 'partial';
  completedCount: number;
  failedCount: number;
  mergeOrder: string[];
  cancelledCount?: number;
}
export interface InterruptRequestedPayload {
  kind:
    | 'approval'
    | 'clarification'
    | 'external-event'
    | 'custom'
    | 'conversation.start'
    | 'conversation.exchange'
    | 'conversation.close'
    | 'low-confidence';
  key: string;
  data: {
    [k: string]: unknown;
  };
  resumeSchema?: {
    [k: string]: unknown;
  };
  timeoutMs?: number;
}
export interface InterruptResolvedPayload {
  nodeId: string;
  interruptId: string;
  kind?:
    | 'approval'
    | 'clarification'
    | 'external-event'
    | 'custom'
    | 'conversation.start'
    | 'conversation.exchange'
    | 'conversation.close'
    | 'low-confidence';
  resumeValue?: unknown;
  resolvedBy?: string;
  outcome?: string;
  reason?: string;
  [k: string]: unknown;
}
export interface ApprovalRequestedPayload {
  nodeId: string;
  interruptId?: string;
  artifactId: string;
  artifactType: string;
  title?: string;
  /**
   * @minItems 1
   */
  actions: [
    'accept' | 'reject' | 'refine' | 'edit' | 'ask',
    ...('accept' | 'reject' | 'refine' | 'edit' | 'ask')[],
  ];
  approversList?: string[];
  requiredApprovals?: number;
  [k: string]: unknown;
}
export interface ApprovalReceivedPayload {
  nodeId: string;
  action: 'accept' | 'reject' | 'refine' | 'edit-accept' | 'timeout';
  decidedBy?: string;
  decidedAt?: string;
  comment?: string;
  feedback?: string;
  refineFeedback?: {
    scope: 'whole' | 'section' | 'items';
    sectionPath?: string;
    itemIds?: string[];
    tags?: string[];
    text?: string;
    [k: string]: unknown;
  };
  editedArtifactData?: unknown;
  [k: string]: unknown;
}
export interface ApprovalGrantedPayload {
  gateId: string;
  principal: string;
  quorumProgress?: {
    granted?: number;
    required?: number;
  };
}
export interface ApprovalRejectedPayload {
  gateId: string;
  principal: string;
  reason?: string;
}
export interface VotedPayload {
  nodeId: string;
  interruptId: string;
  voter: string;
  /**
   * The principal that sent it.
   */
  votedBy: string;
  /**
   * Whether it is for or against what is asked.
   */
  effect: 'continue' | 'end';
  /**
   * The answer that it is for, with its reason and its content.
   */
  resumeValue: {
    [k: string]: unknown;
  };
  /**
   * Votes that this answer has now; those against count together.
   */
  votes: number;
  /**
   * With so many the question is decided.
   */
  needed: number;
}
export interface AskedBackPayload {
  nodeId: string;
  interruptId: string;
  askedBy: string;
  action: string;
  text: string;
}
export interface ClarificationRequestedPayload {
  nodeId: string;
  interruptId?: string;
  questions: {
    id: string;
    question: string;
    schema?: {
      [k: string]: unknown;
    };
    [k: string]: unknown;
  }[];
  [k: string]: unknown;
}
export interface ClarificationResolvedPayload {
  nodeId: string;
  answers: {
    [k: string]: unknown;
  };
  answeredBy?: string;
  [k: string]: unknown;
}
export interface VariableChangedPayload {
  name: string;
  previous?: unknown;
  next?: unknown;
  nodeId?: string;
  [k: string]: unknown;
}
export interface ChannelWrittenPayload {
  channel: string;
  value: unknown;
  reducer: 'replace' | 'append' | 'merge' | 'counter' | 'votes' | 'feedback' | 'message';
  writtenAt: string;
  nodeId?: string;
  schemaVersion?: number;
}
export interface ConversationOpenedPayload {
  conversationId: string;
  initialTurn: ConversationTurn;
  agentId?: string;
  schema?: {
    [k: string]: unknown;
  };
  capabilities?: ('multi-turn' | 'streaming')[];
}
export interface ConversationTurn {
  messageId: string;
  from: string;
  content: unknown;
  ts: number;
  role: 'user' | 'agent' | 'system';
  turnIndex: number;
  to?: string;
  groupId?: string;
  speakerId?: string;
  [k: string]: unknown;
}
export interface ConversationExchangedPayload {
  conversationId: string;
  turnIndex: number;
  turn: ConversationTurn;
}
export interface ConversationClosedPayload {
  conversationId: string;
  turnIndex: number;
  finalTurn: ConversationTurn;
  outcome?: unknown;
}
export interface OutputChunkPayload {
  nodeId: string;
  runId: string;
  chunk: string;
  isLast: boolean;
  channel?: string;
  meta?: ChunkMeta;
  [k: string]: unknown;
}
export interface ChunkMeta {
  finishReason?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  logprobs?: unknown[];
  toolCalls?: {
    id: string;
    name: string;
    arguments: string;
    [k: string]: unknown;
  }[];
  model?: string;
  usage?: {
    promptTokens?: number;
    completionTokens?: number;
    totalTokens?: number;
    [k: string]: unknown;
  };
  provider?: string;
  providerExtensions?: {
    [k: string]: unknown;
  };
}
export interface WorkflowLoopbackLimitPayload {
  nodeId: string;
  iterations: number;
  limit?: number;
  [k: string]: unknown;
}
export interface CapBreachedPayload {
  kind:
    | 'clarification'
    | 'schema'
    | 'envelopes'
    | 'node-executions'
    | 'wasm-memory'
    | 'wasm-fuel'
    | 'wasm-execution-time'
    | 'run-duration'
    | 'loop-iterations'
    | 'budget-tokens'
    | 'budget-cost'
    | 'budget-tool-calls'
    | 'budget-retries'
    | 'confidence-escalation-suppressed'
    | 'dispatch-iterations'
    | 'child-depth'
    | 'child-fan-out'
    | 'child-open'
    | 'child-runs'
    | 'handoffs';
  limit: number;
  observed: number;
  nodeId?: string;
  [k: string]: unknown;
}
export interface AgentInvocationStartedPayload {
  invocationId: string;
  agentId: string;
  source: 'workflow-node' | 'run-api' | 'chat-mention';
  modelClass?: string;
  resolvedModel?: string;
  resolvedProvider?: string;
  resolvedAgentVersion?: string;
  resolvedChannel?: string;
  toolSurfaceCount?: number;
  memoryBound?: boolean;
  [k: string]: unknown;
}
export interface AgentPromptResolvedPayload {
  nodeId: string;
  kind: 'system' | 'user' | 'few-shot' | 'schema-hint';
  agentId?: string;
  chain: {
    layer:
      | 'run-configurable'
      | 'node'
      | 'agent-intrinsic'
      | 'agent-overrides'
      | 'agent-library-default'
      | 'workflow-defaults'
      | 'host-defaults';
    source?: string;
    applied: boolean;
    reason?: string;
  }[];
  resolved: string | null;
  causationHostId?: string;
}
export interface PromptComposedPayload {
  nodeId: string;
  refs: string[];
  kind: 'system+user' | 'system-only' | 'user-only' | 'agent-reasoning';
  hash: string;
  composed?: string;
  systemPrompt?: string;
  userPrompt?: string;
  variableBindings?: {
    [k: string]: unknown;
  };
  variableHashes?: {
    [k: string]: unknown;
  };
  contentTrust?: 'trusted' | 'untrusted';
  causationHostId?: string;
}
export interface AgentReasoningDeltaPayload {
  agentId: string;
  delta: string;
  sequence: number;
  verbosity?: 'summary' | 'full' | 'off';
  [k: string]: unknown;
}
export interface AgentReasonedPayload {
  agentId: string;
  reasoning: string;
  verbosity?: 'summary' | 'full' | 'off';
  causationHostId?: string;
  [k: string]: unknown;
}
export interface AgentToolCalledPayload {
  agentId: string;
  toolName: string;
  callId: string;
  inputs?: unknown;
  argsHash?: string;
  principal?: string;
  transport?: 'mcp' | 'http' | 'native';
  /**
   * Our own: the call changes something. One that is cut off after it may have been made is closed as effect_in_doubt.
   */
  sideEffects?: boolean;
  causationHostId?: string;
  [k: string]: unknown;
}
export interface AgentToolReturnedPayload {
  agentId: string;
  toolName: string;
  callId: string;
  outcome?: unknown;
  error?: EventError;
  status?: 'ok' | 'error' | 'forbidden' | 'rate_limited';
  durationMs?: number;
  causationHostId?: string;
  [k: string]: unknown;
}
export interface AgentDecidedPayload {
  agentId: string;
  decision: unknown;
  confidence?: number;
  reasoning?: string;
  causationHostId?: string;
  [k: string]: unknown;
}
export interface AgentHandoffPayload {
  fromAgentId: string;
  toAgentId: string;
  reason?: string;
  causationHostId?: string;
  [k: string]: unknown;
}
export interface AgentInvocationCompletedPayload {
  invocationId: string;
  agentId: string;
  outcome: 'completed' | 'handed-off' | 'escalated' | 'refused' | 'failed';
  schemaValidated?: boolean;
  confidence?: number;
  enqueuedRunId?: string;
  [k: string]: unknown;
}
export interface ProviderUsagePayload {
  provider: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
  totalTokens?: number;
  costEstimateUsd?: number;
  currency?: string;
  cacheHit?: boolean;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  nodeId?: string;
  traceId?: string;
}
export interface EnvelopeRefusalPayload {
  nodeId: string;
  provider: string;
  model: string;
  refusalText?: string | null;
  safetyCategory?: string | null;
}
export interface EnvelopeRetryExhaustedPayload {
  nodeId: string;
  totalAttempts: number;
  finalReason: string;
  finalError?: string | null;
}

export interface RunForkRequest {
  mode: 'replay' | 'branch';
  fromSeq?: number;
  runOptionsOverlay?: RunForkOverlay;
}
export interface RunForkOverlay {
  /**
   * Over those of the source; of a branch from 0 alone.
   */
  inputs?: {
    [k: string]: unknown;
  };
  /**
   * Over that of the source.
   */
  configurable?: {
    [k: string]: unknown;
  };
  /**
   * By agentId, or by a name that stands for one agent of the run: the last part of its id, or a node that invokes it.
   */
  agents?: {
    [k: string]: {
      systemPrompt?: string;
      /**
       * The version that the host has now.
       */
      packVersion?: string;
    };
  };
  /**
   * In the place of the answer of a tool, a model or a human that the event holds.
   */
  answer?: {
    /**
     * fromSeq.
     */
    seq: number;
    value: unknown;
  };
  /**
   * What follows where the code of today states otherwise than the source did, before fromSeq: the end of the branch (stop, where nothing is said), or it lives from there.
   */
  onDivergence?: 'stop' | 'live';
  /**
   * recorded: calls get what the same call got in the source, child runs come to what the same one came to, and nothing is performed.
   */
  tools?: 'live' | 'recorded';
  /**
   * recorded: a question that the source asked at the same place and in the same words gets what people answered there. Any other waits for people.
   */
  answers?: 'live' | 'recorded';
}

export interface RunOverviewList {
  runs: RunOverview[];
  /**
   * Of the next page; absent on the last.
   */
  nextCursor?: string;
}
export interface RunOverview {
  runId: string;
  workflowId: string;
  /**
   * Of the definition that the run was started with.
   */
  workflowName: string;
  status:
    | 'pending'
    | 'running'
    | 'paused'
    | 'waiting-approval'
    | 'waiting-input'
    | 'waiting-external'
    | 'cancelling'
    | 'completed'
    | 'failed'
    | 'cancelled';
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  tags: string[];
  /**
   * Why something of the run cannot be read now: its tags, or its times and what it waits for, are left out.
   */
  unreadable?: {
    code: string;
    message: string;
  };
  /**
   * Its clock stands until somebody moves it.
   */
  rehearsal?: true;
  /**
   * What can be answered now, oldest first.
   */
  waiting: RunWait[];
}
export interface RunWait {
  nodeId: string;
  nodeName: string;
  interruptId: string;
  kind:
    | 'approval'
    | 'clarification'
    | 'external-event'
    | 'custom'
    | 'low-confidence'
    | 'conversation.exchange';
  /**
   * What is asked, in words.
   */
  title: string;
  /**
   * False: another system's event answers it.
   */
  forPerson: boolean;
  requestedAt: string;
  /**
   * Of the question, its node or the run, whichever is first.
   */
  deadline?: string;
}

export interface RunPauseRequest {
  reason?: string;
  drainPolicy?: 'drain-current-node' | 'immediate';
}

export interface RunResumeRequest {
  reason?: string;
}

export interface RunSkipRequest {
  /**
   * ms from where the clock stands.
   */
  forMs?: number;
  /**
   * To the end of the first wait that has one.
   */
  to?: 'next-deadline';
}

export interface RunSnapshot {
  runId: string;
  workflowId: string;
  status:
    | 'pending'
    | 'running'
    | 'paused'
    | 'waiting-approval'
    | 'waiting-input'
    | 'waiting-external'
    | 'cancelling'
    | 'completed'
    | 'failed'
    | 'cancelled';
  owner?: {
    tenant: string;
    workspace?: string;
    principal?: string;
    principalKind?: string;
  };
  currentNodeId?: string;
  startedAt?: string;
  completedAt?: string;
  endedAt?: string;
  parentRunId?: string;
  parentNodeId?: string;
  agent?: AgentRef;
  runOrchestrator?: AgentRef;
  nodeStates?: {
    [k: string]: unknown;
  };
  variables?: {
    [k: string]: unknown;
  };
  channels?: {
    [k: string]: unknown;
  };
  inputs?: {
    [k: string]: unknown;
  };
  error?: {
    code: string;
    message: string;
    details?: {
      [k: string]: unknown;
    };
  };
  eventLogSchemaVersion?: number;
  tags?: string[];
  metadata?: {
    [k: string]: unknown;
  };
  configurable?: {
    [k: string]: unknown;
  };
  interrupt?: {
    [k: string]: unknown;
  };
  rehearsal?: RehearsalState;
  metrics?: {
    openwopCost?: {
      [k: string]: unknown;
    };
    [k: string]: unknown;
  };
  outputs?: {
    [k: string]: unknown;
  };
  /**
   * Extension of this host: the data of the run's subject was erased then; what is left is the structure.
   */
  erasedAt?: string;
  [k: string]: unknown;
}
export interface RehearsalState {
  /**
   * Where its clock stands. Absent before the run has begun.
   */
  now?: string;
  /**
   * All that was skipped so far.
   */
  skippedMs: number;
}

export interface RunsMoveRequest {
  /**
   * These runs; else those that fromBuild holds.
   *
   * @minItems 1
   * @maxItems 100
   */
  runIds?: [string, ...string[]];
  fromBuild?: string;
  /**
   * Holds them from now on. Absent: they go on with whatever build is current, now and later.
   */
  toBuild?: string;
  /**
   * Of the answer before, with fromBuild.
   */
  cursor?: string;
}

export interface SessionMessageRequest {
  /**
   * Text that mentions one agent, `@` and its id; between backticks nothing is a mention.
   */
  content: string;
}

export interface SubjectEraseRequest {
  /**
   * As runs named it.
   */
  dataSubject: string;
  /**
   * Open runs of the subject are cancelled first. Absent or false: while there are any, the request is refused.
   */
  cancelOpen?: boolean;
  /**
   * Stands in the receipt, for ever: nothing personal.
   */
  reason?: string;
}

export type PortValue =
  | {
      type: 'static';
      value: unknown;
    }
  | {
      type: 'expression';
      expression: string;
    }
  | {
      type: 'connection';
      nodeId: string;
      outputKey: string;
      optional?: boolean;
    }
  | {
      type: 'variable';
      variableName: string;
      optional?: boolean;
    };

export interface WorkflowDefinition {
  id: string;
  name: string;
  version: string;
  /**
   * @minItems 1
   */
  nodes: [WorkflowNode, ...WorkflowNode[]];
  edges: WorkflowEdge[];
  triggers: WorkflowTrigger[];
  variables: WorkflowVariable[];
  metadata: {
    [k: string]: unknown;
  };
  settings: {
    timeout?: number;
    maxRetries?: number;
    logLevel?: 'debug' | 'info' | 'warn' | 'error';
    maxLoopbackIterations?: number;
    [k: string]: unknown;
  };
  description?: string;
  type?: string;
  isActive?: boolean;
  status?: 'active' | 'inactive' | 'draft' | 'archived';
  tenantId?: string;
  scopeId?: string;
  slug?: string;
  groups?: NodeGroup[];
  channels?: {
    [k: string]: ChannelDeclaration;
  };
  configurableSchema?: {
    [k: string]: unknown;
  };
  defaults?: {
    [k: string]: unknown;
  };
  acceptsInheritedArtifacts?: {
    [k: string]: unknown;
  }[];
  createdAt?: string;
  updatedAt?: string;
}
export interface WorkflowNode {
  id: string;
  typeId: string;
  name: string;
  position: {
    x: number;
    y: number;
  };
  config: {
    [k: string]: unknown;
  };
  inputs: {
    [k: string]: PortValue;
  };
  credentialsRef?: string;
  settings?: {
    [k: string]: unknown;
  };
  outputRole?: 'primary' | 'secondary';
  disabled?: boolean;
  notes?: string;
  groupId?: string;
  agent?: PinnedAgentRef;
  envelopeContract?: {
    [k: string]: unknown;
  };
  artifactType?: string;
  cardType?: string;
  outputSensitivity?: {
    [k: string]: boolean;
  };
}
export interface PinnedAgentRef {
  agentId: string;
  name?: string;
  modelClass?:
    | 'reasoning'
    | 'tool-using'
    | 'chat'
    | 'code'
    | 'vision'
    | 'multimodal'
    | 'embedding'
    | 'classification'
    | 'retrieval'
    | 'writing'
    | 'coding'
    | 'research'
    | 'general';
  agentSharing?: string;
  memoryRef?: string;
  version?: string;
  channel?: string;
  sourceManifestId?: string;
}
export interface WorkflowEdge {
  id: string;
  sourceNodeId: string;
  targetNodeId: string;
  sourceOutput?: string;
  targetInput?: string;
  label?: string;
  condition?: EdgeCondition;
  triggerRule?: 'all_success' | 'any_success' | 'all_complete' | 'none_failed' | 'any_failed';
}
export interface EdgeCondition {
  type: 'expression' | 'equals' | 'notEquals' | 'contains' | 'regex' | 'truthy' | 'falsy';
  left?: string;
  right?: unknown;
  expression?: string;
}
export interface WorkflowTrigger {
  id?: string;
  type:
    | 'manual'
    | 'schedule'
    | 'webhook'
    | 'event'
    | 'artifact'
    | 'canvas'
    | 'envelope'
    | 'command'
    | 'chat-message'
    | 'channel-write';
  name?: string;
  description?: string;
  config?: {
    [k: string]: unknown;
  };
  enabled?: boolean;
  nodeId?: string;
  eventType?: string;
}
export interface WorkflowVariable {
  name: string;
  type: 'string' | 'number' | 'boolean' | 'object' | 'array';
  description?: string;
  required?: boolean;
  defaultValue?: unknown;
  sensitive?: boolean;
  format?: string;
}
export interface NodeGroup {
  id: string;
  name: string;
  color?: string;
  collapsed?: boolean;
  nodeIds: string[];
  position?: {
    x: number;
    y: number;
  };
  size?: {
    [k: string]: unknown;
  };
}
export interface ChannelDeclaration {
  reducer: string;
  schema?: {
    [k: string]: unknown;
  };
  default?: unknown;
  maxSize?: number;
  ttlMs?: number;
  options?: {
    [k: string]: unknown;
  };
  access?:
    | ('public' | 'private')
    | {
        /**
         * @maxItems 256
         */
        readers?: string[];
        /**
         * @maxItems 256
         */
        writers?: string[];
      };
  schemaVersion?: number;
  compatibleWith?: number[];
  sensitive?: boolean;
}
