// What every CohortStore does (architecture §6) with what members came to.
import { describe, expect, it } from 'vitest';
import { subjectOf } from '../../src/rules/subject.ts';
import { newId, type GivenStores } from './given.ts';

const subject = subjectOf('api-key', 'default', 'someone');

export function cohortStoreContract(stores: GivenStores): void {
  describe('CohortStore', () => {
    it('architecture §6 sums are told whatever the texts of a report hold: half a character where one was cut, and a NUL', async () => {
      const { cohorts } = stores();
      const cohortId = newId('cohort');
      const texts = ['whole', `cut ${'😀'.slice(0, 1)}…`, 'a\0b', 'a "quoted" \\u0000'];
      const members = texts.map((_, at) => ({
        ...{ sourceRunId: `${cohortId}-s${at}`, forkRunId: `${cohortId}-f${at}` },
      }));
      const request = {
        ...{ select: { last: 4 }, change: {}, parallel: 1, memberTimeoutMs: 1, scopes: [] },
        subject,
      };
      const cohort = { cohortId, tenant: 'default', request, createdAtMs: 1, members };
      expect(await cohorts.insert(cohort, 1_000)).toBe(true);
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
  });
}
