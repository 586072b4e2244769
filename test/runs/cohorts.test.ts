// Cohorts that were accepted while Temporal was away (src/runs/cohorts.ts).
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import type { CohortRow } from '../../src/ports/cohorts.ts';
import { startLeftCohorts } from '../../src/runs/cohorts.ts';
import { silentLogger } from '../support/log-parts.ts';

type Deps = Parameters<typeof startLeftCohorts>[0];

/** Temporal refuses the first of three with this code. */
async function startedOf(code: 'internal_error' | 'service_unavailable'): Promise<string[]> {
  const started: string[] = [];
  const rows = ['one', 'two', 'three'].map((cohortId) => ({
    ...{ cohortId, tenant: 'default', members: 1 },
    request: { parallel: 1, memberTimeoutMs: 1 },
  })) as unknown as CohortRow[];
  const deps = {
    ...{ config: {}, logger: silentLogger },
    cohortEngine: {
      start: async ({ cohortId }: { readonly cohortId: string }) => {
        if (cohortId === 'one') throw new HostError(code);
      },
    },
    stores: {
      cohorts: {
        unstarted: async () => rows,
        markStarted: async (_tenant: string, cohortId: string) => void started.push(cohortId),
      },
    },
  } as unknown as Deps;
  await startLeftCohorts(deps, 10_000);
  return started;
}

describe('cohorts that are not started', () => {
  it('one that cannot be started keeps none behind it waiting', async () => {
    expect(await startedOf('internal_error')).toEqual(['two', 'three']);
  });

  it('while Temporal is away nobody else is asked: the next round tries again', async () => {
    expect(await startedOf('service_unavailable')).toEqual([]);
  });
});
