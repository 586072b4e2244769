// The leaves of the worker's builds (leaves.test.ts), where no worker names one.
import { BUILDS } from '../../src/facade/routes/builds.ts';
import { leaf, type Leaf } from './leaf.ts';

export const BUILD_LEAVES: readonly Leaf[] = [
  leaf(
    BUILDS.listBuilds,
    { told: { body: { builds: [], runsWithoutWorker: 0 } } },
    { without: 'temporal', told: 'service_unavailable' },
  ),
  leaf(BUILDS.listBuildRuns, 'never', {
    given: () => ({ path: { buildId: 'one' } }),
    told: 'build_conflict',
  }),
  leaf(BUILDS.promoteBuild, 'never', {
    given: () => ({ path: { buildId: 'one' }, body: {} }),
    told: 'build_conflict',
  }),
  leaf(BUILDS.moveRuns, 'never', {
    given: () => ({ body: { fromBuild: 'one' } }),
    told: 'build_conflict',
  }),
];
