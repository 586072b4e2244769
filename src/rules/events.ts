// The one table of event types: what each means, to whoever reads it. Streams ask which mode shows it
// (stream-modes.md), the status fold what the run is from here on (run-snapshot.schema.json), the endings what it opens
// and closes (architecture §3.1), rendering its seed twins (architecture §9); the snapshot, the fate of a question, the
// page and the terminal go by the part that it plays, so that they name no type. A new type is its schema, its row here
// and who states it.
import type { RunEventPayloads, RunSnapshot } from '../../schemas/types.generated.ts';
import type { Ending } from './endings.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import {
  ownerInFirstMajor,
  subjectInFirstMajor,
  type StoredOwner,
  type Subject,
} from './subject.ts';

/** What this host states: every type has a payload schema. */
export type EventType = keyof RunEventPayloads;

/** What a schema leaves open is JSON. */
type AsJson<T> = unknown extends T
  ? JsonValue
  : T extends object
    ? { [K in keyof T]: AsJson<T[K]> }
    : T;

/** Fields that are stored in another form than the first major shows, which its schemas describe. */
interface Stored {
  readonly 'run.started': { readonly owner?: StoredOwner };
  readonly 'interrupt.resolved': { readonly resolvedBy?: Subject };
}
type StoredAs<T, Wire> = T extends keyof Stored ? Omit<Wire, keyof Stored[T]> & Stored[T] : Wire;

/** A payload as it is stated: of its schema's shape, and JSON. */
export type PayloadOf<T extends EventType> = StoredAs<T, AsJson<RunEventPayloads[T]>> & JsonObject;

/** A type with a payload that is its own. */
export type EventOf<T extends EventType = EventType> = {
  readonly [K in T]: { readonly type: K; readonly payload: PayloadOf<K> };
}[T];

/** The part that an event plays in the story of a run. */
export type EventPart =
  | 'run-starts'
  /** Paused, or going on. */
  | 'run-moves'
  /** The clock of a rehearsal is set. */
  | 'clock'
  | 'run-ends'
  /** An attempt of a node begins. */
  | 'node-starts'
  /** An attempt is over, one way or another. */
  | 'node-ends'
  | 'node-skipped'
  /** A node waits for somebody outside: names the interrupt. */
  | 'wait-opens'
  /** What is asked; carries no id, node and key say of which interrupt. */
  | 'wait-asks'
  /** Somebody voted on what is asked, or asked something about it; the wait goes on. */
  | 'vote'
  | 'asked-back'
  /** Answered, out of time, or left behind. */
  | 'wait-ends'
  | 'reasoning-piece'
  | 'reasoning'
  | 'call'
  | 'return'
  /** Text of a call at work, or an answer's. */
  | 'output-piece'
  /** A run of its own begins for a node. */
  | 'child'
  /** What becomes of a worker that is such a run: `phase` says of what is told. */
  | 'worker'
  /** An orchestrator says what comes next. */
  | 'orchestration'
  | 'decision'
  | 'handoff'
  /** Something was said in a conversation. */
  | 'turn'
  | 'variable'
  | 'channel'
  | 'usage'
  | 'limit'
  | 'unusable'
  /** Another event beside it tells the same to people. */
  | 'detail'
  /** Nothing but itself. */
  | 'note';

export type NodeStatus =
  'running' | 'suspended' | 'retrying' | 'completed' | 'failed' | 'skipped' | 'cancelled';

/** What an opening needs of its closing, for whoever closes it before its time. */
interface Opening {
  /** Fields of the opening's payload that its closing repeats. */
  readonly ids: readonly string[];
  readonly closing: EventType;
  readonly payload: (ids: JsonObject, ending: Ending) => JsonObject;
  /** Innermost first. */
  readonly order: number;
  readonly causedByOpening: boolean;
}

/** A second name of a payload's field, or another form of its value, as the first major shows it. */
interface Twin {
  /** Stored name, which is the published one. */
  readonly from: string;
  /** Name in the seeds; the same as `from` where the value itself is shown in another form. */
  readonly to: string;
  readonly value?: (stored: JsonValue) => JsonValue;
}

export interface EventRow {
  /** Shown in `updates`. */
  readonly updates: boolean;
  /** `values` sends a fresh snapshot after it. */
  readonly values: boolean;
  /** Shown in `messages`. */
  readonly messages: boolean;
  /** The envelope carries `nodeId` (run-event.schema.json). */
  readonly nodeScoped: boolean;
  /** Nobody is kept waiting for it: a batch that holds it leaves at once (stream-modes.md). */
  readonly urgent: boolean;
  readonly part: EventPart;
  /** What its node does next follows from it. */
  readonly leads: boolean;
  /** What the run is from here on, waits aside. */
  readonly run: RunSnapshot['status'] | null;
  /** What its node is from here on. */
  readonly node: NodeStatus | null;
  /** The payload's field that names the agent who acts from here on. */
  readonly actor: 'agentId' | 'toAgentId' | null;
  /** A live piece of a stream: the field of its text, and the field of its closing that states the whole text. */
  readonly piece: { readonly text: 'delta' | 'chunk'; readonly whole: string | null } | null;
  readonly opens: Opening | null;
  /** Openings that it closes in the ordinary course, each with the field that must be equal. */
  readonly closes: Readonly<Partial<Record<EventType, string>>>;
  /** RFC 0002 §B, architecture §9. Only open payloads have any. */
  readonly twins: readonly Twin[];
  /** Its name in the seed of sessions and ids (seed 003 §3.3), where that names it. */
  readonly inSession: string | null;
  /** Its name in the protocol's next major (event-codemap.json); null where that has no such event. */
  readonly nextMajor: string | null;
}

type Shown = 'updates' | 'values' | 'messages' | 'nodeScoped';
/** A row as it is written here: without `nextMajor` where the name stays. */
type WrittenRow = Omit<EventRow, 'nextMajor'> & Partial<Pick<EventRow, 'nextMajor'>>;

const NOTHING_MORE = {
  urgent: false,
  leads: false,
  run: null,
  node: null,
  actor: null,
  piece: null,
  opens: null,
  closes: {},
  twins: [],
  inSession: null,
} as const;

/** `shown`: u = updates, v = values, m = messages, n = node-scoped. */
function row(
  shown: string,
  part: EventPart,
  more: Partial<Omit<EventRow, Shown | 'part'>> = {},
): WrittenRow {
  return {
    updates: shown.includes('u'),
    values: shown.includes('v'),
    messages: shown.includes('m'),
    nodeScoped: shown.includes('n'),
    part,
    ...NOTHING_MORE,
    ...more,
  };
}

/** What is opened, by the closing and the fields that both have. */
function closedAs<Closing extends EventType, Id extends string & keyof PayloadOf<Closing>>(
  closing: Closing,
  ids: readonly Id[],
  {
    payload,
    ...place
  }: Pick<Opening, 'order'> & {
    causedByOpening?: true;
    payload: (ids: Pick<PayloadOf<Closing>, Id>, ending: Ending) => PayloadOf<Closing>;
  },
): Opening {
  // What is given to it later are the ids that it asked for: the opening's payload had them.
  const whole = payload as unknown as Opening['payload'];
  return { causedByOpening: false, ...place, closing, ids, payload: whole };
}

const agentRef = (agentId: JsonValue): JsonValue => ({ agentId });
const withErrorName = (error: JsonValue): JsonValue =>
  isJsonObject(error) && error.code !== undefined ? { ...error, error: error.code } : error;

/** The error of a call that was cut off after it may have been made. */
const inDoubt = (message: string) => ({
  code: 'effect_in_doubt',
  message: `It is not known whether the effect happened. ${message}`,
});

const TOOL_NAME: Twin = { from: 'toolName', to: 'toolId' };
const BY_AGENT = { actor: 'agentId' } as const;
const NODE_CLOSED = { closes: { 'node.started': 'nodeId' } } as const;

/** Catalogue order. */
const ROWS: Readonly<Record<EventType, WrittenRow>> = {
  'run.started': row('uv', 'run-starts', {
    run: 'running',
    twins: [{ from: 'owner', to: 'owner', value: ownerInFirstMajor }],
  }),
  'run.paused': row('uv', 'run-moves', { run: 'paused' }),
  'run.resumed': row('uv', 'run-moves', { run: 'running' }),
  'replay.diverged': row('', 'note'),
  // Our own: a vendor's events are shown in `debug` alone (run-event.schema.json).
  'openwop-temporal.clock-set': row('', 'clock'),
  'run.completed': row('uv', 'run-ends', { run: 'completed', urgent: true }),
  'run.failed': row('uv', 'run-ends', { run: 'failed', urgent: true }),
  'run.cancelled': row('uv', 'run-ends', { run: 'cancelled', urgent: true }),
  'node.started': row('vn', 'node-starts', {
    leads: true,
    node: 'running',
    opens: closedAs('node.cancelled', ['nodeId'], {
      order: 2,
      payload: (ids, { code }) => ({ ...ids, reason: code }),
    }),
  }),
  'node.completed': row('uvn', 'node-ends', { node: 'completed', ...NODE_CLOSED }),
  'node.failed': row('uvn', 'node-ends', { node: 'failed', ...NODE_CLOSED }),
  'node.suspended': row('uvn', 'wait-opens', { node: 'suspended', urgent: true }),
  'node.resumed': row('uvn', 'detail', { node: 'running', leads: true }),
  'node.retried': row('n', 'node-ends', { node: 'retrying', ...NODE_CLOSED, leads: true }),
  'node.skipped': row('uvn', 'node-skipped', { node: 'skipped' }),
  'node.cancelled': row('uvn', 'node-ends', { node: 'cancelled', ...NODE_CLOSED }),
  'node.dispatched': row('uvn', 'child'),
  'runOrchestrator.decided': row('n', 'orchestration', {
    ...BY_AGENT,
    nextMajor: 'orchestrator.decided',
  }),
  'core.workflowChain.event': row('n', 'worker', { nextMajor: 'workflow-chain.event' }),
  'core.workflowChain.confidence-escalated': row('n', 'note', {
    nextMajor: 'workflow-chain.confidence-escalated',
  }),
  'core.dispatch.fanOut': row('n', 'note', { nextMajor: 'dispatch.fanned-out' }),
  'core.dispatch.join': row('n', 'note', { nextMajor: 'dispatch.joined' }),
  'interrupt.requested': row('uvn', 'wait-asks'),
  'interrupt.resolved': row('uvn', 'wait-ends', {
    leads: true,
    twins: [{ from: 'resolvedBy', to: 'resolvedBy', value: subjectInFirstMajor }],
  }),
  'approval.requested': row('uvn', 'detail'),
  'approval.received': row('uvn', 'detail'),
  // A vote is told once, by the event that has what goes with it.
  'approval.granted': row('n', 'detail'),
  'approval.rejected': row('n', 'detail'),
  'openwop-temporal.voted': row('n', 'vote'),
  'openwop-temporal.asked-back': row('n', 'asked-back'),
  'clarification.requested': row('uvn', 'detail'),
  'clarification.resolved': row('uvn', 'detail'),
  'variable.changed': row('', 'variable'),
  'channel.written': row('', 'channel'),
  'conversation.opened': row('n', 'turn'),
  'conversation.exchanged': row('n', 'turn'),
  'conversation.closed': row('n', 'turn'),
  'output.chunk': row('mn', 'output-piece', {
    inSession: 'workflow.node.output.delta',
    piece: { text: 'chunk', whole: null },
  }),
  'workflow.loopback-limit': row('', 'note'),
  'cap.breached': row('', 'limit'),
  'agent.invocation.started': row('n', 'detail', {
    leads: true,
    ...BY_AGENT,
    nextMajor: 'agent.invocation-started',
    opens: closedAs('agent.invocation.completed', ['invocationId', 'agentId'], {
      order: 1,
      payload: (ids) => ({ ...ids, outcome: 'failed' }),
    }),
  }),
  'agent.promptResolved': row('n', 'detail', {
    ...BY_AGENT,
    nextMajor: 'agent.prompt-resolved',
    leads: true,
  }),
  'prompt.composed': row('n', 'detail', { leads: true }),
  // No workflow code sees deltas, so of a stream that was cut off only translate closes them, with what the log holds
  // of the block; where workflow code runs, the stream's result or its seal does.
  'agent.reasoning.delta': row('n', 'reasoning-piece', {
    ...BY_AGENT,
    nextMajor: 'agent.reasoning-delta',
    piece: { text: 'delta', whole: 'reasoning' },
    opens: closedAs('agent.reasoned', ['agentId', 'verbosity', 'reasoning'], {
      order: 0,
      payload: (ids) => ({ ...ids }),
    }),
  }),
  'agent.reasoned': row('n', 'reasoning', { ...BY_AGENT, leads: true }),
  'agent.toolCalled': row('n', 'call', {
    ...BY_AGENT,
    nextMajor: 'agent.tool-called',
    twins: [TOOL_NAME, { from: 'inputs', to: 'arguments' }],
    opens: closedAs('agent.toolReturned', ['agentId', 'toolName', 'callId', 'sideEffects'], {
      order: 0,
      causedByOpening: true,
      payload: ({ sideEffects, ...ids }, { code, message }) => ({
        ...ids,
        status: 'error',
        error: sideEffects === true ? inDoubt(message) : { code, message },
      }),
    }),
  }),
  'agent.toolReturned': row('n', 'return', {
    leads: true,
    ...BY_AGENT,
    inSession: 'workflow.tool.completed',
    nextMajor: 'agent.tool-returned',
    twins: [
      TOOL_NAME,
      { from: 'outcome', to: 'result' },
      { from: 'error', to: 'error', value: withErrorName },
    ],
    closes: { 'agent.toolCalled': 'callId' },
  }),
  'agent.decided': row('n', 'decision', { ...BY_AGENT, leads: true }),
  'agent.handoff': row('n', 'handoff', {
    actor: 'toAgentId',
    twins: [
      { from: 'fromAgentId', to: 'from', value: agentRef },
      { from: 'toAgentId', to: 'to', value: agentRef },
    ],
  }),
  'agent.invocation.completed': row('n', 'detail', {
    ...BY_AGENT,
    nextMajor: 'agent.invocation-completed',
    closes: { 'agent.invocation.started': 'invocationId' },
  }),
  'provider.usage': row('n', 'usage'),
  'envelope.refusal': row('n', 'note'),
  'envelope.retry.exhausted': row('n', 'unusable', { nextMajor: 'envelope.retry-exhausted' }),
};

export const EVENT_TYPES = Object.fromEntries(
  Object.entries(ROWS).map(([type, written]) => [type, { nextMajor: type, ...written }]),
) as Readonly<Record<EventType, EventRow>>;

/** By type, for who shows events and knows no table: the part, and what the run or the node is from here on. */
export type EventStories = Readonly<
  Record<string, readonly [part: EventPart, becomes?: NonNullable<EventRow['run' | 'node']>]>
>;

/** JSON: the page's script has it as data. */
export const EVENT_STORIES: EventStories = Object.fromEntries(
  Object.entries(EVENT_TYPES).map(([type, { part, run, node }]) => {
    const becomes = run ?? node;
    return [type, becomes === null ? [part] : [part, becomes]];
  }),
);

/** Types that tell what becomes of questions to people: of one, and of all of them with a run that is cancelled. */
export const QUESTION_TYPES: readonly string[] = Object.entries(EVENT_TYPES)
  .filter(([, { part, run }]) => part.startsWith('wait-') || run === 'cancelled')
  .map(([type]) => type);

const UNKNOWN: EventRow = { ...row('', 'note'), nextMajor: null };

/** Types that are not in the table are shown in `debug` only, and tell nothing but themselves. */
export function eventRow(type: string): EventRow {
  return Object.hasOwn(EVENT_TYPES, type) ? EVENT_TYPES[type as EventType] : UNKNOWN;
}
