// Cohorts that were accepted while Temporal was away (src/runs/cohorts.ts), and members that nothing can be done with.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeOf, HostError, invalid } from '../../src/rules/errors.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import type { CohortInput } from '../../src/rules/cohort.ts';
import type { Caller } from '../../src/ports/caller.ts';
import type { IdempotencyClaim } from '../../src/ports/idempotency.ts';
import type { CohortRow } from '../../src/ports/cohorts.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { createRounds } from '../../src/log/rounds.ts';
import { createCohortMembers } from '../../src/runs/cohort-members.ts';
import { startCohort, startLeftCohorts } from '../../src/runs/cohorts.ts';
import type { Telling } from '../../src/runs/once.ts';
import { givenCohort, memberFork } from '../contract/cohorts.ts';
import { newId } from '../contract/given.ts';
import { openAnyStores, runRow, silentLogger } from '../support/log-parts.ts';

type Deps = Parameters<typeof startLeftCohorts>[0];

/** Temporal refuses the first of three with this code. */
async function startedOf(
  code: 'internal_error' | 'service_unavailable',
  isAway = false,
): Promise<string[]> {
  const started: string[] = [];
  const rows = ['one', 'two', 'three'].map((cohortId) => ({
    ...{ cohortId, tenant: 'default', members: 1 },
    ...(cohortId === 'two' && { unreadable: { code: 'history_undecodable', message: '' } }),
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
  it('one that cannot be started keeps none behind it waiting, and one with a damaged request is started', async () => {
    for (const code of ['internal_error', 'service_unavailable'] as const)
      expect(await startedOf(code)).toEqual(['two', 'three']);
  });

  it('while Temporal is away nobody else is asked: the next round tries again', async () => {
    expect(await startedOf('service_unavailable', true)).toEqual([]);
  });
});

// idempotency.md §Layer 1, architecture §6
describe('tries of one key', () => {
  let stores: Stores;
  beforeAll(async () => {
    stores = await openAnyStores();
  });
  afterAll(() => stores.close());

  /** Every lease is over when it is given, unless `leaseMs` says otherwise. */
  function oneKey(leaseMs = 0) {
    const tenant = newId('tenant');
    const caller: Caller = {
      ...{ tenant, subject: subjectOf('api-key', tenant, 'tester'), scopes: ['runs:read'] },
    };
    const started: CohortInput[] = [];
    const body = { select: {}, change: {} };
    const asked = { endpoint: 'POST cohorts', target: [], body, key: newId('key') };
    const telling: Telling<CohortRow> = {
      told: ({ cohortId }) => ({ status: 201, body: cohortId }),
      refused: (error) =>
        codeOf(error) === 'validation_error' ? { status: 400, body: 'none' } : undefined,
    };
    /** A try that finds these runs, and waits for what is given at these steps. */
    const attempt = (
      runs: readonly string[],
      {
        pick = ready,
        insert = ready,
        start = ready,
      }: Partial<Record<'pick' | 'insert' | 'start', () => Promise<void>>> = {},
    ) => {
      const deps = {
        ...{ config: {}, logger: silentLogger, redactor: { json: <T>(value: T): T => value } },
        cohortEngine: {
          start: async (input: CohortInput) => {
            await start();
            started.push(input);
          },
        },
        stores: {
          ...stores,
          idempotency: {
            ...stores.idempotency,
            claim: (of: string, claim: IdempotencyClaim) =>
              stores.idempotency.claim(of, claim, leaseMs),
          },
          cohorts: {
            ...stores.cohorts,
            candidates: async () => {
              await pick();
              return { runs: runs.map((id) => runRow(id)), unreadable: [] };
            },
            insert: async (...given: Parameters<Stores['cohorts']['insert']>) => {
              await insert();
              return stores.cohorts.insert(...given);
            },
          },
        },
      } as unknown as Parameters<typeof startCohort>[0];
      return startCohort(deps, caller, { asked: body, once: { asked, telling } })
        .then((once) => (once.replayed ? once.kept.body : once.data.members))
        .catch((error: unknown) => codeOf(error));
    };
    const stands = async () => {
      const { cohorts } = await stores.cohorts.list(tenant, { limit: 10 });
      const sources = await Promise.all(
        cohorts.map(async ({ cohortId }) => {
          const found = await stores.cohorts.members(tenant, cohortId, { from: 0, limit: 10 });
          return found.map(({ sourceRunId }) => sourceRunId);
        }),
      );
      return { sources, started: [...new Set(started.map(({ cohortId }) => cohortId))].length };
    };
    return { attempt, stands, started };
  }
  const ready = () => Promise.resolve();
  const away = () => Promise.reject(new HostError('service_unavailable'));

  /** A step that is held once it is reached, until it is let go. */
  function held() {
    let letGo = (): void => undefined;
    let wasReached = (): void => undefined;
    const gone = new Promise<void>((resolve) => (letGo = resolve));
    const reached = new Promise<void>((resolve) => (wasReached = resolve));
    const step = (): Promise<void> => {
      wasReached();
      return gone;
    };
    return { step, reached, letGo: () => letGo() };
  }

  it('at once: one makes the cohort, and the others are told of it', async () => {
    const { attempt, stands } = oneKey(60_000);
    const { step, reached, letGo } = held();
    const first = attempt(['a'], { pick: step });
    await reached;
    const inFlight = 'idempotency_in_flight';
    expect(await Promise.all([attempt(['b']), attempt(['c'])])).toEqual([inFlight, inFlight]);
    letGo();
    expect(await first).toBe(1);
    expect(await attempt(['d'])).toMatch(/^cohort-/);
    expect(await stands()).toEqual({ sources: [['a']], started: 1 });
  });

  it('one that ended before it stored its cohort is followed by another with the same id', async () => {
    const { attempt, stands, started } = oneKey();
    expect(await attempt(['a'], { insert: away })).toBe('service_unavailable');
    expect(await attempt(['b', 'c'])).toBe(2);
    expect(await stands()).toEqual({ sources: [['b', 'c']], started: 1 });
    expect(started.map(({ members }) => members)).toEqual([2]);
  });

  it('one that stored its cohort and did not start it is followed by another with its members', async () => {
    const { attempt, stands, started } = oneKey();
    expect(await attempt(['a'], { start: away })).toBe('service_unavailable');
    expect(await attempt(['b', 'c'])).toBe(1);
    expect(await stands()).toEqual({ sources: [['a']], started: 1 });
    expect(started.map(({ members }) => members)).toEqual([1]);
  });

  it('one that was slow to store starts what another has stored, not what it picked itself', async () => {
    const { attempt, stands, started } = oneKey();
    const { step, reached, letGo } = held();
    const slow = attempt(['a'], { insert: step });
    await reached;
    expect(await attempt(['b', 'c'], { start: away })).toBe('service_unavailable');
    letGo();
    expect(await slow).toBe(2);
    expect(await stands()).toEqual({ sources: [['b', 'c']], started: 1 });
    expect(started.map(({ members }) => members)).toEqual([2]);
  });

  it('one that was slow to pick stores nothing when another was refused meanwhile', async () => {
    const { attempt, stands } = oneKey();
    const { step, reached, letGo } = held();
    const slow = attempt(['a'], { pick: step });
    await reached;
    expect(await attempt([])).toBe('validation_error');
    letGo();
    expect(await slow).toBe('idempotency_in_flight');
    expect(await attempt(['d'])).toBe('none');
    expect(await stands()).toEqual({ sources: [], started: 0 });
  });
});

describe('a member of a cohort', () => {
  let stores: Stores;
  beforeAll(async () => {
    stores = await openAnyStores();
  });
  afterAll(() => stores.close());

  /** Whose fork is there; to read its log fails with this. */
  async function stepped(
    code: 'history_undecodable' | 'internal_error' | 'run_not_found',
    isLong = false,
  ) {
    const { cohortId, nameAt } = await givenCohort(stores, 1);
    const fork = memberFork(cohortId, 0);
    await stores.runs.accept(fork);
    await stores.runs.markStarted(stores.runs.ref('default', fork.runId), 'T1');
    const failing = () => Promise.reject(new HostError(code));
    const members = createCohortMembers({
      ...{ stores, logger: silentLogger, log: { head: failing, fresh: failing } },
    } as unknown as Parameters<typeof createCohortMembers>[0]);
    const look = { isLong, spentMs: 0 };
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

  it('that is refused says what of it is: others may be accepted', async () => {
    const { nameAt } = await givenCohort(stores, 1);
    const refusal = invalid('/configurable/temperature', 'is taken by no model of the provider p');
    const members = createCohortMembers({
      ...{ logger: silentLogger, log: { rows: () => [] } },
      stores: { ...stores, runs: { find: () => Promise.reject(refusal) } },
    } as unknown as Parameters<typeof createCohortMembers>[0]);
    expect(await members.step(nameAt(0), { isLong: false, spentMs: 0 })).toBe('ended');
    const error = {
      code: 'validation_error',
      message:
        'The request is not valid. (/configurable/temperature is taken by no model of the provider p)',
    };
    const member = await stores.cohorts.member(nameAt(0));
    expect(member).toMatchObject({ outcome: 'failed', report: { error } });
  });

  it('is tried again where one may', async () => {
    const { stands, member } = await stepped('internal_error');
    expect(stands).toBe('internal_error');
    expect(member).not.toHaveProperty('outcome');
  });

  it('[I98] waits for the log of its fork while that is made again', async () => {
    const { stands, member } = await stepped('run_not_found', true);
    expect(stands).toBe('service_unavailable');
    expect(member).not.toHaveProperty('outcome');
  });
});
