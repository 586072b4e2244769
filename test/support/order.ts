// In which order test files start: the heaviest first, so that no long one begins when all others are done (for
// vitest.config.ts). `npm test` prints the ten slowest files: what takes longer than said here is noted here.
import { statSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Seconds on two cores of the files that take longest, from test/. */
export const SECONDS: Readonly<Record<string, number>> = {
  'acceptance/refund-example.test.ts': 248,
  'faults/forks.test.ts': 194,
  'acceptance/first-hour.test.ts': 131,
  'acceptance/builds.test.ts': 129,
  'acceptance/fork-trees.test.ts': 127,
  'app/commands.test.ts': 123,
  'app/node-versions.test.ts': 120,
  'acceptance/run-bundle.test.ts': 111,
  'acceptance/erasure.test.ts': 109,
  'runs/erasure-keeper.test.ts': 102,
  'acceptance/retention.test.ts': 97,
  'journeys/opensentience.test.ts': 97,
  'journeys/openai.test.ts': 88,
  'acceptance/builds-life.test.ts': 82,
  'faults/opensentience.test.ts': 80,
  'acceptance/rehearsals.test.ts': 74,
  'workflows/sizes.test.ts': 71,
  'faults/processes.test.ts': 69,
  'adapters/postgres-faults.test.ts': 59,
  'adapters/postgres-migrating.test.ts': 58,
  'adapters/postgres-expiring.test.ts': 57,
  'journeys/agent-run.test.ts': 55,
  'workflows/handoff.test.ts': 52,
  'journeys/command-line.test.ts': 52,
  'acceptance/cohorts.test.ts': 51,
  'acceptance/forks.test.ts': 51,
  'acceptance/child-runs.test.ts': 50,
  'faults/cohorts.test.ts': 48,
  'workflows/child-runs.test.ts': 47,
  'journeys/anthropic.test.ts': 45,
  'app/in-memory.test.ts': 45,
  'faults/family.test.ts': 42,
  'acceptance/upgrade-check.test.ts': 41,
  'acceptance/fork-faults.test.ts': 38,
  'faults/sigkill-rounds.test.ts': 36,
  'journeys/agent-run-encrypted.test.ts': 36,
  'adapters/postgres-stores.test.ts': 35,
  'workflows/agent-queue.test.ts': 34,
  'adapters/subjects.test.ts': 34,
  'acceptance/dispatch.test.ts': 34,
  'app/rebuild.test.ts': 32,
  'acceptance/fork-answers.test.ts': 31,
  'workflows/forks.test.ts': 30,
  'journeys/front-door.test.ts': 30,
  'journeys/home-page.test.ts': 30,
  'adapters/postgres-retention.test.ts': 28,
  'app/host.test.ts': 27,
  'workflows/tool-answers.test.ts': 27,
  'support/workflow-lab.test.ts': 26,
  'workflows/run.test.ts': 25,
  'workflows/agent-humans.test.ts': 25,
  'acceptance/runs.test.ts': 23,
  'facade/limits.test.ts': 23,
  'facade/encrypted.test.ts': 22,
  'journeys/refund-desk-page.test.ts': 22,
  'workflows/pause.test.ts': 21,
  'bench/bench.test.ts': 20,
  'pages/start-form.test.ts': 20,
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
