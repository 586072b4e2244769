// From a valid request to what the run is started with (architecture §2.6): definition and agents pinned, variables
// filled from defaults and inputs, known secrets taken out.
import { randomInt } from 'node:crypto';
import { AGENT_NODE_TYPE, isTestDefinition, type Capability } from '../rules/capabilities.ts';
import { HostError, invalid } from '../rules/errors.ts';
import { jsonBytes, type JsonObject, type JsonValue, pointerSegment } from '../rules/json.ts';
import { askedModel } from '../rules/model-choice.ts';
import { INTERRUPT_TIMEOUT_MS } from '../rules/limits.ts';
import { MAX_HANDOFF_AGENTS, successorsOf } from '../rules/handoffs.ts';
import { asksModel, type AskingRun } from '../rules/orchestrator.ts';
import { ERA, REVISION } from '../rules/versions.ts';
import {
  MESSAGE_CHANNEL,
  startingMessageId,
  TRANSLATE_VERSION,
  type PinnedAgent,
  type Rehearsal,
  type RunHeader,
  type RunInput,
} from '../rules/run-input.ts';
import { hasType } from '../rules/variables.ts';
import type { Caller } from '../ports/caller.ts';
import type { Fault } from '../wire/checked.ts';
import type {
  WorkflowDefinition,
  WorkflowNode,
  WorkflowVariable,
} from '../../schemas/types.generated.ts';
import { agentsOf, readConfigurable, RUN_LIMITS } from './configurable.ts';
import { requireTaken } from './model-options.ts';
import type { RunsDeps } from './deps.ts';
import { INPUTS_BYTES, type RunRequest } from './request.ts';
import { textTask } from './task.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 27;
/** Id of the only agent node of a run that was started by agentId. */
const AGENT_NODE = 'agent';

/** `<prefix>-` and 27 random base62 characters: about 160 bits. */
function randomId(prefix: string): string {
  return `${prefix}-${Array.from({ length: ID_LENGTH }, () => BASE62.charAt(randomInt(BASE62.length))).join('')}`;
}

/** Of a run that nobody started from another one, in a session of its own. */
export function newRoot(): { readonly runId: string; readonly sessionId: string } {
  return { runId: randomId('run'), sessionId: randomId('session') };
}

/** Of what forks many runs at once. */
export function newCohortId(): string {
  return randomId('cohort');
}

type InputDeps = Pick<RunsDeps, 'catalog' | 'models' | 'redactor' | 'config'>;

/** What a run is among runs. */
export interface Birth {
  readonly runId: string;
  readonly header: RunHeader;
  /** Variables that begin without a value, whatever their default. */
  readonly unset?: readonly string[];
  /** The run above is a rehearsal, and so is this one. */
  readonly rehearsal?: Rehearsal;
}

/** The first of a chain, in the session that is asked for or in one of its own. Throws capability_not_provided. */
function rootBirth({ config }: Pick<InputDeps, 'config'>, request: RunRequest): Birth {
  const { runId, sessionId: own } = newRoot();
  const { sessionId = own, isRehearsal } = request;
  if (isRehearsal) requireRehearsals(config);
  return {
    ...{ runId, header: { sessionId, correlationId: runId } },
    ...(isRehearsal ? { rehearsal: {} } : {}),
  };
}

/** Only a host of one's own has rehearsals (`npm start`): elsewhere somebody else's work waits beside them. */
export function requireRehearsals({ rehearsals }: Pick<RunsDeps['config'], 'rehearsals'>): void {
  if (!rehearsals) throw new HostError('capability_not_provided', { capability: REHEARSALS });
}

const REHEARSALS: Capability = 'rehearsals';

/**
 * Throws workflow_not_found, agent_not_found, model_unavailable, validation_error, unsupported_mock_provider,
 * payload_too_large, handoff_task_schema_violation, capability_not_provided (a rehearsal).
 */
export function buildRunInput(
  deps: InputDeps,
  caller: Caller,
  { birth, ...request }: RunRequest & { readonly birth?: Birth },
): RunInput {
  const { catalog, config, redactor } = deps;
  const { runId, header, unset = [], rehearsal } = birth ?? rootBirth(deps, request);
  const inputs = inputsOf(deps, caller, request);
  const definition = definitionOf(deps, caller, { ...request, inputs });
  const isTested = config.testMode && isTestDefinition(definition);
  const run = { definition, ...(isTested ? { testHooks: true as const } : {}) };
  const configurable = readConfigurable(request.configurable, run, deps.models);
  // A child has its parent's.
  if (!birth) requireTaken(deps.models, { asked: request.configurable, configurable, ...run });
  const agents = pinnedAgents(catalog, caller, run);
  requireModels(deps, { ...run, agents, configurable });
  const { reasoningVerbosity } = configurable;
  const verbosity =
    reasoningVerbosity === 'full' || reasoningVerbosity === 'off' ? reasoningVerbosity : 'summary';
  return {
    runId,
    tenant: caller.tenant,
    subject: caller.subject,
    idSeed: runId,
    translateVersion: TRANSLATE_VERSION,
    header,
    ...{ ...run, definition: withPublishedRefs(definition) },
    source: sourceOf(request),
    ...messageOf(runId, request),
    variables: redactor.json(startVariables(withoutDefaults(definition.variables, unset), inputs)),
    configurable: redactor.json(configurable),
    ...(request.tags ? { tags: request.tags.map((tag) => redactor.text(tag)) } : {}),
    ...(request.metadata ? { metadata: redactor.json(request.metadata) } : {}),
    agents,
    limits: {
      ...RUN_LIMITS,
      interruptTimeoutMs: config.interruptTimeoutMs ?? INTERRUPT_TIMEOUT_MS,
    },
    policy: { escalation: config.escalation, verbosity },
    era: ERA,
    revision: REVISION,
    ...(rehearsal ? { rehearsal } : {}),
    ...(config.forceContinueAsNewAfter === undefined
      ? {}
      : { forceContinueAsNewAfter: config.forceContinueAsNewAfter }),
  };
}

function sourceOf({ agentId, said }: RunRequest): RunInput['source'] {
  if (said) return 'chat-mention';
  return agentId === undefined ? 'workflow-node' : 'run-api';
}

/** Throws agent_not_found and handoff_task_schema_violation, of what somebody said to an agent. */
function inputsOf(
  { catalog }: InputDeps,
  { tenant }: Caller,
  { agentId = '', said, inputs }: RunRequest,
): JsonObject {
  if (!said) return inputs;
  const agent = catalog.agent(tenant, agentId);
  if (!agent) throw new HostError('agent_not_found', { agentId });
  return textTask(agent, said.text);
}

/** Seed 000 §G; who talks is a user, whoever's credential it is. */
function messageOf(runId: string, { agentId = '', said }: RunRequest): Pick<RunInput, 'message'> {
  if (!said) return {};
  const message = {
    ...{ messageId: startingMessageId(runId), from: 'user', to: agentId, role: 'user' },
    ...{ content: said.text, ts: said.atMs },
  };
  return { message };
}

/** Classes of models by RFC 0002, in the words of the published AgentRef. */
const PUBLISHED_CLASS: Readonly<Record<string, string>> = {
  coding: 'code',
  research: 'retrieval',
  writing: 'chat',
  general: 'chat',
};

/** Refs are taken in both forms and shown in the published one, which has no agentSharing. */
function withPublishedRefs(definition: WorkflowDefinition): WorkflowDefinition {
  const nodes = definition.nodes.map((node) => {
    if (!node.agent) return node;
    const ref = { ...node.agent };
    delete ref.agentSharing;
    const modelClass = PUBLISHED_CLASS[ref.modelClass ?? ''] ?? ref.modelClass;
    const agent = { ...ref, ...(modelClass === undefined ? {} : { modelClass }) };
    return { ...node, agent: agent as WorkflowNode['agent'] };
  });
  return { ...definition, nodes: nodes as WorkflowDefinition['nodes'] };
}

function definitionOf(
  { catalog }: InputDeps,
  caller: Caller,
  request: RunRequest,
): WorkflowDefinition {
  const { agentId, inputs, said } = request;
  if (agentId !== undefined)
    return {
      ...agentDefinition(agentId, inputs),
      ...(said ? { channels: { [MESSAGE_CHANNEL]: { reducer: 'message' } } } : {}),
    };
  const definition = catalog.definition(caller.tenant, request.workflowId ?? '');
  if (!definition) throw new HostError('workflow_not_found');
  return definition;
}

/** RFC 0072: `agentId` expands into a one-node run identical to the pinned form. Every input becomes a variable. */
export function agentDefinition(agentId: string, inputs: JsonObject): WorkflowDefinition {
  const names = Object.keys(inputs);
  return {
    id: `agent:${agentId}`,
    name: agentId,
    version: '1',
    nodes: [
      {
        id: AGENT_NODE,
        typeId: AGENT_NODE_TYPE,
        name: agentId,
        position: { x: 0, y: 0 },
        config: {},
        inputs: Object.fromEntries(
          names.map((name) => [name, { type: 'variable', variableName: name }]),
        ),
        agent: { agentId },
      },
    ],
    edges: [],
    triggers: [{ id: 'api', type: 'manual' }],
    variables: names.map((name) => ({ name, type: typeOf(inputs[name] ?? null) })),
    metadata: {},
    settings: {},
  };
}

function typeOf(value: JsonValue): WorkflowVariable['type'] {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return typeof value as 'string';
  return 'object';
}

/**
 * Defaults overlaid by inputs; inputs that are not declared are dropped, so that they reach no event
 * (run-event.schema.json).
 */
export function startVariables(
  declared: readonly WorkflowVariable[],
  inputs: JsonObject,
): JsonObject {
  const errors = inputFaults(declared, inputs);
  const [first] = errors;
  if (first) throw invalid(first.pointer, first.message, { errors });
  const variables: JsonObject = {};
  for (const variable of declared) {
    const value = startValue(variable, inputs);
    if (value === undefined) continue;
    // A name such as __proto__ must become a plain member, whatever it is.
    Object.defineProperty(variables, variable.name, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  if (jsonBytes(variables) > INPUTS_BYTES)
    throw new HostError('payload_too_large', { field: '/inputs', limit: INPUTS_BYTES });
  return variables;
}

function withoutDefaults(
  declared: readonly WorkflowVariable[],
  unset: readonly string[],
): readonly WorkflowVariable[] {
  if (unset.length === 0) return declared;
  return declared.map(({ defaultValue, ...variable }) =>
    defaultValue === undefined || unset.includes(variable.name)
      ? variable
      : { ...variable, defaultValue },
  );
}

/** What is wrong with the inputs for these variables: one fault for each variable at most, in their order. */
export function inputFaults(
  declared: readonly WorkflowVariable[],
  inputs: JsonObject,
): readonly Fault[] {
  return declared.flatMap((variable) => {
    const { name, type, required } = variable;
    const value = startValue(variable, inputs) ?? null;
    const isRight = value === null ? !required : hasType(value, type);
    const message = value === null ? 'is required' : `must be of type ${type}`;
    return isRight ? [] : [{ pointer: `/inputs/${pointerSegment(name)}`, message }];
  });
}

function startValue(
  { name, defaultValue }: WorkflowVariable,
  inputs: JsonObject,
): JsonValue | undefined {
  return Object.hasOwn(inputs, name) ? inputs[name] : (defaultValue as JsonValue | undefined);
}

function pinnedAgents(
  catalog: InputDeps['catalog'],
  caller: Caller,
  run: AskingRun,
): Readonly<Record<string, PinnedAgent>> {
  const { definition } = run;
  const pinned: Record<string, PinnedAgent> = {};
  for (const node of definition.nodes) {
    const { agent } = node;
    if (!agent) continue;
    const found = catalog.agent(caller.tenant, agent.agentId);
    if (found) pinned[agent.agentId] = found.pinned;
    // A pin on another kind of node only names the agent; a node that invokes one needs it.
    else if (asksModel(node, run))
      throw new HostError('agent_not_found', { agentId: agent.agentId });
  }
  const load = (agentId: string) => catalog.agent(caller.tenant, agentId)?.pinned;
  const successors = successorsOf(invokedAgents(run, pinned), load);
  if (successors.length > MAX_HANDOFF_AGENTS)
    throw invalid(
      '/workflowId',
      `has agents that may pass control to more than ${MAX_HANDOFF_AGENTS}`,
    );
  for (const agent of successors) pinned[agent.agentId] ??= agent;
  return pinned;
}

/** Those of these that the run asks, one for each node that asks it. */
export function invokedAgents(
  run: AskingRun,
  agents: Readonly<Record<string, PinnedAgent>>,
): PinnedAgent[] {
  return agentsOf(run).flatMap((agentId) => agents[agentId] ?? []);
}

/** A run whose agent has no model would fail at its first step: it is refused while nothing has happened yet. */
function requireModels(
  { models }: InputDeps,
  run: AskingRun & Pick<RunInput, 'agents' | 'configurable'>,
): void {
  const asked = askedModel(run.configurable);
  const invoked = invokedAgents(run, run.agents);
  const successors = successorsOf(invoked, (agentId) => run.agents[agentId]);
  for (const agent of [...invoked, ...successors]) models.choose(agent, asked);
}
