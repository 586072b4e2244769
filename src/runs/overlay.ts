// What somebody asks a branch to go by that its source did not (replay.md §Modes, runOptionsOverlay): checked as what a run is
// started with, each part at the event that it is about.
import { agentNamed } from '../rules/children.ts';
import { HostError, invalid } from '../rules/errors.ts';
import { eventRow, type EventPart } from '../rules/events.ts';
import { activityEventKey, digestOf, sha256Hex } from '../rules/ids.ts';
import {
  canonicalJson,
  isJsonObject,
  jsonBytes,
  type JsonObject,
  type JsonValue,
} from '../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../rules/limits.ts';
import { askedModel } from '../rules/model-choice.ts';
import { withOverlay, type OverlaidAnswer, type Overlay } from '../rules/overlay.ts';
import type { PinnedAgent, RunInput } from '../rules/run-input.ts';
import { fold, openInterrupts } from '../log/fold.ts';
import type { Caller } from '../ports/caller.ts';
import type { ResolvedAgent } from '../ports/catalog.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { asksModel, type AskingRun } from '../rules/orchestrator.ts';
import type { RunForkOverlay } from '../../schemas/types.generated.ts';
import { checkedValue } from './answer.ts';
import { normalized, readConfigurable } from './configurable.ts';
import { agentIdsOf } from './cohort-change.ts';
import type { RunsDeps } from './deps.ts';
import { invokedAgents, startVariables } from './input.ts';
import { requireTaken } from './model-options.ts';
import { requireScope } from './scopes.ts';
import { kept } from './secrets.ts';

/** All of an overlay together: it travels in history. */
const OVERLAY_BYTES = 256 * 1024;
/** Agents that are named to who named another. */
const MAX_NAMED_AGENTS = 20;

export type OverlayDeps = Pick<RunsDeps, 'catalog' | 'models' | 'redactor'> & {
  readonly stores: Pick<Stores, 'content'>;
};

export interface OverlayRequest {
  readonly caller: Caller;
  readonly source: RunRow;
  /** What the source goes by where the branch leaves it. */
  readonly input: RunInput;
  /** Of its log. */
  readonly length: number;
  readonly asked: RunForkOverlay;
  /** The source's log up to the event that the branch begins with. */
  readonly before: readonly LogRow[];
  /** That event. Absent: the branch begins behind the last. */
  readonly at: LogRow | undefined;
}

/** As it is kept with the run. */
export interface ReadOverlay extends Overlay {
  /** Start values, where they are others. */
  readonly variables?: JsonObject;
  /** Without credentials. */
  readonly asked: JsonObject;
}

/**
 * Throws validation_error, payload_too_large, agent_not_found, model_unavailable, model_not_configured, forbidden (a human's
 * answer, of who may not answer), and what a configuration is refused with.
 */
export async function readOverlay(
  deps: OverlayDeps,
  given: OverlayRequest,
): Promise<ReadOverlay | undefined> {
  const checked = await checkOverlay(deps, given);
  if (!checked) return undefined;
  const { spoken, ...overlay } = checked;
  const { agents } = overlay;
  return agents
    ? { ...overlay, agents: await withPrompts(deps, given.source, { agents, spoken }) }
    : overlay;
}

/** All of it but for what is stored: agents with another prompt have their manifests without it, and are in `spoken`. */
interface CheckedOverlay extends ReadOverlay {
  readonly spoken: readonly SpokenAgent[];
}

/** An agent with another prompt. */
interface SpokenAgent {
  readonly agentId: string;
  readonly manifest: ResolvedAgent;
}

/** Throws as readOverlay, and stores nothing. */
export async function checkOverlay(
  deps: OverlayDeps,
  given: OverlayRequest,
): Promise<CheckedOverlay | undefined> {
  if (Object.keys(given.asked).length === 0) return undefined;
  const asked = withAgentIds(given);
  const request = { ...given, asked };
  if (jsonBytes(asked) > OVERLAY_BYTES)
    throw new HostError('payload_too_large', { field: FIELD, limit: OVERLAY_BYTES });
  const shown = { ...(asked as JsonObject), ...shownConfigurable(asked) };
  kept(deps, shown, OVERLAY);
  const variables = variablesOf(deps, request);
  const configurable = configurableOf(deps, request);
  const agents = agentsFor(deps, request);
  const input = withOverlay(request.input, { configurable, agents });
  const models = asked.configurable || agents ? modelsOf(deps, input, asked) : undefined;
  const answer = answerOf(request);
  return {
    spoken: agents ? await spokenBy(deps, request, agents) : [],
    ...(variables ? { variables } : {}),
    ...(configurable ? { configurable } : {}),
    ...(agents ? { agents } : {}),
    ...(models ? { models } : {}),
    ...(answer ? { answer } : {}),
    ...recordedOf(request),
    ...(asked.onDivergence === 'live' ? { onDivergence: asked.onDivergence } : {}),
    asked: shown,
  };
}

/** A credential stands nowhere. */
function shownConfigurable({ configurable }: RunForkOverlay): JsonObject {
  return configurable ? { configurable: normalized(configurable as JsonObject) } : {};
}

function recordedOf({
  asked: { tools, answers },
  source: { runId },
  length,
}: OverlayRequest): Pick<Overlay, 'recordedTools' | 'recordedAnswers'> {
  const recorded = { runId, length };
  return {
    ...(tools === undefined ? {} : { recordedTools: tools === 'live' ? null : recorded }),
    ...(answers === undefined ? {} : { recordedAnswers: answers === 'live' ? null : recorded }),
  };
}

const FIELD = '/runOptionsOverlay';
const OVERLAY = { field: FIELD, name: 'The change' };

function variablesOf(
  { redactor }: OverlayDeps,
  { asked, source, before }: OverlayRequest,
): JsonObject | undefined {
  if (!asked.inputs) return undefined;
  if (before.length > 0)
    throw invalid(
      `${FIELD}/inputs`,
      'are what the first event holds: only a branch from 0 has others',
    );
  const { definition, variables } = source.input;
  const inputs = { ...variables, ...(asked.inputs as JsonObject) };
  return redactor.json(startVariables(definition.variables, inputs));
}

function configurableOf(
  { models }: OverlayDeps,
  { asked, input, before: record }: OverlayRequest,
): JsonObject | undefined {
  if (!asked.configurable) return undefined;
  const own = asked.configurable as JsonObject;
  const { configurable: before } = input;
  if (own.runTimeoutMs !== undefined && record.length > 0)
    throw invalid(
      `${FIELD}/configurable/runTimeoutMs`,
      'counts from the start: of a branch from 0',
    );
  const ai: JsonObject =
    isJsonObject(before.ai) && isJsonObject(own.ai) ? { ai: { ...before.ai, ...own.ai } } : {};
  const merged = readConfigurable({ ...before, ...own, ...ai }, input, models);
  const keepsModels = record.length > 0;
  requireTaken(models, { ...input, asked: own, configurable: merged, keepsModels });
  if (jsonBytes(merged) > INLINE_VALUE_BYTES)
    throw new HostError('payload_too_large', {
      ...{ field: `${FIELD}/configurable`, limit: INLINE_VALUE_BYTES },
    });
  return merged;
}

/** A name may stand for an agent, as in a cohort; what is kept has its id. */
function withAgentIds({ asked, input }: OverlayRequest): RunForkOverlay {
  if (!asked.agents) return asked;
  const agents: NonNullable<RunForkOverlay['agents']> = {};
  for (const [name, change] of Object.entries(asked.agents)) {
    const [agentId, ...others] = agentIdsOf(name, input);
    if (agentId === undefined) throw noAgent(name, input);
    if (others.length > 0)
      throw invalid(`${FIELD}/agents/${name}`, 'stands for several agents: name one by its id', {
        candidates: [agentId, ...others],
      });
    if (Object.hasOwn(agents, agentId))
      throw invalid(`${FIELD}/agents/${name}`, 'stands for an agent that another name stands for');
    agents[agentId] = change;
  }
  return { ...asked, agents };
}

function noAgent(name: string, { agents }: RunInput): HostError {
  const known = Object.keys(agents).slice(0, MAX_NAMED_AGENTS).join(', ');
  const reason = `The run has no agent "${name}". It has: ${known === '' ? 'none' : known}.`;
  return new HostError('agent_not_found', { agentId: name, reason });
}

function agentsFor(
  deps: OverlayDeps,
  { asked, caller, input }: OverlayRequest,
): Record<string, PinnedAgent> | undefined {
  if (!asked.agents) return undefined;
  const agents: Record<string, PinnedAgent> = {};
  for (const [agentId, { packVersion }] of Object.entries(asked.agents)) {
    const before = input.agents[agentId];
    if (!before) throw noAgent(agentId, input);
    const pinned =
      packVersion === undefined ? before : versionOf(deps, caller, { agentId, packVersion });
    agents[agentId] = { ...pinned, isOverlaid: true };
  }
  return agents;
}

function versionOf(
  { catalog }: OverlayDeps,
  { tenant }: Caller,
  { agentId, packVersion }: { readonly agentId: string; readonly packVersion: string },
): PinnedAgent {
  const found = catalog.agent(tenant, agentId);
  if (found?.packVersion !== packVersion)
    throw new HostError('agent_not_found', { agentId, packVersion, found: found?.packVersion });
  return found.pinned;
}

/** The same agents with other prompts, which their versions say. */
async function spokenBy(
  { stores: { content } }: OverlayDeps,
  { asked, source }: OverlayRequest,
  agents: Readonly<Record<string, PinnedAgent>>,
): Promise<SpokenAgent[]> {
  const spoken: SpokenAgent[] = [];
  for (const [agentId, { systemPrompt }] of Object.entries(asked.agents ?? {})) {
    const pinned = agents[agentId];
    if (!pinned || systemPrompt === undefined) continue;
    const text = new TextDecoder().decode(await content.get(source.tenant, pinned.manifestHash));
    const before = JSON.parse(text) as ResolvedAgent;
    const [version = ''] = before.packVersion.split('+');
    const packVersion = `${version}+overlay.${sha256Hex(systemPrompt).slice(0, 12)}`;
    spoken.push({ agentId, manifest: { ...before, packVersion, systemPrompt } });
  }
  return spoken;
}

/** With their prompts stored: as their source's until there is a fork, which takes over what that one needs. */
async function withPrompts(
  { stores: { content } }: OverlayDeps,
  source: RunRow,
  { agents, spoken }: Required<Pick<CheckedOverlay, 'agents' | 'spoken'>>,
): Promise<Record<string, PinnedAgent>> {
  const stored: Record<string, PinnedAgent> = { ...agents };
  for (const { agentId, manifest } of spoken) {
    const pinned = stored[agentId];
    if (!pinned) continue;
    const bytes = new TextEncoder().encode(JSON.stringify(manifest));
    stored[agentId] = { ...pinned, manifestHash: await content.put(source, bytes) };
  }
  return stored;
}

/** Chosen anew where a model is asked for, or an agent is of another class. */
function modelsOf(
  { models }: OverlayDeps,
  run: RunInput,
  asked: RunForkOverlay,
): Overlay['models'] {
  const wanted = askedModel(run.configurable);
  const isAsked = Object.keys(askedModel((asked.configurable ?? {}) as JsonObject)).length > 0;
  const changed = invokedAgents(run, run.agents).filter(
    ({ agentId }) => isAsked || asked.agents?.[agentId],
  );
  return Object.fromEntries(
    changed.map((agent) => [agent.modelClass, models.choose(agent, wanted)]),
  );
}

function answerOf(request: OverlayRequest): OverlaidAnswer | undefined {
  const { asked, before, at } = request;
  if (!asked.answer) return undefined;
  const { seq } = asked.answer;
  if (seq !== before.length) throw invalid(`${FIELD}/answer/seq`, 'must be fromSeq');
  const value = asked.answer.value as JsonValue;
  if (jsonBytes(value) > INLINE_VALUE_BYTES)
    throw new HostError('payload_too_large', { field: VALUE, limit: INLINE_VALUE_BYTES });
  const activityId = at && answeringActivity(at, request.source.input);
  if (activityId === undefined) return messageOf(request, value);
  if (at && eventRow(at.type).part === 'return') {
    const { callId } = JSON.parse(at.payload) as { readonly callId?: string };
    const ofCall = callId === undefined ? {} : { callId };
    return { kind: 'outcome', activityId, outcome: value, ...ofCall };
  }
  const final = typeof value === 'string' ? value : JSON.stringify(value);
  return { kind: 'said', activityId, final };
}

const VALUE = `${FIELD}/answer/value`;

/** The activity whose answer the event tells first: of a tool, or of a model. */
function answeringActivity({ key, type, nodeId }: LogRow, run: AskingRun): string | undefined {
  // Agents that are scripted node by node ask nobody.
  const node = run.definition.nodes.find(({ id }) => id === nodeId);
  if (!node || !asksModel(node, run)) return undefined;
  const activityId = key.slice(0, key.lastIndexOf('#'));
  const isFirst = key === activityEventKey(activityId, 0) && !activityId.endsWith('.seal');
  return isFirst && ANSWERS.has(eventRow(type).part) ? activityId : undefined;
}

/** Who gave the answer that the event tells; an overlay may have another one there. */
export function answererOf(
  row: LogRow,
  run: AskingRun,
): 'tool' | 'agent' | 'model' | 'human' | undefined {
  const { part } = eventRow(row.type);
  if (part === 'wait-ends') return 'human';
  if (answeringActivity(row, run) === undefined) return undefined;
  if (part !== 'return') return 'model';
  const { toolName = '' } = JSON.parse(row.payload) as { readonly toolName?: string };
  return agentNamed(toolName) === undefined ? 'tool' : 'agent';
}

/** `usage`: of a model whose reasoning is not shown. */
const ANSWERS: ReadonlySet<EventPart> = new Set(['return', 'reasoning', 'usage']);

function messageOf(
  { at, before, caller, source }: OverlayRequest,
  value: JsonValue,
): OverlaidAnswer {
  // It counts as theirs, as one that is sent to the question does.
  requireScope(caller, 'approvals:respond');
  const { interruptId } =
    at && eventRow(at.type).part === 'wait-ends' ? (JSON.parse(at.payload) as JsonObject) : {};
  const snapshot = fold(null, before, source.input.definition);
  const open = openInterrupts(snapshot).find((each) => each.interruptId === interruptId);
  if (!open)
    throw invalid(
      `${FIELD}/answer/seq`,
      'is no event that tells an answer of a tool, a model or a human',
    );
  const { nodeId, resumeSchema = {} } = open;
  if (open.kind === 'conversation.exchange')
    throw invalid(
      `${FIELD}/answer/seq`,
      'is of a conversation, which an event before it has closed',
    );
  if (typeof open.data.requiredApprovals === 'number' && open.data.requiredApprovals > 1)
    throw invalid(
      `${FIELD}/answer/seq`,
      'is what several people answered: one answer decides nothing',
    );
  const own = checkedValue(value, { question: open, field: VALUE });
  return {
    kind: 'message',
    message: {
      ...{ kind: 'resolve-interrupt', nodeId, interruptId: open.interruptId, value: own },
      schemaDigest: digestOf(canonicalJson(resumeSchema)),
      bodyDigest: sha256Hex(canonicalJson(own)),
      resolvedBy: caller.subject,
    },
  };
}
