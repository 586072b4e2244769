// Where an event that an activity states stands in the run, and what it follows from.
import type { CausedBy } from '../src/rules/journal.ts';
import type { StepContext } from './contract.ts';

export interface EventPlace {
  readonly nodeId: string;
  readonly causedBy: CausedBy;
}

/** `calledKey`: of a call that it is about, which is nearer than what the step followed from. */
export function placeOf({ nodeId, cause }: StepContext, calledKey: CausedBy = cause): EventPlace {
  return { nodeId, causedBy: calledKey };
}
