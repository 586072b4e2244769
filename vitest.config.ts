// Two projects: tests of pure rooms start nothing; all others share one Temporal dev server (design §8). Tests take
// free ports and own folders, so files run side by side.
import { defineConfig } from 'vitest/config';
import { ALL_TESTS, PURE_TESTS } from './test/support/projects.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    // Each file may start workers, databases and servers of its own: more would only make them slow.
    maxWorkers: 2,
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
