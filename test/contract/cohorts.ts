// What every CohortStore does (architecture §6) with what members came to.
import { describe, expect, it } from 'vitest';
import { subjectOf } from '../../src/rules/subject.ts';
import { MAX_OPEN_COHORTS, type CohortRequest, type MemberStop } from '../../src/rules/cohort.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import type { NewRun } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { newId, newRun, type GivenStores } from './given.ts';
import { end } from './retention.ts';

const subject = subjectOf('api-key', 'default', 'someone');
const REQUEST: CohortRequest = {
  ...{ select: { last: 4 }, change: {}, parallel: 1, memberTimeoutMs: 1, scopes: [] },
  subject,
};
const SETTLED = { outcome: 'not-finished', report: {} } as const;

/** So many members, of sources that need not be there. */
export async function givenCohort({ cohorts }: Stores, count: number, tenant = 'default') {
  const cohortId = newId('cohort');
  const members = Array.from({ length: count }, (_, at) => ({
    ...{ sourceRunId: `${cohortId}-s${at}`, forkRunId: `${cohortId}-f${at}` },
  }));
  const cohort = { cohortId, tenant, request: REQUEST, createdAtMs: 1, members };
  const isInserted = await cohorts.insert(cohort, 1_000);
  return { cohortId, isInserted, nameAt: (position: number) => ({ tenant, cohortId, position }) };
}

/** The fork of a member, as it is accepted. */
export function memberFork(cohortId: string, position: number): NewRun {
  const run = newRun({ runId: `${cohortId}-f${position}` });
  const fork: ForkOf = {
    ...{ sourceRunId: `${cohortId}-s${position}`, fromSeq: 0, length: 1 },
    ...{ mode: 'branch', clocks: [], generation: 1, cohortId },
  };
  return { ...run, input: { ...run.input, fork } };
}

export function cohortStoreContract(stores: GivenStores): void {
  describe('CohortStore', () => {
    it('architecture §6 sums are told whatever the texts of a report hold: half a character where one was cut, and a NUL', async () => {
      const { cohorts } = stores();
      const texts = ['whole', `cut ${'😀'.slice(0, 1)}…`, 'a\0b', 'a "quoted" \\u0000'];
      const { cohortId } = await givenCohort(stores(), texts.length);
      for (const [position, message] of texts.entries())
        await cohorts.settle(
          { tenant: 'default', cohortId, position },
          {
            outcome: 'failed',
            report: {
              error: { code: 'internal_error', message },
              before: { status: 'completed', inputTokens: 1, outputTokens: 2, usd: 0.5 },
              after: { status: 'failed', inputTokens: 3 },
            },
          },
        );
      expect((await cohorts.totals('default', [cohortId])).get(cohortId)).toEqual({
        counts: { failed: 4 },
        before: { inputTokens: 4, outputTokens: 8, usd: 2 },
        after: { inputTokens: 12, outputTokens: 0 },
      });
      const told = await cohorts.members('default', cohortId, { from: 0, limit: 10 });
      expect(told.map(({ report }) => report?.error?.message)).toEqual(texts);
    });

    it('architecture §6 so many are open at once and no more, however many are asked for in one moment', async () => {
      const { cohorts } = stores();
      const tenant = newId('tenant');
      const insert = (cohortId = newId('cohort'), of = tenant) =>
        cohorts.insert(
          { cohortId, tenant: of, request: REQUEST, createdAtMs: 1, members: [] },
          MAX_OPEN_COHORTS,
        );
      const ids = Array.from({ length: MAX_OPEN_COHORTS + 3 }, () => newId('cohort'));
      const inserted = await Promise.all(ids.map((cohortId) => insert(cohortId)));
      expect(inserted.filter(Boolean)).toHaveLength(MAX_OPEN_COHORTS);
      expect(MAX_OPEN_COHORTS).toBe(8);
      const [first = ''] = ids.filter((_, at) => inserted[at]);
      expect([await insert(first), await insert(newId('cohort'), newId('tenant'))]).toEqual([
        ...[true, true],
      ]);
      await cohorts.cancelling(tenant, first);
      expect(await insert()).toBe(false);
      await cohorts.end(tenant, first, 2);
      expect([await insert(), await insert()]).toEqual([true, false]);
    });

    it('architecture §6 no fork is accepted of a member that is stopped, or has come to its end', async () => {
      const { cohorts, runs } = stores();
      const { cohortId, nameAt } = await givenCohort(stores(), 5);
      const accept = (position: number) =>
        runs.accept(memberFork(cohortId, position)).then(
          ({ kind }) => kind,
          (error: unknown) => codeOf(error),
        );
      for (const [at, stop] of (['cancelled', 'asks', 'time-limit'] as MemberStop[]).entries())
        await cohorts.noteStop(nameAt(at), stop);
      await cohorts.settle(nameAt(3), SETTLED);
      expect(await Promise.all([0, 1, 2, 3, 4].map(accept))).toEqual([
        ...Array.from({ length: 4 }, () => 'run_state_conflict'),
        'claimed',
      ]);
      expect(await runs.find('default', `${cohortId}-f3`)).toBeUndefined();
      expect(await cohorts.member(nameAt(4))).toMatchObject({ isMade: true });
    });

    it('architecture §6 a member whose fork is there is not settled as one without', async () => {
      const { cohorts, runs } = stores();
      const { cohortId, nameAt } = await givenCohort(stores(), 2);
      await runs.accept(memberFork(cohortId, 0));
      expect(await cohorts.settleUnmade(nameAt(0), SETTLED)).toBe(false);
      expect(await cohorts.member(nameAt(0))).not.toHaveProperty('outcome');
      expect(await cohorts.settleUnmade(nameAt(1), SETTLED)).toBe(true);
      expect(await cohorts.settleUnmade(nameAt(1), SETTLED)).toBe(true);
      expect(await cohorts.member(nameAt(1))).toMatchObject({ outcome: 'not-finished' });
    });

    it('architecture §3.7 an ended one expires behind the last of its forks, and no other', async () => {
      const { cohorts, runs, retention } = stores();
      const [forked, plain, open, young] = [
        ...[await givenCohort(stores(), 1), await givenCohort(stores(), 1)],
        ...[await givenCohort(stores(), 1), await givenCohort(stores(), 1)],
      ] as const;
      const fork = memberFork(forked.cohortId, 0);
      await runs.accept(fork);
      for (const { cohortId } of [forked, plain]) await cohorts.end('default', cohortId, 2);
      await cohorts.end('default', young.cohortId, Date.now());
      const expire = async () => {
        while ((await cohorts.expire(3_600_000, 1)) > 0);
      };
      const left = async () => {
        const all = [forked, plain, open, young];
        const found = await Promise.all(all.map((one) => cohorts.find('default', one.cohortId)));
        return found.map(Boolean);
      };
      await expire();
      expect(await left()).toEqual([true, false, true, true]);
      expect(await cohorts.member(plain.nameAt(0))).toBeUndefined();
      const run = runs.ref('default', fork.runId);
      await end(stores(), run);
      expect((await retention.expire(run, { keptMs: 0, restMs: 0 })).kind).toBe('expired');
      await expire();
      expect(await left()).toEqual([false, false, true, true]);
      expect(await cohorts.member(open.nameAt(0))).toBeDefined();
    });

    it('architecture §6 a fork and the end of its member in one moment: one of them comes first', async () => {
      const { cohorts, runs } = stores();
      const { cohortId, nameAt } = await givenCohort(stores(), 20);
      for (let at = 0; at < 20; at++) {
        const ends = async (): Promise<boolean> => {
          await cohorts.noteStop(nameAt(at), 'cancelled');
          return (await runs.find('default', `${cohortId}-f${at}`)) !== undefined;
        };
        const [made, seen] = await Promise.all([
          runs.accept(memberFork(cohortId, at)).then(
            () => true,
            () => false,
          ),
          at % 2 === 0 ? ends() : cohorts.settleUnmade(nameAt(at), SETTLED).then((it) => !it),
        ]);
        expect(seen).toBe(made);
      }
    });
  });
}
