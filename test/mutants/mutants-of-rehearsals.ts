// Mutants of rehearsals (architecture §4), as mutants.ts has them.
import type { Row } from './mutants.ts';

export const OF_REHEARSALS: readonly Row[] = [
  [
    76,
    [
      'workflows/rehearsal.ts',
      'await world.wait(key, undefined, () =>',
      'await world.wait(key, deadlineMs, () =>',
    ],
    ['test/workflows/rehearsal.test.ts', 'stands: what would be over long ago is not'],
  ],
  [
    77,
    [
      'workflows/rehearsal.ts',
      'Math.max(state.nowMs, Math.min(nextMs, untilMs))',
      'Math.max(state.nowMs, Math.max(nextMs, untilMs))',
    ],
    ['test/workflows/rehearsal.test.ts', 'over a ladder of days ends each wait at its own time'],
  ],
  [
    77,
    ['workflows/rehearsal.ts', 'stops + 1 >= MAX_SKIP_STOPS', 'stops >= MAX_SKIP_STOPS'],
    ['test/workflows/rehearsal.test.ts', 'stands after MAX_SKIP_STOPS stops'],
  ],
  [
    78,
    [
      'activities/call-tool.ts',
      'if (input.rehearsal && changesOutside(tool))',
      'if (!input.rehearsal && changesOutside(tool))',
    ],
    ['test/activities/rehearsed-call.test.ts', 'what changes something outside is not performed'],
  ],
];
