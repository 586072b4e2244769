// Names of runs in tests: as the run store makes them, without a store.
import type { RunRef } from '../../src/ports/runs.ts';

export function runRef(runId: string, tenant = 'default'): RunRef {
  return { tenant, runId } as RunRef;
}
