// What this host offers, and by what it is asked for: the one table. Loading of definitions and manifests, the checks of
// requests, the workflow's node kinds and discovery (capabilities.md) read it; nothing else says what is offered.
// What stands here as offered is done; what is not done is absent, refused by the name of its row or in the words that
// stand there, or told to be without effect.
import type { ErrorCode } from './errors.ts';
import { MAX_FAN_OUT } from './children.ts';
import { DRAIN_POLICIES } from './messages.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import {
  IDEMPOTENCY_RETENTION_SECONDS,
  CONFIDENCE_FLOOR,
  MAX_ESCALATIONS_PER_VISIT,
  REASONING_TOKEN_LIMIT,
  SCHEMA_ROUNDS,
} from './limits.ts';

/** What decides about offers: facts of a deployment, not of a moment. */
export interface HostFacts {
  /** There is an agent. */
  readonly agents: boolean;
  /** There is a tool, or there may be. */
  readonly tools: boolean;
  /** Agents are asked of a model that is one, not only of scripts. */
  readonly live: boolean;
  /** Providers that a caller may name. */
  readonly providers: readonly string[];
  readonly testMode: boolean;
  /** A decision below its threshold goes to a human. */
  readonly escalation: boolean;
  /** Runs expire so many days behind their end; absent: never. */
  readonly retentionDays?: number;
  /** A test seam makes a run expire. */
  readonly forcesExpiry: boolean;
  /** Runs may be rehearsals. */
  readonly rehearsals?: boolean;
}

/** Names that are refused with validation_error, each with its reason. */
type Reasons = Readonly<Record<string, string>>;
/** Names that are refused with a code of their own. */
type Codes = Readonly<Record<string, ErrorCode>>;

/**
 * What a definition asks for is refused with capability_required, unless its column says otherwise; it names the row.
 */
interface CapabilityRow {
  readonly offered: (facts: HostFacts) => boolean;
  /** Types of nodes that need it. */
  readonly nodeTypes?: readonly string[];
  /**
   * Types of nodes that test mode registers all the same: such a node fails before it starts
   * (capabilities.md §Refusal).
   */
  readonly testNodeTypes?: readonly string[];
  /** Its types of nodes run in definitions made for tests alone, in test mode (conformance/fixtures.md). */
  readonly ofTests?: true;
  /** Test mode: names in a node's config or inputs by which test definitions ask for it (conformance/fixtures.md). */
  readonly hooks?: readonly string[];
  /** Fields of an approval gate's config that ask for it. */
  readonly gateFields?: readonly string[];
  /** Fields of a conversation gate's config. */
  readonly talkFields?: readonly string[];
  /** Fields of a node. */
  readonly nodeFields?: readonly string[];
  /** Fields of an agent node's `agent`. */
  readonly agentFields?: readonly string[];
  /** Keys of a definition's `metadata` that ask for it before the first node runs (RFC 0003 §D). */
  readonly metadata?: readonly string[];
  /** Fields of any node's `agent`, whether the node invokes it or not. */
  readonly refFields?: Reasons;
  /** Types of a definition's triggers. */
  readonly triggerTypes?: Reasons;
  /** Types of a node's inputs, and of conditions. */
  readonly valueTypes?: Reasons;
  /** Values of an agent's `agentSharing` up to their colon; told to be without effect. */
  readonly agentSharing?: readonly string[];
  /** Members of a manifest's `memoryShape`: the agent runs without, and is listed as degraded by the row's name. */
  readonly memoryShape?: readonly string[];
  /** Values of fields of a run's request; capability_not_provided, by the row's name. */
  readonly request?: Readonly<Record<string, string>>;
  /** Values of `askUserRouting` of a dispatch. */
  readonly askUserRoutings?: Reasons;
  /** Fields of a run's request. */
  readonly requestFields?: Reasons;
  /** Keys of `configurable` that are permitted, and have no effect without it. */
  readonly configurable?: readonly string[];
  /** Keys of `configurable` that are refused, whatever the run does. */
  readonly configurableCodes?: Codes;
  /** Keys below `ai.` that are refused of a run that calls models; of another they are dropped unread. */
  readonly aiOptions?: Codes;
  /**
   * What discovery says at this name, a path of the families. Absent: `true` where it is offered, nothing where not.
   * Below a name that is not shown nothing is shown.
   */
  readonly shown?: (facts: HostFacts) => JsonValue | undefined;
}

const DAY_SECONDS = 24 * 3_600;

const always = (): boolean => true;
const never = (): boolean => false;
const withAgents = ({ agents }: HostFacts): boolean => agents;
const orchestrates = ({ agents, testMode }: HostFacts): boolean => agents || testMode;
const rehearses = ({ rehearsals = false }: HostFacts): boolean => rehearsals;
const hidden = (): undefined => undefined;
const shownWith =
  (offered: CapabilityRow['offered'], value: (facts: HostFacts) => JsonValue) =>
  (facts: HostFacts): JsonValue | undefined =>
    offered(facts) ? value(facts) : undefined;
/** A row of something that this host lacks: it is asked for, and refused. */
const lacking = (by: Omit<CapabilityRow, 'offered' | 'shown'>): CapabilityRow => ({
  ...by,
  offered: never,
  shown: hidden,
});
/** A script is no live model (RFC 0077 §A); in test mode it stands for one. */
const isLive = ({ agents, live, testMode }: HostFacts): boolean => agents && (live || testMode);

/** In the order of the discovery document; a part stands behind its family. */
const TABLE = {
  // What every run is made of; no family of discovery.
  run: {
    offered: always,
    nodeTypes: [
      'core.start',
      'core.end',
      'core.noop',
      'core.identity',
      'core.setVariable',
      'core.conditional',
      'core.delay',
      'core.fail',
      'core.approvalGate',
      'core.clarificationGate',
      'core.subWorkflow',
    ],
    shown: hidden,
  },
  // channels-and-reducers.md; no family of discovery.
  channels: {
    offered: always,
    nodeTypes: ['core.channelWrite'],
    hooks: ['emitDuplicateMessageId'],
    shown: hidden,
  },
  idempotency: {
    offered: always,
    shown: () => ({
      supported: true,
      layer1RetentionSeconds: IDEMPOTENCY_RETENTION_SECONDS,
      crossRegion: 'single-region',
    }),
  },
  runs: { offered: always, shown: () => ({}) },
  'runs.pauseResume': {
    offered: always,
    shown: () => ({ supported: true, drainPolicies: [...DRAIN_POLICIES] }),
  },
  // replay.md: in a replay no activity runs but those that read the record and fork its child runs.
  replay: {
    offered: always,
    shown: ({ retentionDays }) => ({
      supported: true,
      modes: ['replay', 'branch'],
      sideEffectSuppression: 'recorded-outcome',
      ...(retentionDays === undefined
        ? {}
        : { retention: { windowSeconds: retentionDays * DAY_SECONDS } }),
    }),
  },
  // storage-adapters.md §Retention. Of a host in production more is asked than that; of it nothing is claimed.
  production: {
    offered: never,
    shown: ({ retentionDays, forcesExpiry }) =>
      retentionDays === undefined
        ? undefined
        : {
            supported: false,
            retention: {
              supported: true,
              minWindowSeconds: retentionDays * DAY_SECONDS,
              testForceExpire: forcesExpiry,
            },
          },
  },
  // debug-bundle.md.
  debugBundle: { offered: always, shown: () => ({ supported: true }) },
  // An extension of this host: runs whose clock stands until somebody moves it.
  rehearsals: { offered: rehearses, shown: hidden },
  agents: {
    offered: withAgents,
    nodeTypes: ['core.agent'],
    shown: shownWith(withAgents, () => ({ supported: true, orchestratorPattern: 'single' })),
  },
  'agents.reasoning': {
    offered: withAgents,
    shown: () => ({ verbosity: 'summary', tokenLimit: REASONING_TOKEN_LIMIT, streaming: true }),
  },
  'agents.manifestRuntime': {
    offered: withAgents,
    shown: () => ({ supported: true, handoffValidation: true, installScope: 'host' }),
  },
  'agents.liveRuntime': {
    offered: isLive,
    shown: (facts) => ({
      supported: isLive(facts),
      ...(isLive(facts)
        ? {
            structuredOutput: true,
            confidenceEscalation: facts.escalation,
            sources: ['workflow-node', 'run-api', 'chat-mention'],
          }
        : {}),
    }),
  },
  // RFC 0002 §D: a type that is not advertised is not emitted.
  'agents.reasoningEvents': { offered: withAgents },
  'agents.toolEvents': { offered: ({ tools }) => tools, shown: ({ tools }) => tools },
  'agents.handoffEvents': { offered: withAgents },
  'agents.decisionEvents': { offered: withAgents },
  'agents.orchestrator': { offered: withAgents },
  'agents.dispatch': { offered: withAgents },
  'agents.dispatchMapping': { offered: withAgents },
  // RFC 0006: an agent says what comes next. In test mode plans of test definitions stand for one.
  orchestrator: {
    offered: orchestrates,
    nodeTypes: ['core.orchestrator.supervisor'],
    shown: shownWith(orchestrates, () => ({ supported: true, fanOutSupported: true })),
  },
  // RFC 0007, RFC 0022, RFC 0118.
  dispatch: {
    offered: orchestrates,
    nodeTypes: ['core.dispatch'],
    shown: shownWith(orchestrates, () => ({
      supported: true,
      models: ['child-run'],
      fanOutSupported: true,
      fanOutPolicies: ['sequential', 'reject', 'parallel'],
      joinModes: ['wait-all', 'quorum', 'first', 'race'],
      onChildFailureModes: ['collect', 'fail-fast', 'absorb'],
      maxFanOut: MAX_FAN_OUT,
      perItemInput: false,
      askUserRoutings: ['clarification', 'auto'],
    })),
  },
  multiAgent: { offered: orchestrates, shown: shownWith(orchestrates, () => ({})) },
  // RFC 0037 (loop and handoff) and RFC 0039 (confidence floor); its parts about memory and replay are gated on those.
  'multiAgent.executionModel': {
    offered: orchestrates,
    shown: () => ({
      supported: true,
      version: 2,
      confidenceEscalationFloor: CONFIDENCE_FLOOR,
      confidenceEscalationInterruptKind: 'approval',
    }),
  },
  // RFC 0005.
  conversationPrimitive: {
    offered: always,
    nodeTypes: ['core.conversationGate'],
    hooks: ['mockAutoResume'],
  },
  // Refs are named in the chain of agent.promptResolved and never applied: there is no library to find them in.
  // Invocations tell of their own prompt all the same, and this is how (RFC 0027 §D).
  prompts: {
    offered: never,
    configurable: ['promptOverrides'],
    shown: shownWith(withAgents, () => ({ supported: false, observability: 'hashed' })),
  },
  aiProviders: {
    offered: withAgents,
    shown: shownWith(withAgents, ({ providers }) => ({ supported: [...providers], byok: [] })),
  },
  providerUsage: {
    offered: withAgents,
    shown: shownWith(withAgents, () => ({ supported: true, costEstimates: false })),
  },
  // Of several faults of one request the first row's is told.
  'interrupt.callbackDelivery': lacking({
    requestFields: { callbackUrl: 'interrupt callbacks are not supported' },
  }),
  dataResidency: lacking({ requestFields: { residency: 'data residency is not supported' } }),
  'agents.evalSuite': lacking({
    request: { mode: 'eval' },
    requestFields: { evalSuiteRef: 'evaluation runs are not supported' },
  }),
  // RFC 0082: a host without deployments refuses channels.
  'agents.deployment': lacking({
    refFields: { channel: 'deployment channels are not supported' },
  }),
  // RFC 0002 §A8: each node has a context of its own.
  'agents.sharedContext': lacking({ agentSharing: ['shared'] }),
  // RFC 0002: no memoryRef without long-term memory, but a node that invokes no agent reads none.
  'agents.memoryBackends': lacking({ agentFields: ['memoryRef'] }),
  'agents.packs': lacking({ metadata: ['requiresAgentId', 'requiresInstalledPack'] }),
  'aiProviders.byok': lacking({ aiOptions: { credentialRef: 'credential_forbidden' } }),
  budget: lacking({ configurable: ['budget'] }),
  'channels.channelWriteTrigger': lacking({
    triggerTypes: { 'channel-write': 'channel-write triggers are not supported' },
  }),
  'dispatch.conversation': lacking({
    askUserRoutings: { conversation: 'a dispatch asks its user by a clarification alone' },
  }),
  'credentials.supported': lacking({ nodeFields: ['credentialsRef'] }),
  expressions: lacking({ valueTypes: { expression: 'expressions are not supported' } }),
  'memory.conversation': lacking({ memoryShape: ['conversation'] }),
  'memory.longTerm': lacking({ memoryShape: ['longTerm'] }),
  'memory.distillation.supported': lacking({
    configurable: ['distillation', 'distillation.tokenBudget'],
  }),
  'memory.supported': lacking({ hooks: ['memoryAction'] }),
  // RFC 0101: who may speak is not limited to a list.
  multiPartyConversation: lacking({ talkFields: ['participants'] }),
  'testing.mockProviders': lacking({
    configurableCodes: { mockProvider: 'unsupported_mock_provider' },
  }),
  'workspace.supported': lacking({ metadata: ['requiresWorkspaceAgent'] }),
  // interrupt-profiles.md §quorum: an answer names its voter, as fixtures do. `approversList` is passed on to clients.
  'interrupt.quorum': {
    offered: ({ testMode }) => testMode,
    gateFields: ['requiredApprovals', 'approversList'],
    shown: hidden,
  },
  // Who may answer is limited neither to a list nor by a role (RFC 0051).
  'interrupt.approverRouting': lacking({
    gateFields: [
      ...['approverGroupRefs', 'approverRoleRefs', 'audience', 'overrideBypassesQuorum'],
      ...['requiredRole', 'requiredScope', 'quorum', 'override'],
    ],
  }),
  // RFC 0023: advertised, it would be for definitions of every name.
  'conformance.mockAgent': {
    offered: ({ testMode }) => testMode,
    ofTests: true,
    nodeTypes: ['core.conformance.mock-agent'],
    shown: hidden,
  },
  'conformance.never-provided': lacking({ testNodeTypes: ['conformance.requiresMissing'] }),
} as const satisfies Readonly<Record<string, CapabilityRow>>;

export type Capability = keyof typeof TABLE;

/** Node types that this release has code for. */
export type NodeType = (typeof TABLE)[
  | 'run'
  | 'channels'
  | 'conversationPrimitive'
  | 'agents'
  | 'orchestrator'
  | 'dispatch'
  | 'conformance.mockAgent']['nodeTypes'][number];

const ROWS = Object.entries(TABLE) as readonly (readonly [Capability, CapabilityRow])[];

/** Of what no deployment of this release offers. */
const LACKING_ROWS = ROWS.filter(([, { offered }]) => offered === never);

/** A live agent invocation (RFC 0077): the node's `agent` names who is invoked. */
export const AGENT_NODE_TYPE = 'core.agent' satisfies NodeType;
/** An agent that says what comes next (RFC 0006): the node's `agent`, or a plan of a test definition. */
export const SUPERVISOR_NODE_TYPE = 'core.orchestrator.supervisor' satisfies NodeType;
/**
 * Forms in which a human is asked, with their versions: by gates, and by agents in the place of a decision. With or
 * without agents, the profile openwop-interrupts is derived from them (profiles.md).
 */
export const ENVELOPES = { 'clarification.request': 1 } as const;

type Ask =
  | 'nodeTypes'
  | 'testNodeTypes'
  | 'hooks'
  | 'talkFields'
  | 'nodeFields'
  | 'agentFields'
  | 'metadata'
  | 'agentSharing'
  | 'memoryShape'
  | 'configurable';
type ReasonAsk = 'refFields' | 'triggerTypes' | 'valueTypes' | 'askUserRoutings' | 'requestFields';
type CodeAsk = 'configurableCodes' | 'aiOptions';

/** The names of one column that ask for what no deployment offers, each with its capability. */
function lackingBy(ask: Ask): ReadonlyMap<string, Capability> {
  return new Map(
    LACKING_ROWS.flatMap(([name, row]) =>
      (row[ask] ?? []).map((key): [string, Capability] => [key, name]),
    ),
  );
}

/** By what a definition or a request asks for what no deployment of this release offers: name → capability. */
export const LACKING: Readonly<Record<Ask, ReadonlyMap<string, Capability>>> = {
  nodeTypes: lackingBy('nodeTypes'),
  testNodeTypes: lackingBy('testNodeTypes'),
  hooks: lackingBy('hooks'),
  talkFields: lackingBy('talkFields'),
  nodeFields: lackingBy('nodeFields'),
  agentFields: lackingBy('agentFields'),
  metadata: lackingBy('metadata'),
  agentSharing: lackingBy('agentSharing'),
  memoryShape: lackingBy('memoryShape'),
  configurable: lackingBy('configurable'),
};

/** Types of nodes that only definitions made for tests may have, each with its capability. */
export const TEST_NODE_TYPES: ReadonlyMap<string, Capability> = new Map(
  ROWS.flatMap(([name, { ofTests, nodeTypes = [] }]) =>
    ofTests ? nodeTypes.map((type): [string, Capability] => [type, name]) : [],
  ),
);

/** Ids of definitions made for tests begin so (conformance/fixtures.md). */
const TEST_DEFINITIONS = 'conformance-';

export function isTestDefinition({ id }: { readonly id: string }): boolean {
  return id.startsWith(TEST_DEFINITIONS);
}

/** The names of one column that are refused in words of their own, or with a code of their own. */
function refusedBy<Word extends string>(
  wordsOf: (row: CapabilityRow) => Readonly<Record<string, Word>> | undefined,
): ReadonlyMap<string, Word> {
  return new Map(LACKING_ROWS.flatMap(([, row]) => Object.entries(wordsOf(row) ?? {})));
}

/** What is refused with validation_error: name → reason. */
export const REASONS: Readonly<Record<ReasonAsk, ReadonlyMap<string, string>>> = {
  refFields: refusedBy((row) => row.refFields),
  triggerTypes: refusedBy((row) => row.triggerTypes),
  valueTypes: refusedBy((row) => row.valueTypes),
  askUserRoutings: refusedBy((row) => row.askUserRoutings),
  requestFields: refusedBy((row) => row.requestFields),
};

/** What is refused with a code of its own: name → code. */
export const CODES: Readonly<Record<CodeAsk, ReadonlyMap<string, ErrorCode>>> = {
  configurableCodes: refusedBy((row) => row.configurableCodes),
  aiOptions: refusedBy((row) => row.aiOptions),
};

/** The capability that a request asks for by a value of its own, and that is not offered. */
export function lackingOfRequest(request: JsonObject): Capability | undefined {
  return LACKING_ROWS.find(([, row]) =>
    Object.entries(row.request ?? {}).some(([field, value]) => request[field] === value),
  )?.[0];
}

/** Of a deployment that has all that one may have. */
function factsOfAll(testMode: boolean): HostFacts {
  return {
    ...{ agents: true, tools: true, live: true, providers: [], escalation: true, testMode },
    forcesExpiry: false,
  };
}

/** Node types that a definition may use. Agents need not be there yet: a node names the one that it invokes. */
export function nodeTypesOf({ testMode }: Pick<HostFacts, 'testMode'>): ReadonlySet<string> {
  const any = factsOfAll(testMode);
  return new Set(
    ROWS.flatMap(([, { offered, nodeTypes = [], testNodeTypes = [] }]) => [
      ...(offered(any) ? nodeTypes : []),
      ...(testMode ? testNodeTypes : []),
    ]),
  );
}

export interface GateField {
  readonly capability: Capability;
  readonly isOffered: boolean;
}

/** Fields of an approval gate's config that ask for a capability, by name. */
export function gateFieldsOf({
  testMode,
}: Pick<HostFacts, 'testMode'>): ReadonlyMap<string, GateField> {
  const any = factsOfAll(testMode);
  return new Map(
    ROWS.flatMap(([capability, { offered, gateFields = [] }]) =>
      gateFields.map((name): [string, GateField] => [
        name,
        { capability, isOffered: offered(any) },
      ]),
    ),
  );
}

/** The capability families of the discovery document. */
export function familiesOf(facts: HostFacts): JsonObject {
  const families: JsonObject = {};
  for (const [name, { offered, shown }] of ROWS) {
    const value = shown ? shown(facts) : offered(facts) || undefined;
    const path = name.split('.');
    const last = path.pop() ?? '';
    const parent = path.reduce<JsonValue | undefined>(
      (above, part) => (isJsonObject(above) ? above[part] : undefined),
      families,
    );
    if (value !== undefined && isJsonObject(parent)) parent[last] = value;
  }
  return families;
}

/** A gate asks once in a visit. */
const GATE_ROUNDS = 1;
/** A model turn ends in one decision. */
const ENVELOPES_PER_TURN = 1;

/**
 * How often a node asks and a model is asked again (capabilities.md §Engine-enforced limits). Without agents gates ask,
 * and no model is asked.
 */
export function roundsOf({ agents }: Pick<HostFacts, 'agents'>): JsonObject {
  return {
    clarificationRounds: agents ? MAX_ESCALATIONS_PER_VISIT : GATE_ROUNDS,
    schemaRounds: agents ? SCHEMA_ROUNDS : 0,
    envelopesPerTurn: agents ? ENVELOPES_PER_TURN : 0,
  };
}

/** Keys of what is offered, with dots between a family and its parts: what `requiresCapabilities` may name (RFC 0092). */
export function capabilityKeys(families: JsonObject, above = ''): Set<string> {
  const keys = Object.entries(families).flatMap(([name, value]) => {
    const key = `${above}${name}`;
    if (value === true) return [key];
    if (!isJsonObject(value) || value.supported === false) return [];
    return [key, ...capabilityKeys(value, `${key}.`)];
  });
  return new Set(keys);
}
