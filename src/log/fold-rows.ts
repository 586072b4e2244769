// What each event type does to the folded run (run-snapshot.schema.json): one small pure function per family.
import { foldWrite, type ChannelRules } from '../rules/channels.ts';
import { codeOf } from '../rules/errors.ts';
import { eventRow, type EventPart, type NodeStatus } from '../rules/events.ts';
import { reasonOf } from '../rules/gate-actions.ts';
import { isJsonObject, jsonBytes, type JsonObject, type JsonValue } from '../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../rules/limits.ts';
import { isReducer } from '../rules/reducers.ts';
import type { InterruptKind } from '../rules/status.ts';
import {
  heardIn,
  progressOf,
  saidWith,
  votedFor,
  votesIn,
  withVote,
  type StandingVote,
} from '../rules/votes.ts';
import type { AgentRef } from '../../schemas/types.generated.ts';

export interface NodeState {
  readonly status: NodeStatus;
  /** Node attempts over all visits. */
  readonly attempts: number;
  readonly visits: number;
  /** Sequence of the event that its last visit began with; absent: it never began. */
  readonly begunAt?: number;
  /** Sequence of the event that gave it its status. */
  readonly changedAt: number;
}

/** An interrupt that waits for its answer. Times in ms epoch. */
export interface OpenInterrupt {
  readonly nodeId: string;
  readonly interruptId: string;
  readonly kind: InterruptKind;
  readonly key: string;
  readonly data: JsonObject;
  /** Frozen when raised; absent: any value is taken. */
  readonly resumeSchema?: JsonObject;
  readonly requestedAtMs: number;
  /** Start of the node's attempt that asks: its own time may be over before the question's. */
  readonly attemptSinceMs?: number;
  /** The question's own. */
  readonly deadlineMs?: number;
  /** The log does not say yet what is asked: a fork's record may end just here. */
  readonly isUntold?: true;
}

export interface Cost {
  readonly tokens: { readonly input: number; readonly output: number };
  /** Only when a provider stated a price: absent is not zero. */
  readonly usd?: number;
  readonly model: string;
  readonly provider: string;
}

/** What the fold knows of a run. JSON. */
export interface FoldedRun {
  readonly startedAtMs?: number;
  /** Of a rehearsal: where its clock stands. What ends at a time ends by that. */
  readonly clock?: { readonly beganMs: number; readonly nowMs: number };
  readonly endedAtMs?: number;
  readonly variables: JsonObject;
  readonly channels: JsonObject;
  readonly nodes: Readonly<Record<string, NodeState>>;
  /** Start of each node's last attempt. */
  readonly attemptsSinceMs: Readonly<Record<string, number>>;
  /** Oldest first. */
  readonly interrupts: readonly OpenInterrupt[];
  /** Agents of nodes, by node. */
  readonly nodeAgents: Readonly<Record<string, AgentRef>>;
  /** The agent that acted last. */
  readonly agent?: AgentRef;
  /** The agent that says what comes next in this run: the same as long as it lasts. */
  readonly runOrchestrator?: AgentRef;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly details?: JsonObject;
  };
  readonly outputs?: JsonObject;
  readonly cost?: Cost;
  /** Sequence of the last row that counts here; -1 before the first. */
  readonly atSequence: number;
}

/** A run before its first row. */
export const EMPTY_RUN: FoldedRun = {
  variables: {},
  channels: {},
  nodes: {},
  attemptsSinceMs: {},
  interrupts: [],
  nodeAgents: {},
  atSequence: -1,
};

const NO_NODE: NodeState = { status: 'running', attempts: 0, visits: 0, changedAt: -1 };

export function objectOr(value: JsonValue | undefined, otherwise: JsonObject): JsonObject {
  return isJsonObject(value) ? value : otherwise;
}

export function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function count(value: JsonValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}

/** A log row, parsed. */
export interface FoldableRow {
  readonly type: string;
  readonly nodeId: string;
  readonly payload: JsonObject;
  readonly timeMs: number;
  readonly sequence: number;
}

/** What ends some time behind the row is counted from then. */
function countedMs({ clock }: FoldedRun, { timeMs }: FoldableRow): number {
  return clock?.nowMs ?? timeMs;
}

/** What every event of a node says of it. Answered once, it is still suspended while it asks something else. */
function moveNode(run: FoldedRun, { type, nodeId, sequence }: FoldableRow): FoldedRun {
  const { node: status } = eventRow(type);
  if (status === null || nodeId === '') return run;
  const asks = status === 'running' && run.interrupts.some((open) => open.nodeId === nodeId);
  const node: NodeState = {
    ...(run.nodes[nodeId] ?? NO_NODE),
    status: asks ? 'suspended' : status,
    changedAt: sequence,
  };
  return { ...run, nodes: { ...run.nodes, [nodeId]: node } };
}

function startNode(run: FoldedRun, row: FoldableRow): FoldedRun {
  const { nodeId, payload, sequence } = row;
  if (nodeId === '') return run;
  const before = run.nodes[nodeId] ?? NO_NODE;
  const first = count(payload.attempt) === 0;
  const node: NodeState = {
    ...before,
    status: 'running',
    attempts: before.attempts + 1,
    visits: before.visits + (first ? 1 : 0),
    ...(first ? { begunAt: sequence } : {}),
    changedAt: sequence,
  };
  const started = {
    ...run,
    nodes: { ...run.nodes, [nodeId]: node },
    attemptsSinceMs: { ...run.attemptsSinceMs, [nodeId]: countedMs(run, row) },
  };
  const { agent } = payload;
  if (!isJsonObject(agent)) return started;
  const ref = agent as unknown as AgentRef;
  return { ...started, agent: ref, nodeAgents: { ...run.nodeAgents, [nodeId]: ref } };
}

function raise(before: FoldedRun, row: FoldableRow): FoldedRun {
  const { nodeId, payload } = row;
  if (nodeId === '') return before;
  const run = moveNode(before, row);
  const since = run.attemptsSinceMs[nodeId];
  const interrupt: OpenInterrupt = {
    nodeId,
    interruptId: text(payload.interruptId),
    kind: text(payload.kind) as InterruptKind,
    key: text(payload.key),
    data: {},
    isUntold: true,
    requestedAtMs: countedMs(run, row),
    ...(since === undefined ? {} : { attemptSinceMs: since }),
  };
  return { ...run, interrupts: [...run.interrupts, interrupt] };
}

const told = ({ isUntold: _, ...open }: OpenInterrupt): OpenInterrupt => open;

/** What is asked carries no id (its payload is closed): node and key say of which interrupt. */
function describe(run: FoldedRun, row: FoldableRow): FoldedRun {
  const { nodeId, payload } = row;
  const at = run.interrupts.findLastIndex(
    (open) => open.nodeId === nodeId && open.key === text(payload.key),
  );
  const found = run.interrupts[at];
  if (!found) return run;
  const described: OpenInterrupt = {
    ...told(found),
    data: objectOr(payload.data, {}),
    ...(isJsonObject(payload.resumeSchema) ? { resumeSchema: payload.resumeSchema } : {}),
    ...(typeof payload.timeoutMs === 'number'
      ? { deadlineMs: countedMs(run, row) + payload.timeoutMs }
      : {}),
  };
  return { ...run, interrupts: run.interrupts.with(at, described) };
}

/** Newest turns of an open conversation that its question shows, in UTF-8 bytes of JSON together. */
const SHOWN_TURNS_BYTES = INLINE_VALUE_BYTES;

/** The turn of an event about one. */
export function turnOf(payload: JsonObject): JsonValue {
  return payload.initialTurn ?? payload.turn ?? payload.finalTurn ?? null;
}

function shownWith(before: JsonValue | undefined, said: JsonValue): JsonValue[] {
  const all = [...(Array.isArray(before) ? before : []), said];
  while (jsonBytes(all) > SHOWN_TURNS_BYTES) all.shift();
  return all;
}

/** What was said last stands with the question, and which turn is next. */
function foldTurn(run: FoldedRun, { payload }: FoldableRow): FoldedRun {
  const { conversationId, turnIndex = 0 } = payload;
  const at = run.interrupts.findIndex(({ data }) => data.conversationId === conversationId);
  const found = run.interrupts[at];
  if (!found || conversationId === undefined) return run;
  const turns = shownWith(found.data.turns, turnOf(payload));
  const data = { ...found.data, turns, turnIndex: count(turnIndex) + 1 };
  return { ...run, interrupts: run.interrupts.with(at, { ...found, data }) };
}

/** What is heard without settling the question stands with it: `more` of its data, and how many have been heard by then. */
function foldHeard(
  run: FoldedRun,
  { interruptId }: JsonObject,
  more: (before: JsonObject, heard: number) => JsonObject,
): FoldedRun {
  const at = run.interrupts.findIndex((open) => open.interruptId === interruptId);
  const found = run.interrupts[at];
  if (!found) return run;
  const { data: before } = found;
  const heard = heardIn(before) + 1;
  const data = { ...before, heard, ...more(before, heard) };
  return { ...run, interrupts: run.interrupts.with(at, { ...found, data }) };
}

/**
 * What may go with votes on an open question, as far as the question shows it, in UTF-8 bytes of JSON together. The votes
 * themselves are not counted: there are at most MAX_VOTERS of them.
 */
const SHOWN_VOTES_BYTES = INLINE_VALUE_BYTES;

/** How far the votes on a question are (interrupt-profiles.md quorum): the last one of each voter counts. */
function foldVote(run: FoldedRun, { payload, sequence }: FoldableRow): FoldedRun {
  return foldHeard(run, payload, (before, heard) => {
    const votes = shownVotes(withVote(votesIn(before), voteOf(payload, { heard, seq: sequence })));
    return { votes, quorumProgress: progressOf(votes) };
  });
}

function voteOf(payload: JsonObject, place: Pick<StandingVote, 'heard' | 'seq'>): StandingVote {
  const value = objectOr(payload.resumeValue, {});
  const { editedArtifactData: content, comment } = value;
  const reason = reasonOf(value);
  return {
    ...{ voter: text(payload.voter), effect: payload.effect === 'continue' ? 'continue' : 'end' },
    ...{ of: votedFor(value), said: saidWith(value), action: text(value.action), ...place },
    ...(reason === undefined ? {} : { reason }),
    ...(text(comment) === '' ? {} : { comment: text(comment) }),
    ...(content === undefined ? {} : { content }),
  };
}

/** Of the oldest, what goes with them is left out where it is too much. */
function shownVotes(all: readonly StandingVote[]): StandingVote[] {
  let bytes = 0;
  const shown = all.toReversed().map((vote): StandingVote => {
    const { reason, comment, content, ...bare } = vote;
    const parts = [reason, comment, content].filter((part) => part !== undefined);
    if (parts.length === 0) return vote;
    bytes += jsonBytes(parts);
    return bytes > SHOWN_VOTES_BYTES ? { ...bare, isCut: true } : vote;
  });
  return shown.reverse();
}

/** What somebody asked about a question stands with it. */
function foldAskedBack(run: FoldedRun, { payload }: FoldableRow): FoldedRun {
  const said = { by: text(payload.askedBy), text: text(payload.text) };
  return foldHeard(run, payload, ({ askedBack }) => ({ askedBack: shownWith(askedBack, said) }));
}

function foldAgent(run: FoldedRun, { type, nodeId, payload }: FoldableRow): FoldedRun {
  const { actor } = eventRow(type);
  const agentId = actor === null ? '' : text(payload[actor]);
  if (agentId === '' || agentId === 'core.system' || agentId === run.agent?.agentId) return run;
  return { ...run, agent: refOf(run, nodeId, agentId) };
}

function refOf({ nodeAgents }: FoldedRun, nodeId: string, agentId: string): AgentRef {
  const pinned = nodeAgents[nodeId];
  return pinned?.agentId === agentId ? pinned : { agentId };
}

function foldOrchestration(before: FoldedRun, row: FoldableRow): FoldedRun {
  const run = foldAgent(before, row);
  if (run.runOrchestrator) return run;
  return { ...run, runOrchestrator: refOf(run, row.nodeId, text(row.payload.agentId)) };
}

function foldUsage(run: FoldedRun, { payload }: FoldableRow): FoldedRun {
  const { costEstimateUsd: usd } = payload;
  const before = run.cost?.tokens ?? { input: 0, output: 0 };
  const known = run.cost?.usd !== undefined || typeof usd === 'number';
  const cost: Cost = {
    ...(known ? { usd: (run.cost?.usd ?? 0) + count(usd) } : {}),
    tokens: {
      input: before.input + count(payload.inputTokens),
      output: before.output + count(payload.outputTokens),
    },
    model: text(payload.model),
    provider: text(payload.provider),
  };
  return { ...run, cost };
}

/**
 * By the reducer that was recorded with the write (channels-and-reducers.md §Replay determinism). A write that does not
 * fit it changes nothing: it was refused where it was made, or is masked.
 */
function reduced(
  before: JsonValue | undefined,
  { reducer, value = null }: JsonObject,
  rules: ChannelRules,
): JsonValue {
  const recorded = text(reducer);
  if (!isReducer(recorded)) return value;
  try {
    return foldWrite({ ...rules, reducer: recorded }, before, value);
  } catch (error) {
    if (codeOf(error) === 'validation_error') return before ?? null;
    throw error;
  }
}

/** What is written to no channel of the definition is a variable, and stands in the log as one too. */
function foldChannel(
  run: FoldedRun,
  { payload }: FoldableRow,
  channels: FoldedChannels,
): FoldedRun {
  const name = text(payload.channel);
  const declared = Object.hasOwn(channels, name) ? channels[name] : undefined;
  if (!declared) return run;
  const next = reduced(run.channels[name] ?? declared.initial, payload, declared.rules);
  return { ...run, channels: { ...run.channels, [name]: next } };
}

function foldEnd(run: FoldedRun, { type, payload, timeMs }: FoldableRow): FoldedRun {
  const error = objectOr(payload.error, {});
  return {
    ...run,
    endedAtMs: timeMs,
    interrupts: [],
    ...(isJsonObject(payload.outputs) ? { outputs: payload.outputs } : {}),
    ...(eventRow(type).run === 'failed'
      ? {
          error: {
            code: text(error.code) || 'internal_error',
            message: text(error.message) || 'The run failed.',
            ...(isJsonObject(error.details) ? { details: error.details } : {}),
          },
        }
      : {}),
  };
}

function foldClock(run: FoldedRun, { payload }: FoldableRow): FoldedRun {
  const nowMs = Date.parse(text(payload.now));
  if (Number.isNaN(nowMs)) return run;
  return { ...run, clock: { beganMs: run.clock?.beganMs ?? nowMs, nowMs } };
}

/** Channels that a run's definition declares, by name. */
export type FoldedChannels = Readonly<
  Record<string, { readonly rules: ChannelRules; readonly initial?: JsonValue }>
>;

type Fold = (run: FoldedRun, row: FoldableRow, channels: FoldedChannels) => FoldedRun;

/** Parts that say more than where their node is and who acts. */
const FOLDS: Partial<Readonly<Record<EventPart, Fold>>> = {
  'run-starts': (run, { payload, timeMs }) => ({
    ...run,
    startedAtMs: timeMs,
    variables: objectOr(payload.inputs, {}),
  }),
  clock: foldClock,
  'run-ends': foldEnd,
  'node-starts': startNode,
  'wait-opens': raise,
  'wait-asks': describe,
  vote: foldVote,
  'asked-back': foldAskedBack,
  'wait-ends': (run, { payload }) => ({
    ...run,
    interrupts: run.interrupts.filter((open) => open.interruptId !== payload.interruptId),
  }),
  variable: (run, { payload }) => ({
    ...run,
    variables: { ...run.variables, [text(payload.name)]: payload.next ?? null },
  }),
  channel: foldChannel,
  turn: foldTurn,
  orchestration: foldOrchestration,
  usage: foldUsage,
};

/** One row of any type; types that say nothing about the run's state change nothing. */
export function foldRow(run: FoldedRun, row: FoldableRow, channels: FoldedChannels): FoldedRun {
  const fold = FOLDS[eventRow(row.type).part];
  return fold ? fold(run, row, channels) : foldAgent(moveNode(run, row), row);
}
