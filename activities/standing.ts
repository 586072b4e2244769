// What a human is shown who is asked whether a new call is made (architecture §5): earlier calls that stand in its way.
import type { EarlierCall, EffectClaim, ShownCall, StandingReason } from '../src/ports/effects.ts';
import type { StepContext } from './contract.ts';

/** What a human must know before a new call is performed: what is certain comes first. */
const STANDING = Object.entries({
  result: 'The same call was made before and happened, but its result could not be used',
  doubt: 'It is not known whether an earlier call of the tool happened',
  attempt: 'An earlier attempt of this node made another call of the tool, which may have happened',
} satisfies Record<StandingReason, string>);

/**
 * Names the calls that stand in the way by their nodes, and how many there are. Without ids of runs and in one order: a branch that
 * asks the same may go by what was answered in its source.
 */
export function standingReason(
  { earlier, isMore }: Extract<EffectClaim, { kind: 'differs' }>,
  { runId }: StepContext,
): string {
  const placeOf = (call: EarlierCall): string =>
    `node ${call.nodeId} of ${call.runId === runId ? 'this run' : 'another run of its family'}`;
  const reasons = STANDING.flatMap(([name, reason]) => {
    const places = counted(earlier.filter(({ why }) => why === name).map(placeOf));
    return places.length === 0 ? [] : [`${reason}: ${places.join(', ')}`];
  });
  return `This call was not made. ${reasons.join('. ')}${isMore ? ', and others' : ''}.`;
}

function counted(places: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const place of places) counts.set(place, (counts.get(place) ?? 0) + 1);
  return [...counts.keys()].sort().map((place) => {
    const count = counts.get(place) ?? 1;
    return count === 1 ? place : `${place} (${count} calls)`;
  });
}

/** A human who has answered about others (`before`) is asked about these alone; the next word is on all of them. */
export function shownWith(
  before: readonly ShownCall[],
  earlier: readonly EarlierCall[],
): readonly ShownCall[] {
  return [...before, ...earlier.map(({ effectId, epoch, why }) => ({ effectId, epoch, why }))];
}
