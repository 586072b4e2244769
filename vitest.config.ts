// Four projects: tests of pure rooms need no server, some need a database alone, most share one Temporal dev server, and some
// start the product's programs or servers of their own and kill them (architecture §8). Tests take free ports and own folders, so
// files run side by side. Those in process share their workers: to import the sources takes longer than most files.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { cacheFolder } from './src/app/cache-folder.js';
import { heaviestFirst, readDurations } from './test/runner/durations.ts';
import { WORKERS_VARIABLE } from './test/runner/lane.ts';
import { patient } from './test/support/machine.ts';
import { PROJECTS } from './test/support/projects.ts';
import { POLL } from './test/support/waiting.ts';

const CACHE_DIR = cacheFolder((name) => process.env[name]);

/** One project after the other: a worker that is given a file of another project is ended, and the next one imports all again. */
const PROJECT_ORDER = ['processes', 'real', 'stores', 'pure'];

class HeaviestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const paths = files.map(({ moduleId }) => moduleId);
    const order = heaviestFirst(paths, readDurations(CACHE_DIR));
    const placeOf = ({ project }: TestSpecification) => PROJECT_ORDER.indexOf(project.name);
    return [...files].sort(
      (a, b) => placeOf(a) - placeOf(b) || order.indexOf(a.moduleId) - order.indexOf(b.moduleId),
    );
  }
}

const WITH_TEMPORAL = { globalSetup: ['test/support/global-setup.ts'] };
const WITH_DATABASES = { globalSetup: ['test/support/setup-databases.ts'] };
const SHARED = { isolate: false };

export default defineConfig({
  // No settings of PostCSS are looked for, in folders above: they are programs.
  css: { postcss: {} },
  test: {
    pool: 'forks',
    // Files wait for timers, servers and each other's processes for half of their time: three share two cores. A lane of
    // `npm test` has fewer: an option of the command line does not reach the projects.
    maxWorkers:
      Number(process.env[WORKERS_VARIABLE]) || Math.max(2, Math.ceil(availableParallelism() * 1.5)),
    sequence: { sequencer: HeaviestFirst },
    // Nothing asserts a time; these end what hangs. A test names a limit of its own only where it needs more.
    testTimeout: patient(120_000),
    hookTimeout: patient(180_000),
    teardownTimeout: patient(30_000),
    expect: { poll: POLL },
    setupFiles: ['test/support/each-file.ts'],
    projects: [
      { extends: true, test: { name: 'pure', ...PROJECTS.pure, ...SHARED } },
      { extends: true, test: { name: 'stores', ...PROJECTS.stores, ...SHARED, ...WITH_DATABASES } },
      { extends: true, test: { name: 'real', ...PROJECTS.real, ...SHARED, ...WITH_TEMPORAL } },
      { extends: true, test: { name: 'processes', ...PROJECTS.processes, ...WITH_TEMPORAL } },
    ],
  },
});
