// Two projects: tests of pure rooms start nothing; all others share one Temporal dev server (architecture §8). Tests
// take free ports and own folders, so files run side by side.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { heaviestFirst } from './test/support/order.ts';
import { ALL_TESTS, PURE_TESTS } from './test/support/projects.ts';

/** Those that need a server first: a process that has loaded what they need takes the next of its kind. */
class HeaviestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = heaviestFirst(files.map(({ moduleId }) => moduleId));
    const place = ({ moduleId, project }: TestSpecification): number =>
      order.indexOf(moduleId) + (project.name === 'pure' ? order.length : 0);
    return [...files].sort((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    // Loading the SDK and the house costs more than most files: a process runs one file after the other. What a file
    // starts it ends, and it leaves the process's environment as it is (tidy.test.ts).
    isolate: false,
    restoreMocks: true,
    // Files wait for timers, servers and each other's processes for half of their time: three share two cores.
    maxWorkers: Math.max(2, Math.ceil(availableParallelism() * 1.5)),
    sequence: { sequencer: HeaviestFirst },
    // Nothing asserts a time; these end what hangs.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    expect: { poll: { timeout: 20_000, interval: 50 } },
    projects: [
      { extends: true, test: { name: 'pure', include: PURE_TESTS } },
      {
        extends: true,
        test: {
          name: 'real',
          include: [ALL_TESTS],
          exclude: PURE_TESTS,
          globalSetup: ['test/support/global-setup.ts'],
        },
      },
    ],
  },
});
