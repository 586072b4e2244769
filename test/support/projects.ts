// Which tests share a Temporal dev server, and which start nothing or bring what they need: for vitest.config.ts and
// for `npm test`.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Rooms, and single files, whose tests need no Temporal dev server. */
const PURE = [
  'support/run-tests.test.ts',
  'support/order.test.ts',
  'support/machine.test.ts',
  'support/host.test.ts',
  'rules',
  'wire',
  'translate',
  // On PGlite alone.
  'runs',
  'pages',
  'words',
  'demo',
  'system',
  'deploy',
  'opensentience',
  'agent-sdk',
  'cli',
  'tidy.test.ts',
  'app/roles.test.ts',
  'architecture.test.ts',
  'mutants',
  'campaign',
  'workflows/answers.test.ts',
  'workflows/equal-calls.test.ts',
  'workflows/journal.test.ts',
  // Without HTTP.
  'facade/access.test.ts',
  'facade/input.test.ts',
  'facade/leaves.test.ts',
  'facade/sign-in-attempts.test.ts',
  // On Java's server alone.
  'app/in-memory.test.ts',
  'adapters/history-java.test.ts',
];

/** Patterns from the repository's root. */
export const PURE_TESTS = PURE.map((room) =>
  room.endsWith('.ts') ? `test/${room}` : `test/${room}/**/*.test.ts`,
);
export const ALL_TESTS = 'test/**/*.test.ts';

/** Files of tests that need a Temporal dev server. */
export function realTestFiles(): string[] {
  const folder = join(import.meta.dirname, '..');
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => !PURE.some((room) => path === room || path.startsWith(`${room}/`)))
    .map((path) => `test/${path}`);
}
