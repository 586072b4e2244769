// What an answer to an approval does (interrupt.md §approval; interrupt-profiles.md §quorum): it goes by the effect that
// was frozen with the question, never by the answer's name.
import type { ErrorCode } from '../src/rules/errors.ts';
import {
  reasonOf,
  votesToDecline,
  wishIn,
  type ActionEffect,
  type OfferedAction,
} from '../src/rules/gate-actions.ts';
import { digestOf, emissionKey } from '../src/rules/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import type { ApprovalReceivedPayload } from '../schemas/types.generated.ts';
import type { Interrupt, Vote } from './frames.ts';
import { emit } from './journal.ts';

/** Questions back that one question takes. */
const MAX_ASKED_BACK = 50;

/** How answers to a question are judged. What a human was shown stands in the log, and no segment carries it on. */
export interface Judging {
  /** By action. */
  readonly effects: Readonly<Record<string, ActionEffect>>;
  /** Votes for it that a quorum needs; 1: the first answer decides. */
  readonly required: number;
  /** It takes a majority to decline, not one vote. */
  readonly isByMajority?: true;
}

export function judgingOf({ choices, requiredApprovals, rejectionPolicy }: JsonObject): Judging {
  const offered = Array.isArray(choices) ? (choices as unknown as readonly OfferedAction[]) : [];
  return {
    effects: Object.fromEntries(offered.map(({ action, effect }) => [action, effect])),
    required: typeof requiredApprovals === 'number' ? requiredApprovals : 1,
    ...(rejectionPolicy === 'majority' ? { isByMajority: true } : {}),
  };
}

/** What every answer may say beside its action, or beside its answers (interrupt.md §approval). */
export const NOTES: JsonObject = {
  feedback: { type: 'string', maxLength: 8192 },
  comment: { type: 'string', maxLength: 8192 },
  // Who answers is known by the credential; what a client says of it is kept as it is.
  decidedBy: { type: 'string', maxLength: 256 },
  decidedAt: { type: ['string', 'number'], maxLength: 64 },
};

/** What should change (interrupt.md §approval). */
const REFINE_FEEDBACK: JsonObject = {
  type: 'object',
  required: ['scope'],
  properties: {
    scope: { enum: ['whole', 'section', 'items'] },
    sectionPath: { type: 'string', maxLength: 8192 },
    itemIds: { type: 'array', maxItems: 1000, items: { type: 'string', maxLength: 256 } },
    tags: { type: 'array', maxItems: 100, items: { type: 'string', maxLength: 256 } },
    text: { type: 'string', maxLength: 8192 },
  },
  additionalProperties: false,
};

/** A member that goes with one action alone. */
interface OwnMember {
  readonly action: string;
  readonly name: string;
  readonly schema: JsonObject;
  readonly isRequired?: true;
}

/**
 * A closed schema of an answer: what goes with one action goes with no other, so that nobody sends a content with an answer
 * that leaves it aside. `more`: members that each of its answers may have.
 */
export function actionSchema(
  actions: readonly string[],
  own: readonly OwnMember[],
  more: JsonObject = {},
): JsonObject {
  const offered = own.filter(({ action }) => actions.includes(action));
  const tied = offered.map(({ action, name, isRequired }): JsonObject => ({
    if: { properties: { action: { const: action } } },
    ...(isRequired ? { then: { required: [name] } } : {}),
    else: { properties: { [name]: false } },
  }));
  return {
    type: 'object',
    required: ['action'],
    properties: {
      action: { enum: [...actions] },
      ...NOTES,
      ...more,
      ...Object.fromEntries(offered.map(({ name, schema }) => [name, schema])),
    },
    additionalProperties: false,
    ...(tied.length === 0 ? {} : { allOf: tied }),
  };
}

const OWN_MEMBERS: readonly OwnMember[] = [
  { action: 'edit-accept', name: 'editedArtifactData', schema: {}, isRequired: true },
  { action: 'refine', name: 'refineFeedback', schema: REFINE_FEEDBACK },
];

/** Clients may name who votes, and why, with every answer; only a quorum reads the name. */
const MORE: JsonObject = {
  voter: { type: 'string', minLength: 1, maxLength: 256 },
  reason: { type: 'string', maxLength: 8192 },
};

/** What the answer to an approval must look like; frozen in the interrupt's entry. */
export function approvalSchema(actions: readonly string[]): JsonObject {
  return actionSchema(actions, OWN_MEMBERS, MORE);
}

interface Said {
  readonly value: JsonObject;
  /** Principal. */
  readonly by: string;
}

function effectIn({ judging: { effects } }: Interrupt, action: string): ActionEffect | undefined {
  return Object.hasOwn(effects, action) ? effects[action] : undefined;
}

/** The answer's name; empty where it has none. */
export function actionIn(value: JsonValue): string {
  return isJsonObject(value) && typeof value.action === 'string' ? value.action : '';
}

/** Why an approval takes no such answer now: it is a question back, and there were enough of them. */
export function askedBackRefusal(open: Interrupt, value: JsonValue): ErrorCode | undefined {
  const isAsked = effectIn(open, actionIn(value)) === 'ask-again';
  return isAsked && open.askedBack >= MAX_ASKED_BACK ? 'conversation_limit_exceeded' : undefined;
}

/**
 * Takes an answer to an approval; true: it ends the wait. A question back leaves it open, and so does a vote before a
 * quorum is full.
 */
export function takeApproval(open: Interrupt, said: Said): boolean {
  const effect = effectIn(open, actionIn(said.value));
  if (effect === 'ask-again') {
    stateAsked(open, said);
    return false;
  }
  if (open.judging.required <= 1) return true;
  return effect === 'continue' || effect === 'end' ? takeVote(open, said, effect) : false;
}

/**
 * Each voter has one vote, which may be changed. Votes for it are for what they approve: another answer, or another content,
 * is another one.
 */
function takeVote(open: Interrupt, { value, by }: Said, effect: 'continue' | 'end'): boolean {
  const { required, isByMajority = false } = open.judging;
  const voter = typeof value.voter === 'string' ? value.voter : by;
  const of = digestOf(canonicalJson(approvedIn(value)));
  const isFor = (vote: Vote) => vote.effect === 'continue' && vote.of === of;
  if (open.votes.some((vote) => vote.voter === voter && vote.effect === effect && vote.of === of))
    return false;
  open.votes = [...open.votes.filter((vote) => vote.voter !== voter), { voter, effect, of }];
  const granted = open.votes.filter(isFor).length;
  const declined = open.votes.filter((vote) => vote.effect === 'end').length;
  const said = { gateId: open.nodeId, principal: voter };
  if (effect === 'continue') {
    const quorumProgress = { granted, required };
    emit('approval.granted', { ...said, quorumProgress }, placeOf(open, 'approval.granted'));
    return granted >= required;
  }
  const reason = reasonOf(value);
  emit(
    'approval.rejected',
    { ...said, ...(reason === undefined ? {} : { reason }) },
    placeOf(open, 'approval.rejected'),
  );
  return declined >= votesToDecline(required, isByMajority);
}

/** Without a content it is the one that was asked about, which `null` is not. */
function approvedIn(value: JsonObject): JsonValue {
  const { editedArtifactData: content } = value;
  return [actionIn(value), ...(content === undefined ? [] : [content])];
}

function stateAsked(open: Interrupt, { value, by }: Said): void {
  open.askedBack++;
  const { nodeId, interruptId } = open;
  const said = [wishIn(value.refineFeedback), reasonOf(value)].filter((one) => one !== undefined);
  const text = [...new Set(said)].join('\n');
  emit(
    'openwop-temporal.asked-back',
    { nodeId, interruptId, askedBy: by, action: actionIn(value), text },
    placeOf(open, 'openwop-temporal.asked-back'),
  );
}

/** Named after its place among the answers: a branch is given those that the log of its source tells. */
function placeOf({ nodeId, visit, attempt, step, heard, suspendedKey }: Interrupt, type: string) {
  const tuple = { nodeId, visit, attempt, step };
  return { key: emissionKey(type, tuple, heard), nodeId, causedBy: suspendedKey };
}

type Received = ApprovalReceivedPayload['action'];

/**
 * For clients that know only the protocol's answers: a yes is an acceptance, `refine` keeps its name, and every other answer
 * is a rejection.
 */
export function receivedAction(open: Interrupt, action: string): Received {
  if (effectIn(open, action) === 'continue') return action === 'edit-accept' ? action : 'accept';
  return action === 'refine' ? action : 'reject';
}
