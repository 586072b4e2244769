// A conversation that a node holds with people (RFC 0005; interrupt.md): turns are taken while its one interrupt stays
// open, and only a close resumes the node.
//
// | state  | exchange                        | close              | time over, node left |
// |--------|---------------------------------|--------------------|----------------------|
// | open   | conversation.exchanged: open    | conversation.closed: closed | conversation.closed with outcome null: closed |
// | closed | refused: the interrupt is over  | refused            | nothing              |
import { emissionKey } from '../src/rules/ids.ts';
import type { ErrorCode } from '../src/rules/errors.ts';
import { isJsonObject, jsonBytes, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { CONVERSATION_BYTES } from '../src/rules/limits.ts';
import type { PayloadOf } from '../src/rules/events.ts';
import { emitFact, type Visit } from './context.ts';
import type { Interrupt } from './frames.ts';
import { emit } from './journal.ts';

type Turn = PayloadOf<'conversation.opened'>['initialTurn'];

export interface Opening {
  readonly conversationId: string;
  readonly prompt: string;
  /** Who opens it; absent: the host. */
  readonly agentId?: string;
  readonly turnSchema?: JsonObject;
  readonly maxTurns: number;
  readonly atMs: number;
}

/** States that the conversation is open; from here on the interrupt takes turns. */
export function openConversation(visit: Visit, open: Interrupt, opening: Opening): void {
  const { conversationId, prompt, agentId, turnSchema, maxTurns, atMs } = opening;
  const role = agentId === undefined ? 'system' : 'agent';
  const initialTurn: Turn = {
    messageId: messageIdOf(conversationId, 0, role),
    from: agentId ?? 'system',
    content: prompt,
    ts: atMs,
    role,
    turnIndex: 0,
    ...(agentId === undefined ? {} : { speakerId: agentId }),
  };
  const lastKey = emitFact(visit, 'conversation.opened', {
    step: open.step,
    causedBy: open.suspendedKey,
    payload: {
      conversationId,
      initialTurn,
      ...(agentId === undefined ? {} : { agentId }),
      ...(turnSchema === undefined ? {} : { schema: turnSchema }),
      capabilities: ['multi-turn'],
    },
  });
  open.conversation = {
    ...{ conversationId, maxTurns, lastKey, lastMs: atMs },
    turns: 1,
    bytes: jsonBytes(initialTurn),
    messageIds: [initialTurn.messageId],
  };
}

function messageIdOf(conversationId: string, turnIndex: number, role: string): string {
  return `${conversationId}:${turnIndex}:${role}`;
}

interface Said {
  readonly value: JsonValue;
  /** Principal of who says it. */
  readonly by: string;
  readonly atMs: number;
}

/** A turn that goes on talking. Anything else closes: the schema of the question let nothing else through. */
function exchangeOf(value: JsonValue): JsonObject | undefined {
  return isJsonObject(value) && value.operation === 'exchange' && isJsonObject(value.turn)
    ? value.turn
    : undefined;
}

/** Why a turn may not be taken now; a close always may. */
export function turnRefusal(open: Interrupt, value: JsonValue): ErrorCode | undefined {
  const { conversation } = open;
  const turn = exchangeOf(value);
  if (!conversation || !turn || isKnown(open, turn)) return undefined;
  const isFull =
    conversation.turns > conversation.maxTurns ||
    conversation.bytes + jsonBytes(turn.content) > CONVERSATION_BYTES;
  return isFull ? 'conversation_limit_exceeded' : undefined;
}

/** Said before under the same messageId: the first stands (RFC 0002 §G). */
function isKnown({ conversation }: Interrupt, { messageId }: JsonObject): boolean {
  return typeof messageId === 'string' && conversation?.messageIds.includes(messageId) === true;
}

/** Takes a turn, or closes; returns the key of the closing event, undefined while the conversation goes on. */
export function takeTurn(open: Interrupt, said: Said): string | undefined {
  const turn = exchangeOf(said.value);
  if (turn) {
    if (!isKnown(open, turn)) exchange(open, turn, said);
    return undefined;
  }
  const given = isJsonObject(said.value) && isJsonObject(said.value.turn) ? said.value.turn : {};
  const outcome = outcomeOf(said.value);
  return close(open, {
    outcome,
    turn: userTurn(open, { ...given, content: given.content ?? outcome }, said),
  });
}

/** What a close decided: of a plain value the value itself. */
export function outcomeOf(value: JsonValue): JsonValue {
  return isJsonObject(value) && value.operation === 'close' ? (value.outcome ?? null) : value;
}

function exchange(open: Interrupt, given: JsonObject, said: Said): void {
  const { conversation } = open;
  if (!conversation) return;
  const turn = userTurn(open, given, said);
  const { conversationId, lastKey } = conversation;
  const { turnIndex } = turn;
  const key = turnKey(open, 'conversation.exchanged', turnIndex);
  emit(
    'conversation.exchanged',
    { conversationId, turnIndex, turn },
    { key, nodeId: open.nodeId, causedBy: lastKey },
  );
  conversation.turns += 1;
  conversation.bytes += jsonBytes(turn);
  conversation.messageIds.push(turn.messageId);
  conversation.lastKey = key;
  conversation.lastMs = said.atMs;
}

/** Who talks is known by the credential: nobody speaks in another's name. */
function userTurn(open: Interrupt, given: JsonObject, { by, atMs }: Said): Turn {
  const { conversationId = '', turns: turnIndex = 0 } = open.conversation ?? {};
  const { messageId, content = null } = given;
  return {
    messageId:
      typeof messageId === 'string' ? messageId : messageIdOf(conversationId, turnIndex, 'user'),
    from: 'user',
    content,
    ts: atMs,
    role: 'user',
    turnIndex,
    speakerId: by.slice(0, 256),
  };
}

function turnKey({ nodeId, visit, attempt, step }: Interrupt, type: string, turnIndex: number) {
  return emissionKey(type, { nodeId, visit, attempt, step: `${step}.t${turnIndex}` });
}

function close(
  open: Interrupt,
  { outcome, turn }: { readonly outcome: JsonValue; readonly turn: Turn },
): string | undefined {
  const { conversation, nodeId } = open;
  if (!conversation) return undefined;
  const { conversationId, turns: turnIndex, lastKey } = conversation;
  const key = turnKey(open, 'conversation.closed', turnIndex);
  emit(
    'conversation.closed',
    { conversationId, turnIndex, finalTurn: turn, outcome },
    { key, nodeId, causedBy: lastKey },
  );
  conversation.turns += 1;
  conversation.isClosed = true;
  return key;
}

/** Nobody closed it: it ends without an outcome, and silence decided nothing (interrupt.md). Reads no clock. */
export function abandonConversation(open: Interrupt, why: string): void {
  const { conversation } = open;
  if (!conversation || conversation.isClosed) return;
  const { conversationId, turns: turnIndex, lastMs } = conversation;
  const turn: Turn = {
    messageId: messageIdOf(conversationId, turnIndex, 'system'),
    from: 'system',
    content: why,
    ts: Math.max(lastMs, why === 'timeout' ? (open.deadlineMs ?? lastMs) : lastMs),
    role: 'system',
    turnIndex,
  };
  close(open, { outcome: null, turn });
}
