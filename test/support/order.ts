// In which order test files start: the heaviest first, so that no long one begins when all others are done (for
// vitest.config.ts). `npm test` prints the ten slowest files: what takes longer than said here is noted here.
import { statSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Seconds on two cores of the files that take longest, from test/. */
export const SECONDS: Readonly<Record<string, number>> = {
  'faults/sigkill-rounds.test.ts': 90,
  'bench/bench.test.ts': 79,
  'app/commands.test.ts': 73,
  'journeys/agent-run.test.ts': 72,
  'faults/opensentience.test.ts': 72,
  'faults/processes.test.ts': 63,
  'journeys/opensentience.test.ts': 61,
  'journeys/agent-run-encrypted.test.ts': 44,
  'workflows/agent-queue.test.ts': 37,
  'facade/encrypted.test.ts': 37,
  'journeys/refund-desk-page.test.ts': 36,
  'adapters/postgres-faults.test.ts': 34,
  'app/host.test.ts': 32,
  'workflows/sizes.test.ts': 28,
  'workflows/tool-answers.test.ts': 27,
  'adapters/postgres-stores.test.ts': 27,
  'app/in-memory.test.ts': 26,
  'workflows/run.test.ts': 25,
  'journeys/openai.test.ts': 25,
  'app/rebuild.test.ts': 25,
  'adapters/engine.test.ts': 23,
  'workflows/agent-humans.test.ts': 22,
  'acceptance/runs.test.ts': 20,
  'facade/away.test.ts': 18,
  'facade/pglite.test.ts': 17,
  'log/projector.test.ts': 16,
  'workflows/agent.test.ts': 15,
  'workflows/late-answers.test.ts': 13,
  'opensentience/process/supervisor.test.ts': 12,
  'log/catch-up.test.ts': 12,
  'facade/leaving-clients.test.ts': 12,
  'adapters/history.test.ts': 12,
  'facade/behind-proxy.test.ts': 11,
  'adapters/dev-server.test.ts': 11,
  'acceptance/agents.test.ts': 11,
  'acceptance/streams.test.ts': 10,
  'log/real-run.test.ts': 9,
  'adapters/server-program.test.ts': 9,
  'activities/progress.test.ts': 9,
  'acceptance/wire.test.ts': 9,
  'pages/chromium.test.ts': 8,
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
