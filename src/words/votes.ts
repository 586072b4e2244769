// How far the votes on a question are (interrupt-profiles.md §quorum), answer by answer, and what was said with them: page and
// terminal take it from here.
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import {
  heardIn,
  quorumOf,
  tallyOf,
  votesIn,
  type StandingVote,
  type Tally,
} from '../rules/votes.ts';
import { choicesOf } from './choices.ts';
import { formShapeOf, type OpenQuestion } from './question.ts';

/** How many votes and questions back there were of a question. Undefined: its first answer ends it. */
export function heardOf(interrupt: Pick<OpenQuestion, 'kind' | 'data'>): number | undefined {
  const { data } = interrupt;
  const mayStayOpen =
    formShapeOf(interrupt) === 'approval' &&
    (quorumOf(data).required > 1 ||
      choicesOf(interrupt).some(({ effect }) => effect === 'ask-again'));
  return mayStayOpen ? heardIn(data) : undefined;
}

/** An answer that somebody has voted for; all that decline are one. */
export interface VotedAnswer extends Tally {
  readonly action: string;
  readonly label: string;
  readonly effect: StandingVote['effect'];
  /** In the place of what was asked about: each is an answer of its own. */
  readonly content?: JsonValue;
  /** Oldest first. */
  readonly by: readonly StandingVote[];
}

/** In the order of their oldest votes. Empty where nobody votes. */
export function votedAnswers(data: JsonObject): readonly VotedAnswer[] {
  const quorum = quorumOf(data);
  const votes = votesIn(data);
  const groups = new Map<string, StandingVote[]>();
  for (const vote of votes) {
    const id = vote.effect === 'end' ? 'against' : vote.of;
    groups.set(id, [...(groups.get(id) ?? []), vote]);
  }
  return [...groups.values()].flatMap((by) => {
    const [first] = by;
    if (!first) return [];
    const { action, effect } = first;
    const content = by.find((vote) => vote.content !== undefined)?.content;
    const label = effect === 'end' ? 'Against it' : labelOf(data, action);
    const tally = tallyOf(votes, first, quorum);
    return { action, label, effect, ...tally, by, ...(content === undefined ? {} : { content }) };
  });
}

function labelOf({ choices }: JsonObject, action: string): string {
  const offered = Array.isArray(choices) ? choices.filter(isJsonObject) : [];
  const label = offered.find((choice) => choice.action === action)?.label;
  return typeof label === 'string' ? label : action;
}

/** How far the votes are, in one line. Undefined: nobody votes. */
export function votesOf(data: JsonObject): string | undefined {
  const { required } = quorumOf(data);
  if (required < 2) return undefined;
  const answers = votedAnswers(data);
  const against = answers.find(({ effect }) => effect === 'end');
  const inFavour = answers.filter(({ effect }) => effect === 'continue');
  const most = Math.max(0, ...inFavour.map(({ votes }) => votes));
  const of = inFavour.length > 1 ? ' for one answer' : '';
  return `${most} of ${required} approvals${of}${against ? `, ${against.votes} of ${against.needed} against` : ''}`;
}

/** How many votes the answer has. */
export function tallyWords({ label, votes, needed }: VotedAnswer): string {
  return `${label}: ${votes} of ${needed}`;
}

/** What goes with a vote, line by line. Of those against, the answer has a name of its own. */
export function voteLines({
  effect,
  action,
  reason,
  comment,
  isCut,
  seq,
}: StandingVote): readonly string[] {
  return [
    ...(effect === 'end' ? [action] : []),
    ...[reason, comment].filter((line) => line !== undefined),
    ...(isCut
      ? [`What goes with this vote is too large to be shown here: event ${seq} has it.`]
      : []),
  ];
}
