// In which order test files start: the heaviest first, so that no long one begins when all others are done (for
// vitest.config.ts). `npm test` prints the ten slowest files: what takes longer than said here is noted here.
import { statSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Seconds on two cores of the files that take longest, from test/. */
export const SECONDS: Readonly<Record<string, number>> = {
  'workflows/forks.test.ts': 170,
  'app/commands.test.ts': 100,
  'faults/sigkill-rounds.test.ts': 99,
  'bench/bench.test.ts': 93,
  'acceptance/retention.test.ts': 60,
  'acceptance/first-hour.test.ts': 60,
  'acceptance/refund-example.test.ts': 90,
  'journeys/agent-run.test.ts': 55,
  'workflows/handoff.test.ts': 52,
  'acceptance/run-bundle.test.ts': 51,
  'acceptance/builds-life.test.ts': 51,
  'journeys/command-line.test.ts': 52,
  'journeys/opensentience.test.ts': 51,
  'faults/opensentience.test.ts': 50,
  'adapters/postgres-faults.test.ts': 49,
  'journeys/anthropic.test.ts': 45,
  'app/in-memory.test.ts': 45,
  'faults/processes.test.ts': 41,
  'adapters/postgres-migrating.test.ts': 39,
  'journeys/agent-run-encrypted.test.ts': 36,
  'adapters/postgres-stores.test.ts': 35,
  'workflows/agent-queue.test.ts': 34,
  'workflows/sizes.test.ts': 32,
  'app/rebuild.test.ts': 32,
  'journeys/front-door.test.ts': 30,
  'journeys/home-page.test.ts': 30,
  'pages/start-form.test.ts': 20,
  'app/host.test.ts': 27,
  'workflows/tool-answers.test.ts': 27,
  'support/workflow-lab.test.ts': 26,
  'workflows/run.test.ts': 25,
  'workflows/agent-humans.test.ts': 25,
  'acceptance/runs.test.ts': 23,
  'facade/limits.test.ts': 23,
  'facade/encrypted.test.ts': 22,
  'journeys/refund-desk-page.test.ts': 22,
  'journeys/openai.test.ts': 88,
  'workflows/pause.test.ts': 21,
  'workflows/parallel-questions.test.ts': 18,
  'wire/user-schema.test.ts': 18,
  'workflows/agent.test.ts': 16,
  'adapters/engine.test.ts': 14,
  'facade/away.test.ts': 14,
  'facade/pglite.test.ts': 14,
  'facade/key-retention.test.ts': 14,
  'adapters/history.test.ts': 13,
  'facade/accept-trips.test.ts': 12,
  'acceptance/agents.test.ts': 11,
  'pages/chromium.test.ts': 11,
  'log/projector.test.ts': 10,
  'workflows/late-answers.test.ts': 10,
  'facade/behind-proxy.test.ts': 10,
  'acceptance/streams.test.ts': 10,
  'opensentience/process/supervisor.test.ts': 10,
  'facade/leaving-clients.test.ts': 9,
  'facade/host-session.test.ts': 9,
  'workflows/questions.test.ts': 9,
  'facade/pause.test.ts': 9,
  'histories/golden.test.ts': 9,
  'activities/progress.test.ts': 8,
  'log/archiver.test.ts': 8,
  'translate/translate.test.ts': 8,
  'opensentience/examples.test.ts': 8,
};
/** What is not in the table goes by its size: about a second each. */
const BYTES_PER_SECOND = 10_000;
const TESTS = join(import.meta.dirname, '..');

function secondsOf(path: string): number {
  return SECONDS[relative(TESTS, path)] ?? statSync(path).size / BYTES_PER_SECOND;
}

/** Absolute paths of test files, those that take longest in front. */
export function heaviestFirst(paths: readonly string[]): readonly string[] {
  const seconds = new Map(paths.map((path) => [path, secondsOf(path)]));
  return [...paths].sort((a, b) => (seconds.get(b) ?? 0) - (seconds.get(a) ?? 0));
}
