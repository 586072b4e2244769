// Votes on a question that several people answer (interrupt-profiles.md §quorum): what a vote is for, and how votes are
// counted. The run decides by it, and the fold, the page and the terminal say by it how far the votes are.
import { reasonOf, type ActionEffect } from './gate-actions.ts';
import { digestOf } from './ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from './json.ts';

/** A type, not an interface: it is JSON. */
export type Vote = {
  readonly voter: string;
  readonly effect: 'continue' | 'end';
  /** Digest of what it is for (`votedFor`). */
  readonly of: string;
};

/** What it takes to decide. */
export interface Quorum {
  /** Votes for one answer; 1: nobody votes, the first answer decides. */
  readonly required: number;
  /** It takes a majority to decline, not one vote. */
  readonly isByMajority?: true;
}

/** By what is frozen with a question. */
export function quorumOf({ requiredApprovals, rejectionPolicy }: JsonObject): Quorum {
  return {
    required: typeof requiredApprovals === 'number' ? requiredApprovals : 1,
    ...(rejectionPolicy === 'majority' ? { isByMajority: true } : {}),
  };
}

/** Answers with these effects are votes. */
export function isVote(effect: ActionEffect | undefined): effect is Vote['effect'] {
  return effect === 'continue' || effect === 'end';
}

/**
 * What an answer is for: another action, or another content, is another answer. Without a content it is the one that was
 * asked about, which `null` is not.
 */
export function votedFor({ action = '', editedArtifactData: content }: JsonObject): string {
  return digestOf(canonicalJson([action, ...(content === undefined ? [] : [content])]));
}

/**
 * Digest of what goes with an answer: why, a comment, what should change, and who is said to decide. The time that a client
 * states is none of it.
 */
export function saidWith(value: JsonObject): string {
  const { comment, refineFeedback, decidedBy } = value;
  const parts = [reasonOf(value), comment, refineFeedback, decidedBy];
  return digestOf(canonicalJson(parts.map((part) => (part === '' ? null : (part ?? null)))));
}

/** A vote with the digest of what goes with it (`saidWith`). A type, not an interface: it is JSON. */
export type SaidVote = Vote & { readonly said: string };

/** Its voter has voted so already. */
export function isRepeated(votes: readonly Vote[], { voter, effect, of }: Vote): boolean {
  return votes.some((vote) => vote.voter === voter && vote.effect === effect && vote.of === of);
}

/** Each voter has one vote, and the last one counts. */
export function withVote<Voted extends Vote>(votes: readonly Voted[], vote: Voted): Voted[] {
  return [...votes.filter(({ voter }) => voter !== vote.voter), vote];
}

export interface Tally {
  readonly votes: number;
  /** With so many it is decided. */
  readonly needed: number;
}

/** How many votes an answer has. All that decline count together, whatever each of them is called. */
export function tallyOf(
  votes: readonly Vote[],
  { effect, of }: Pick<Vote, 'effect' | 'of'>,
  { required, isByMajority }: Quorum,
): Tally {
  const isFor = effect === 'continue';
  const same = votes.filter((vote) => vote.effect === effect && (!isFor || vote.of === of));
  const toDecline = isByMajority ? Math.floor(required / 2) + 1 : 1;
  return { votes: same.length, needed: isFor ? required : toDecline };
}

/** How far the votes are: those for the one answer that has most of them, and those against. */
export function progressOf(votes: readonly Vote[]): {
  readonly granted: number;
  readonly rejected: number;
} {
  const granted = new Map<string, number>();
  for (const { effect, of } of votes)
    if (effect === 'continue') granted.set(of, (granted.get(of) ?? 0) + 1);
  return {
    granted: Math.max(0, ...granted.values()),
    rejected: votes.filter(({ effect }) => effect === 'end').length,
  };
}

/** A vote as it stands with the open question. A type, not an interface: it is JSON. */
export type StandingVote = SaidVote & {
  readonly action: string;
  /** Sequence of its event. */
  readonly seq: number;
  /** What had been heard of the question with it. */
  readonly heard: number;
  readonly reason?: string;
  readonly comment?: string;
  /** In the place of what was asked about. */
  readonly content?: JsonValue;
  /** What goes with it is too large to stand here: its event has it. */
  readonly isCut?: true;
};

/** Votes on an open question, as the fold puts them with it; oldest first. */
export function votesIn({ votes }: JsonObject): readonly StandingVote[] {
  return Array.isArray(votes)
    ? (votes.filter(isJsonObject) as unknown as readonly StandingVote[])
    : [];
}

/** How many votes and questions back the log has of an open question. */
export function heardIn({ heard }: JsonObject): number {
  return typeof heard === 'number' ? heard : 0;
}
