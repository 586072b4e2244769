// Where an event that an activity states stands in the run, and what it follows from.
import type { CausedBy } from '../src/rules/journal.ts';
import type { StepContext } from './contract.ts';

export interface EventPlace {
  readonly nodeId: string;
  readonly causedBy: CausedBy;
}

export function placeOf({ nodeId, cause }: StepContext): EventPlace {
  return { nodeId, causedBy: cause };
}
