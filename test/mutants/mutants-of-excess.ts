// Mutants of what becomes of too much at once (architecture §5): rows of mutants.ts.
import type { Row } from './mutants.ts';

const TURN = 'activities/infer-turn.ts';
const EXCESS = 'activities/excess.ts';
const OF_EXCESS = 'test/activities/excess.test.ts';

export const OF_EXCESS_TOLD: readonly Row[] = [
  [
    54,
    [TURN, 'if (!excessTold) return { kind:', 'if (excessTold) return { kind:'],
    [OF_EXCESS, 'goes on'],
  ],
  [
    54,
    [
      TURN,
      "const isTold = excessTold ?? read.kind === 'excess'",
      "const isTold = read.kind === 'excess'",
    ],
    [OF_EXCESS, 'once in an invocation'],
  ],
  [
    54,
    [
      'activities/transcript.ts',
      'const [newest] = chunks;',
      'const newest = chunks.find((chunk) => chunk.excessTold);',
    ],
    [OF_EXCESS, 'in each invocation'],
  ],
  [54, [EXCESS, 'length > MAX_CALLS_PER_TURN', 'length < 0'], [OF_EXCESS, '40 calls']],
  [
    54,
    [TURN, 'isUnusable ? boundedOutput(said) : said', 'said'],
    [OF_EXCESS, 'no more than a value'],
  ],
];
