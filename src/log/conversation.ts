// The conversation of a session (seed 000 §G): what was said in all its runs, in the order of the feed, each message once
// by its messageId. Said is what a channel of messages was given, what was said in a conversation (RFC 0005), and what an
// agent answered in the end. Who reads brings the index of the session up to date first: it is made of the feed alone.
import { EVENT_TYPES, eventRow, type EventPart } from '../rules/events.ts';
import { isJsonObject, parsedJson, type JsonObject, type JsonValue } from '../rules/json.ts';
import { handoffsOf } from '../rules/handoffs.ts';
import type { ReducerName } from '../rules/reducers.ts';
import type { RunInput } from '../rules/run-input.ts';
import { nothingOf, type Unreadable } from '../rules/unreadable.ts';
import type { FedRow } from '../ports/feed.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { NotedRow, SaidAt } from '../ports/sessions.ts';
import type { Stores } from '../ports/stores.ts';
import { objectOr, turnOf } from './fold-rows.ts';

/** Rows of the feed that are read at once, and how often for one page of messages. */
const SCAN_ROWS = 500;
const MAX_SCANS = 20;
/** Of a channel that holds messages. */
const MESSAGES: ReducerName = 'message';

/** A message as seed 000 §G has it, with what a turn of a conversation has besides (RFC 0005). */
interface Message {
  readonly messageId: string;
  /** An agent's id, `user`, or `system`. */
  readonly from: string;
  readonly content: JsonValue;
  /** In ms epoch. */
  readonly ts: number;
  /** `to`, `groupId`, `role`, `turnIndex`, `agent`, `speakerId`, `toolName`, `toolCallId`, where it was given. */
  readonly more: JsonObject;
}

/** Says it, and who is at work at a node: an answer names its node alone. */
type Saying = Pick<LogRow, 'eventId' | 'type' | 'payload' | 'timestampMs' | 'nodeId'>;
type AgentOf = (nodeId: string) => string | undefined;

const MORE = ['to', 'groupId', 'role', 'speakerId', 'toolName', 'toolCallId'];

/** What an event of a part says; undefined: nothing. */
const SAID: Partial<
  Record<EventPart, (payload: JsonObject, row: Saying, agentOf: AgentOf) => Message | undefined>
> = {
  turn: (payload, row) => messageOf(turnOf(payload), row),
  channel: ({ reducer, value = null }, row) =>
    reducer === MESSAGES ? messageOf(value, row) : undefined,
  'output-piece': (payload, row, agentOf) => answerOf(payload, row, agentOf),
};

/** Types of which an event may say something. */
const TYPES = Object.entries(EVENT_TYPES).flatMap(([type, { part }]) =>
  SAID[part] === undefined ? [] : [type],
);

/** What a row says; undefined: nothing that is a message. */
export function messageIn(row: Saying, agentOf: AgentOf = () => undefined): Message | undefined {
  // What is damaged says nothing.
  const payload = objectOr(parsedJson(row.payload), {});
  return SAID[eventRow(row.type).part]?.(payload, row, agentOf);
}

/** Of either shape of a message (seed 000 §G, channels-and-reducers.md); what is masked is none. */
function messageOf(said: JsonValue, { timestampMs }: Saying): Message | undefined {
  if (!isJsonObject(said) || typeof said.messageId !== 'string') return undefined;
  const { messageId, content = null, role } = said;
  const from = [said.from, said.agentId, role].find((name) => typeof name === 'string');
  const texts = MORE.filter((name) => typeof said[name] === 'string');
  const { turnIndex, agent } = said;
  return {
    ...{ messageId, from: from ?? 'system', content, ts: timeOf(said) ?? timestampMs },
    more: {
      ...Object.fromEntries(texts.map((name) => [name, said[name] ?? null])),
      ...(typeof turnIndex === 'number' ? { turnIndex } : {}),
      ...(isJsonObject(agent) ? { agent } : {}),
    },
  };
}

function timeOf({ ts, timestamp }: JsonObject): number | undefined {
  const time = typeof timestamp === 'string' ? Date.parse(timestamp) : ts;
  return typeof time === 'number' && Number.isSafeInteger(time) && time >= 0 ? time : undefined;
}

/** An agent's answer is one piece, and whole; a tool's pieces are never the last. */
function answerOf(
  { isLast, chunk }: JsonObject,
  { eventId, nodeId, timestampMs }: Saying,
  agentOf: AgentOf,
): Message | undefined {
  if (isLast !== true || typeof chunk !== 'string') return undefined;
  const from = agentOf(nodeId ?? '') ?? 'system';
  return {
    ...{ messageId: eventId, from, content: chunk, ts: timestampMs },
    more: { role: 'agent', ...(from === 'system' ? {} : { speakerId: from }) },
  };
}

/** A message with the run and the event that say it. */
interface SaidMessage extends Message {
  readonly runId: string;
  readonly eventId: string;
}

export interface ConversationQuery {
  readonly tenant: string;
  readonly sessionId: string;
  /** Position in the feed, exclusive; 0 = from the first message. */
  readonly after: number;
  readonly limit: number;
}

interface ConversationPage {
  readonly messages: readonly SaidMessage[];
  /** Something that was said, or may have been, cannot be read now: it is not among them. */
  readonly unreadable?: Unreadable;
  /** Behind this position the next page begins; undefined: nothing more was said until now. */
  readonly next?: number;
}

type ConversationParts = Pick<Stores, 'feed' | 'sessions' | 'runs' | 'log'>;

/**
 * A page of what was said. It may have fewer messages than asked for, even none, and a `next` all the same: a session with
 * much in it that says nothing is read page by page too.
 */
export async function conversationPage(
  parts: ConversationParts,
  query: ConversationQuery,
): Promise<ConversationPage> {
  const { after, limit } = query;
  const unreadFrom = await index(parts, query);
  const { rows, isCut } = await notedRows(parts, query);
  const shown = rows.slice(0, limit);
  const page = await said(parts, shown);
  const last = shown.at(-1)?.position ?? after;
  if (rows.length > limit || isCut) return { ...page, next: last };
  return { ...page, ...(unreadFrom === undefined ? {} : { next: Math.max(last, unreadFrom) }) };
}

/**
 * One more than asked for. What can be read since it was noted is noted first: it may be no message, or another's place.
 * `isCut`: there was too much of that for one page; what follows comes with the next.
 */
async function notedRows(
  { sessions }: ConversationParts,
  { tenant, sessionId, after, limit }: ConversationQuery,
): Promise<{ readonly rows: readonly NotedRow[]; readonly isCut: boolean }> {
  const isKnown = ({ isUnread, row }: NotedRow): boolean => isUnread === true && !row.unreadable;
  for (let scans = 0; ; scans++) {
    const rows = await sessions.messages(tenant, sessionId, { after, limit: limit + 1 });
    const first = rows.findIndex(isKnown);
    if (first < 0) return { rows, isCut: false };
    if (scans >= MAX_SCANS) return { rows: rows.slice(0, first), isCut: true };
    await sessions.noteRead(tenant, sessionId, rows.filter(isKnown).map(saidAt));
  }
}

/** Without an id: it says nothing, or cannot be read. */
function saidAt({ row, position }: FedRow): SaidAt {
  const messageId = row.unreadable ? undefined : messageIn(row)?.messageId;
  return { position, ...(messageId === undefined ? {} : { messageId }) };
}

/**
 * Notes what the feed says on from where the last reader came, a bounded piece of it: undefined when it came to its end,
 * else the position that it came to. Readers at once note the same.
 */
async function index(
  { feed, sessions }: ConversationParts,
  { tenant, sessionId }: Pick<ConversationQuery, 'tenant' | 'sessionId'>,
): Promise<number | undefined> {
  const consumer = `conversation:${sessionId}`;
  let after = await feed.cursor(tenant, consumer);
  for (let scans = 0; scans < MAX_SCANS; scans++) {
    const page = { tenant, sessionId, after, limit: SCAN_ROWS, types: TYPES };
    const { rows, readTo } = await feed.eventsOf(page);
    if (readTo === undefined) return undefined;
    const found = rows.flatMap((one) => {
      const noted = saidAt(one);
      return noted.messageId === undefined && !one.row.unreadable ? [] : [noted];
    });
    await sessions.noteMessages(tenant, sessionId, found);
    after = await feed.advance(tenant, consumer, readTo);
  }
  return after;
}

async function said(
  { runs, log }: ConversationParts,
  rows: readonly FedRow[],
): Promise<Pick<ConversationPage, 'messages' | 'unreadable'>> {
  const inputs = new Map<string, RunInput | undefined>();
  const messages: SaidMessage[] = [];
  let unreadable: Unreadable | undefined;
  for (const { row, run } of rows) {
    const { runId } = run;
    unreadable ??= row.unreadable;
    if (row.unreadable) continue;
    if (!inputs.has(runId)) inputs.set(runId, await inputOf(runs, run));
    const input = inputs.get(runId);
    const handedTo = input && isHandedOver(input, row) ? await decider(log, run, row) : undefined;
    const message = messageIn(row, (nodeId) => handedTo ?? pinnedAgent(input, nodeId));
    if (message) messages.push({ ...message, runId, eventId: row.eventId });
  }
  return { messages, ...(unreadable ? { unreadable } : {}) };
}

/** It names the agent; where it is damaged the message is told without. */
async function inputOf(
  runs: ConversationParts['runs'],
  { tenant, runId }: RunRef,
): Promise<RunInput | undefined> {
  return (await runs.findKept(tenant, runId).catch(nothingOf))?.input;
}

function pinnedAgent(input: RunInput | undefined, nodeId = ''): string | undefined {
  return input?.definition.nodes.find(({ id }) => id === nodeId)?.agent?.agentId;
}

/** The agent of the node may have passed control to another one, which answers in its place (RFC 0002 §B). */
function isHandedOver(input: RunInput, { type, nodeId }: LogRow): boolean {
  if (eventRow(type).part !== 'output-piece') return false;
  const agent = input.agents[pinnedAgent(input, nodeId) ?? ''];
  return agent !== undefined && handoffsOf(agent).length > 0;
}

/** Events between an answer and the decision that it tells, at most: what the host notes of a low confidence. */
const MAX_BETWEEN = 3;

/** An answer follows from the decision that it tells. */
async function decider(
  log: ConversationParts['log'],
  run: RunRef,
  { eventId }: LogRow,
): Promise<string | undefined> {
  const causes = await log.causes(run.tenant, eventId, MAX_BETWEEN);
  const decision = causes.find(({ type }) => eventRow(type).part === 'decision');
  if (decision?.runId !== run.runId) return undefined;
  // A row that cannot be read tells nothing of another one.
  const rows = await log.read(run, { after: decision.sequence - 1, limit: 1 }).catch(nothingOf);
  const { agentId } = objectOr(parsedJson(rows?.[0]?.payload ?? 'null'), {});
  return typeof agentId === 'string' ? agentId : undefined;
}
