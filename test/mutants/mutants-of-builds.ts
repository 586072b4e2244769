// Mutants of builds of the worker (architecture §4), as mutants.ts has them.
import type { Row } from './mutants.ts';

export const OF_BUILDS: readonly Row[] = [
  [
    80,
    [
      'src/adapters/temporal/versioning.ts',
      "versioning.runs === 'pinned' ? 'PINNED' : 'AUTO_UPGRADE'",
      "versioning.runs === 'pinned' ? 'AUTO_UPGRADE' : 'PINNED'",
    ],
    ['test/acceptance/builds.test.ts', 'runs stay with the build that began them'],
  ],
  [
    81,
    [
      'src/adapters/temporal/versioning.ts',
      "if (promotion !== 'always' && current !== undefined) {",
      'if (current !== undefined) {',
    ],
    ['test/acceptance/builds-life.test.ts', 'after an upgrade the new build takes new runs'],
  ],
];
