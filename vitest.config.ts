// Three projects: tests of pure rooms start nothing, some need a database alone, all others share one Temporal dev server
// (architecture §8). Tests take free ports and own folders, so files run side by side.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { patient } from './test/support/machine.ts';
import { heaviestFirst } from './test/support/order.ts';
import { ALL_TESTS, PURE_TESTS, STORE_TESTS } from './test/support/projects.ts';

/** Of all projects together. */
class HeaviestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = heaviestFirst(files.map(({ moduleId }) => moduleId));
    return [...files].sort((a, b) => order.indexOf(a.moduleId) - order.indexOf(b.moduleId));
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    // Files wait for timers, servers and each other's processes for half of their time: three share two cores.
    maxWorkers: Math.max(2, Math.ceil(availableParallelism() * 1.5)),
    sequence: { sequencer: HeaviestFirst },
    // Nothing asserts a time; these end what hangs. A test names a limit of its own only where it needs more.
    testTimeout: patient(120_000),
    hookTimeout: patient(180_000),
    teardownTimeout: patient(30_000),
    setupFiles: ['test/support/each-file.ts'],
    expect: { poll: { timeout: patient(30_000), interval: 50 } },
    projects: [
      { extends: true, test: { name: 'pure', include: PURE_TESTS } },
      {
        extends: true,
        test: {
          name: 'stores',
          include: STORE_TESTS,
          globalSetup: ['test/support/setup-databases.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'real',
          include: [ALL_TESTS],
          exclude: [...PURE_TESTS, ...STORE_TESTS],
          globalSetup: ['test/support/global-setup.ts'],
        },
      },
    ],
  },
});
