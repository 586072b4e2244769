// Cohorts that were accepted while Temporal was away (src/runs/cohorts.ts), and members that nothing can be done with.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeOf, HostError } from '../../src/rules/errors.ts';
import type { CohortRow } from '../../src/ports/cohorts.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { createRounds } from '../../src/log/rounds.ts';
import { createCohortMembers } from '../../src/runs/cohort-members.ts';
import { startLeftCohorts } from '../../src/runs/cohorts.ts';
import { givenCohort, memberFork } from '../contract/cohorts.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';

type Deps = Parameters<typeof startLeftCohorts>[0];

/** Temporal refuses the first of three with this code. */
async function startedOf(
  code: 'internal_error' | 'service_unavailable',
  isAway = false,
): Promise<string[]> {
  const started: string[] = [];
  const rows = ['one', 'two', 'three'].map((cohortId) => ({
    ...{ cohortId, tenant: 'default', members: 1 },
    request: { parallel: 1, memberTimeoutMs: 1 },
  })) as unknown as CohortRow[];
  const deps = {
    ...{ config: {}, signal: new AbortController().signal },
    // The first is refused by a server that is away, or for its own sake by one that is there.
    rounds: createRounds({
      logger: silentLogger,
      answers: async () => {
        if (isAway) throw new HostError('service_unavailable');
      },
    }),
    cohortEngine: {
      start: async ({ cohortId }: { readonly cohortId: string }) => {
        if (cohortId === 'one') throw new HostError(code);
      },
    },
    stores: {
      cohorts: {
        unstarted: async () => rows,
        find: async (_tenant: string, id: string) => rows.find((row) => row.cohortId === id),
        markStarted: async (_tenant: string, cohortId: string) => void started.push(cohortId),
      },
    },
  } as unknown as Deps;
  await startLeftCohorts(deps);
  return started;
}

describe('cohorts that are not started', () => {
  it('one that cannot be started keeps none behind it waiting', async () => {
    for (const code of ['internal_error', 'service_unavailable'] as const)
      expect(await startedOf(code)).toEqual(['two', 'three']);
  });

  it('while Temporal is away nobody else is asked: the next round tries again', async () => {
    expect(await startedOf('service_unavailable', true)).toEqual([]);
  });
});

describe('a member of a cohort', () => {
  let stores: Stores;
  beforeAll(async () => {
    stores = await openAnyStores();
  });
  afterAll(() => stores.close());

  /** Whose fork is there; to read its log fails with this. */
  async function stepped(code: 'history_undecodable' | 'internal_error') {
    const { cohortId, nameAt } = await givenCohort(stores, 1);
    const fork = memberFork(cohortId, 0);
    await stores.runs.accept(fork);
    await stores.runs.markStarted(stores.runs.ref('default', fork.runId), 'T1');
    const failing = () => Promise.reject(new HostError(code));
    const members = createCohortMembers({
      ...{ stores, logger: silentLogger, log: { head: failing, fresh: failing } },
    } as unknown as Parameters<typeof createCohortMembers>[0]);
    const look = { isLong: false, spentMs: 0 };
    const stands = await members.step(nameAt(0), look).catch((error: unknown) => codeOf(error));
    return { stands, member: await stores.cohorts.member(nameAt(0)) };
  }

  it('ends with the reason where no later try can do anything: its cohort ends, too', async () => {
    const { stands, member } = await stepped('history_undecodable');
    expect(stands).toBe('ended');
    expect(member).toMatchObject({
      outcome: 'source-missing',
      report: { error: { code: 'history_undecodable' } },
    });
  });

  it('is tried again where one may', async () => {
    const { stands, member } = await stepped('internal_error');
    expect(stands).toBe('internal_error');
    expect(member).not.toHaveProperty('outcome');
  });
});
