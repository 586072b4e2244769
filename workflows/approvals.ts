// What an answer to an approval does (interrupt.md §approval; interrupt-profiles.md §quorum): it goes by the effect that
// was frozen with the question, never by the answer's name.
import { NOTES } from '../src/rules/answer-schemas.ts';
import type { ErrorCode } from '../src/rules/errors.ts';
import {
  actionIn,
  offeredIn,
  reasonOf,
  wishIn,
  type ActionEffect,
} from '../src/rules/gate-actions.ts';
import { emissionKey } from '../src/rules/ids.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { MAX_VOTERS } from '../src/rules/limits.ts';
import {
  isRepeated,
  isVote,
  quorumOf,
  saidWith,
  tallyOf,
  votedFor,
  withVote,
  type Quorum,
  type SaidVote,
  type Tally,
  type Vote,
} from '../src/rules/votes.ts';
import type { ApprovalReceivedPayload } from '../schemas/types.generated.ts';
import type { Interrupt } from './frames.ts';
import { emit } from './journal.ts';

/** Questions back that one question takes. */
const MAX_ASKED_BACK = 50;
/** Votes of one voter on one question, the first and each change. */
const MAX_VOTES_OF_EACH = 20;

/** A type, not an interface: it is JSON. */
export type CountedVote = SaidVote & {
  /** How often its voter has voted. */
  readonly times: number;
};

/** How answers to a question are judged. What a human was shown stands in the log, and no segment carries it on. */
export interface Judging extends Quorum {
  /** By action. */
  readonly effects: Readonly<Record<string, ActionEffect>>;
}

export function judgingOf(data: JsonObject): Judging {
  return {
    effects: Object.fromEntries(offeredIn(data).map(({ action, effect }) => [action, effect])),
    ...quorumOf(data),
  };
}

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

/** Why an approval takes no such answer now: it ends no wait, and there were enough questions back, voters or votes of one. */
export function approvalRefusal(
  open: Interrupt,
  value: JsonValue,
  by: string,
): ErrorCode | undefined {
  const effect = effectIn(open, actionIn(value));
  const isFull =
    effect === 'ask-again'
      ? open.askedBack >= MAX_ASKED_BACK
      : isVote(effect) &&
        isJsonObject(value) &&
        isOneTooMany(ballotOf(open, { value, by }, effect));
  return isFull ? 'conversation_limit_exceeded' : undefined;
}

/** A vote that decides is always taken, and so is one that is repeated. */
function isOneTooMany(ballot: Ballot | undefined): boolean {
  if (!ballot || ballot.tally.votes >= ballot.tally.needed) return false;
  return ballot.all.length > MAX_VOTERS || ballot.vote.times > MAX_VOTES_OF_EACH;
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
  return isVote(effect) ? takeVote(open, said, effect) : false;
}

/** An answer as a vote among the others. */
interface Ballot {
  readonly vote: CountedVote;
  /** The vote stands in the place of one for the same: something else goes with it. */
  readonly isRestated: boolean;
  /** With it. */
  readonly all: readonly CountedVote[];
  readonly tally: Tally;
}

/** Undefined: it is the vote that its voter has, and the same goes with it. */
function ballotOf(
  { votes, judging }: Interrupt,
  { value, by }: Said,
  effect: Vote['effect'],
): Ballot | undefined {
  const voter = typeof value.voter === 'string' ? value.voter : by;
  const before = votes.find((vote) => vote.voter === voter);
  const said = saidWith(value);
  const vote = { voter, effect, of: votedFor(value), said, times: (before?.times ?? 0) + 1 };
  const isRestated = isRepeated(votes, vote);
  if (isRestated && before?.said === said) return undefined;
  const all = withVote(votes, vote);
  return { vote, isRestated, all, tally: tallyOf(all, vote, judging) };
}

/**
 * Each voter has one vote, which may be changed until the question is decided. One for the same with another reason is stated
 * by our own event alone: who counts the protocol's counts it once.
 */
function takeVote(open: Interrupt, { value, by }: Said, effect: Vote['effect']): boolean {
  const ballot = ballotOf(open, { value, by }, effect);
  if (!ballot) return false;
  const { vote, isRestated, all, tally } = ballot;
  const { votes, needed } = tally;
  open.votes = all;
  stateVoted(open, { value, by }, { vote, ...tally });
  if (isRestated) return false;
  const said = { gateId: open.nodeId, principal: vote.voter };
  if (effect === 'continue') {
    const quorumProgress = { granted: votes, required: needed };
    emit('approval.granted', { ...said, quorumProgress }, placeOf(open, 'approval.granted'));
  } else {
    const reason = reasonOf(value);
    const told = { ...said, ...(reason === undefined ? {} : { reason }) };
    emit('approval.rejected', told, placeOf(open, 'approval.rejected'));
  }
  return votes >= needed;
}

/** The protocol's two events of votes are closed, and have no place for what goes with one. */
function stateVoted(
  open: Interrupt,
  { value, by }: Said,
  { vote: { voter, effect }, ...tally }: Tally & { readonly vote: Vote },
): void {
  const { nodeId, interruptId } = open;
  const told = { nodeId, interruptId, voter, votedBy: by, effect, resumeValue: value, ...tally };
  emit('openwop-temporal.voted', told, placeOf(open, 'openwop-temporal.voted'));
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
