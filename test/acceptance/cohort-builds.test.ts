// A cohort by a build of the worker (architecture §6, docs/upgrades.md): past runs are replayed by the workers of a build that
// takes no new runs yet, on Temporal's own server and PostgreSQL.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Cohort } from '../../schemas/types.generated.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { validate } from '../../src/wire/validators.ts';
import {
  changedCode,
  described,
  GATE,
  PARENT,
  startBuilds,
  type Builds,
  type CodeChange,
  type OtherCode,
} from '../support/builds.ts';
import { until } from '../support/host.ts';
import { sharePostgres, type SharedPostgres } from '../support/shared-postgres.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';

const COHORTS = '/v1/host/openwop-temporal/cohorts';
/** A fact of each visit comes a timer later. */
const TIMER_IN_EACH_VISIT: CodeChange = [
  /async function visitNode\(run, frame\) \{/,
  '$& await new Promise((done) => setTimeout(done, 1));',
];

let postgres: SharedPostgres | undefined;
let missing: string | undefined;
let temporal: TestTemporal;
let other: OtherCode;
let all: Builds;

beforeAll(async () => {
  const started = await sharePostgres();
  if ('missing' in started) {
    missing = started.missing;
    return;
  }
  postgres = started;
  [temporal, other] = await Promise.all([startTestTemporal(), changedCode(TIMER_IN_EACH_VISIT)]);
  all = await startBuilds({ postgres, temporal });
});

beforeEach((context) => context.skip(missing !== undefined, missing));
afterAll(async () => {
  await all?.stop();
  await temporal?.stop();
  await other?.remove();
  await postgres?.stop();
});

/** A run that has ended, as have its children. */
async function ended(workflowId: string, tag: string): Promise<string> {
  const { waiting, accept, completed, facade } = all;
  const runId = await waiting(workflowId, { tags: [tag] });
  expect(await accept(runId)).toBe(200);
  if (workflowId === PARENT.id) {
    await until(async () => (await childrenOf(facade, runId)).length > 0, 'its child is there');
    const [childId = ''] = await childrenOf(facade, runId);
    await until(async () => (await accept(childId)) === 200, 'the child asks and is answered');
  }
  await completed(runId);
  return runId;
}

async function childrenOf({ stores }: Builds['facade'], runId: string): Promise<string[]> {
  const found = await stores.families.descendants('default', runId, 10);
  return found.map((child) => child.runId);
}

/** Of the runs that have the tag. */
async function reported(tag: string, change: object): Promise<Cohort> {
  const { facade } = all;
  const body = { select: { tag }, change };
  const begun = await facade.api<Cohort>(COHORTS, { body });
  expect([begun.status, begun.body]).toMatchObject([201, { mode: 'replay', change }]);
  const read = async () => (await facade.api<Cohort>(`${COHORTS}/${begun.body.cohortId}`)).body;
  await until(async () => (await read()).endedAt !== undefined, 'the cohort has ended');
  const cohort = await read();
  expect(validate.cohort(cohort)).toMatchObject({ ok: true });
  return cohort;
}

describe('a cohort by a build of the worker', () => {
  it('is refused where no worker names a build', async () => {
    const unnamed = await all.worker('');
    await ended(GATE.id, 'unnamed');
    const body = { select: { tag: 'unnamed' }, change: { build: 'one' } };
    const { status, body: told } = await all.facade.api(COHORTS, { body });
    expect([status, told.error]).toEqual([501, 'capability_not_provided']);
    await unnamed.stop();
  });

  describe('where one takes new runs', () => {
    // Where runs go by the current build, nothing but the fork says by which it goes.
    const env = { OPENWOP_RUN_VERSIONING: 'auto-upgrade' };
    beforeAll(async () => {
      if (missing !== undefined) return;
      await all.worker('one', env);
      await until(async () => (await all.build('one'))?.state === 'current', 'it is current');
    });

    it('is refused where the build is none, or stands beside something else', async () => {
      await ended(GATE.id, 'refused');
      const refused = async (change: object) => {
        const body = { select: { tag: 'refused' }, change };
        const { status, body: told } = await all.facade.api(COHORTS, { body });
        return [status, told];
      };
      const field = '/change/build';
      for (const build of ['three', 'unversioned'])
        expect(await refused({ build })).toMatchObject([
          ...[400, { error: 'validation_error', details: { field, candidates: ['one'] } }],
        ]);
      for (const more of [{ configurable: { a: 1 } }, { agents: { a: { systemPrompt: 'b' } } }])
        expect(await refused({ build: 'one', ...more })).toMatchObject([
          ...[400, { error: 'validation_error', details: { field } }],
        ]);
    });

    // [I93]
    it('is replayed by the workers of that build alone, with the child runs below them', async () => {
      const { worker, build, facade } = all;
      const source = await ended(PARENT.id, 'parent');
      await worker('two', env);
      const { totals, results: [member] = [] } = await reported('parent', { build: 'two' });
      expect([totals.same, member?.sourceRunId]).toEqual([1, source]);
      const forkId = member?.forkRunId ?? '';
      const [childId = ''] = await childrenOf(facade, forkId);
      expect(await described(all, forkId)).toMatchObject({ buildId: 'two' });
      await until(
        async () => (await described(all, childId)).buildId === 'two',
        'the fork of its child was performed by the same build',
      );
      // Nothing was promoted by it.
      expect(await build('one')).toMatchObject({ state: 'current', share: 100 });
      expect(await build('two')).toMatchObject({ state: 'inactive', share: 0 });
    });

    it('a fork whose start was never confirmed begins on that build, from its row', async () => {
      const { facade } = all;
      await ended(GATE.id, 'unconfirmed');
      const { results: [member] = [] } = await reported('unconfirmed', { build: 'two' });
      const { runs } = facade.stores;
      const fork = await runs.find('default', member?.forkRunId ?? '');
      if (!fork) throw new Error('its fork is not there');
      const runId = `${fork.runId}-again`;
      const { tenant, workflowId, input } = fork;
      const again = { ...input, runId, fork: { ...(input.fork as ForkOf), cohortId: undefined } };
      await runs.accept({
        ...{ runId, tenant, workflowId, input: again, createdAtMs: Date.now() - 10_000 },
      });
      await facade.waitFor(runId, ({ status }) => status === 'completed');
      expect(await described(all, runId)).toMatchObject({ buildId: 'two' });
    });

    it('code that states otherwise is told by the builds of both', async () => {
      await ended(GATE.id, 'otherwise');
      // Its runs are pinned.
      await all.worker('three', { OPENWOP_CACHE_DIR: other.cacheDir });
      const builds = { sourceBuildId: 'one', buildId: 'three' };
      const { cohortId, totals, results } = await reported('otherwise', { build: 'three' });
      const [member] = results ?? [];
      expect(totals.diverged).toBe(1);
      expect(member).toMatchObject({
        ...{ outcome: 'diverged', error: { code: 'replay_diverged' } },
        divergence: { cause: 'code', build: builds },
      });
      const { sourceRunId = '', forkRunId = '' } = member ?? {};
      const compared = await all.facade.api(
        `/v1/host/openwop-temporal/runs/${sourceRunId}/diff?against=${forkRunId}`,
      );
      expect(compared.body.divergence).toMatchObject({ cause: 'code', build: builds });
      const { body: listed } = await all.facade.api<{ cohorts: Cohort[] }>(COHORTS);
      expect(listed.cohorts.find((one) => one.cohortId === cohortId)).toMatchObject({
        change: { build: 'three' },
      });
      // By its own code it is the same.
      expect((await reported('otherwise', { build: 'one' })).totals.same).toBe(1);
    });
  });
});
