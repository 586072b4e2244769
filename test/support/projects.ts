// Which tests share a Temporal dev server, which need a database alone, and which start nothing or bring what they need: for
// vitest.config.ts and for `npm test`.
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
  'pages',
  'words',
  'demo',
  'system',
  'deploy',
  'opensentience',
  'agent-sdk',
  'cli',
  'tidy.test.ts',
  'architecture.test.ts',
  'mutants',
  'campaign',
  'workflows/answers.test.ts',
  'workflows/equal-calls.test.ts',
  'workflows/journal.test.ts',
  // Without HTTP.
  'facade/access.test.ts',
  'facade/input.test.ts',
  'facade/sign-in-attempts.test.ts',
  // On Java's server alone.
  'app/in-memory.test.ts',
  'adapters/history-java.test.ts',
];

/** Those that need a database and no Temporal dev server. */
const STORES = ['runs', 'app/roles.test.ts', 'facade/leaves.test.ts'];

/** Patterns from the repository's root. */
const patterns = (rooms: readonly string[]): string[] =>
  rooms.map((room) => (room.endsWith('.ts') ? `test/${room}` : `test/${room}/**/*.test.ts`));
export const PURE_TESTS = patterns(PURE);
export const STORE_TESTS = patterns(STORES);
export const ALL_TESTS = 'test/**/*.test.ts';

/** Files of tests that need a Temporal dev server. */
export function realTestFiles(): string[] {
  const folder = join(import.meta.dirname, '..');
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => ![...PURE, ...STORES].some((room) => isIn(room, path)))
    .map((path) => `test/${path}`);
}

function isIn(room: string, path: string): boolean {
  return path === room || path.startsWith(`${room}/`);
}
