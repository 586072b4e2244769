// Votes as they stand with an open question (interrupt-profiles.md §quorum).
import type { JsonObject } from '../../src/rules/json.ts';
import { saidWith, votedFor, type StandingVote } from '../../src/rules/votes.ts';

/** `more`: what goes with it. */
export function standingVote(
  voter: string,
  value: JsonObject & { readonly action: string },
  more: Partial<StandingVote>,
): StandingVote {
  const { action, editedArtifactData: content } = value;
  const effect = action === 'reject' || action === 'deny' ? 'end' : 'continue';
  return {
    ...{ voter, effect, action, of: votedFor(value), said: saidWith(value), heard: 1, seq: 5 },
    ...(content === undefined ? {} : { content }),
    ...more,
  };
}
