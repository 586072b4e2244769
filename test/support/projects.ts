// Which tests start the product's programs or servers and kill them, which share a Temporal dev server, which need a database
// alone, and which need neither: for vitest.config.ts and for `npm test`. A file that is in no list shares the dev server. A test
// of any list may start a small process of its own: a script of a few lines, `sleep`, or the command line, which it waits for.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Rooms, and single files, whose tests need no Temporal dev server and no database. */
const PURE = [
  'support/machine.test.ts',
  'adapters/database-errors.test.ts',
  'adapters/refusal-words.test.ts',
  'adapters/finish-reasons.test.ts',
  'support/broken.test.ts',
  'support/host.test.ts',
  'support/all-or-none.test.ts',
  'support/at-end.test.ts',
  'support/prepare.test.ts',
  'runner',
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
  // Workflow code on plain Node: never in a process that has a worker, whose hooks take this process for a sandbox then.
  'workflows/answers.test.ts',
  'workflows/child-bounds.test.ts',
  'workflows/comparison.test.ts',
  'workflows/equal-calls.test.ts',
  'workflows/held-values.test.ts',
  'workflows/journal.test.ts',
  'workflows/segments.test.ts',
  'workflows/source-segments.test.ts',
  'adapters/closed-runs.test.ts',
  // Without HTTP.
  'app/cache-folder.test.ts',
  'facade/access.test.ts',
  'facade/input.test.ts',
  'facade/wrong-key-counts.test.ts',
];
/** Those that need a database, or a server of Java, and no Temporal dev server. */
const STORES = [
  'runs',
  'app/roles.test.ts',
  'facade/leaves.test.ts',
  'app/in-memory.test.ts',
  'adapters/history-java.test.ts',
];
/**
 * Those that start programs of the product or servers of their own, and kill them: each file in a process. One runs at a time
 * beside the tests in process, two when those are done (runner/plan.ts).
 */
const PROCESSES = [
  'acceptance/builds.test.ts',
  'acceptance/builds-life.test.ts',
  'acceptance/cohort-builds.test.ts',
  'acceptance/erasure.test.ts',
  'acceptance/first-hour.test.ts',
  'acceptance/python-client.test.ts',
  'acceptance/refund-example.test.ts',
  'acceptance/rehearsals.test.ts',
  'acceptance/run-bundle.test.ts',
  'acceptance/upgrade-check.test.ts',
  'adapters/dev-server.test.ts',
  'adapters/key-table.test.ts',
  'adapters/postgres-dying.test.ts',
  'adapters/postgres-expiring.test.ts',
  'adapters/postgres-faults.test.ts',
  'adapters/server-program.test.ts',
  'adapters/workflow-threads.test.ts',
  'agent-sdk/life.test.ts',
  'app/commands.test.ts',
  'app/host.test.ts',
  'app/launch.test.ts',
  'app/loader-cache.test.ts',
  'app/node-versions.test.ts',
  'app/rebuild.test.ts',
  'faults',
  'journeys/command-line.test.ts',
  'journeys/opensentience.test.ts',
  'opensentience/examples.test.ts',
  'opensentience/process',
  'system/idle-collection.test.ts',
];

/** Patterns from the repository's root. */
const patterns = (rooms: readonly string[]): string[] =>
  rooms.map((room) => (room.endsWith('.ts') ? `test/${room}` : `test/${room}/**/*.test.ts`));

export const ALL_TESTS = 'test/**/*.test.ts';
/** What vitest takes and leaves out for each project; each file is in one. */
export const PROJECTS = {
  pure: { include: patterns(PURE), exclude: patterns(PROCESSES) },
  stores: { include: patterns(STORES), exclude: patterns(PROCESSES) },
  real: { include: [ALL_TESTS], exclude: patterns([...PURE, ...STORES, ...PROCESSES]) },
  processes: { include: patterns(PROCESSES), exclude: [] },
};

/** Files of tests that share a Temporal dev server. */
export function realTestFiles(): string[] {
  return testFiles().filter((path) => ![...PURE, ...STORES, ...PROCESSES].some(holds(path)));
}

/** Files of tests in process: all but those of PROCESSES. */
export function inProcessTestFiles(): string[] {
  return testFiles().filter((path) => !PROCESSES.some(holds(path)));
}

/** Files of tests of PURE. */
export function pureTestFiles(): string[] {
  return testFiles().filter((path) => PURE.some(holds(path)));
}

/** Files of tests of PROCESSES. */
export function processTestFiles(): string[] {
  return testFiles().filter((path) => PROCESSES.some(holds(path)));
}

/** Files of all tests, from the repository's root. */
export function testFiles(): string[] {
  const folder = join(import.meta.dirname, '..');
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path}`);
}

const holds = (path: string) => (room: string) =>
  path === `test/${room}` || path.startsWith(`test/${room}/`);
