// A cohort by a build of the worker (architecture §6, docs/upgrades.md): past runs are replayed by the workers of a build that
// takes no new runs yet, on Temporal's own server and PostgreSQL.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
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
import { until, type TestHostOptions } from '../support/host.ts';
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
let builds: Builds | undefined;

beforeAll(async () => {
  const started = await sharePostgres();
  if ('missing' in started) missing = started.missing;
  else postgres = started;
  [temporal, other] = await Promise.all([startTestTemporal(), changedCode(TIMER_IN_EACH_VISIT)]);
});

beforeEach((context) => context.skip(missing !== undefined, missing));
afterEach(async () => {
  await builds?.stop();
  builds = undefined;
});
afterAll(async () => {
  await temporal?.stop();
  await other?.remove();
  await postgres?.stop();
});

/** With the build `one`, which takes new runs. */
async function begin(env: TestHostOptions['env'] = {}): Promise<Builds> {
  builds = await startBuilds({ postgres: postgres as SharedPostgres, temporal });
  const { build, worker } = builds;
  await worker('one', env);
  await until(async () => (await build('one'))?.state === 'current', 'the first is current');
  return builds;
}

/** A run that has ended, as have its children. */
async function ended({ waiting, accept, completed, facade }: Builds, workflowId: string) {
  const runId = await waiting(workflowId);
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

async function reported({ facade }: Builds, workflowId: string, change: object): Promise<Cohort> {
  const body = { select: { workflowId }, change };
  const begun = await facade.api<Cohort>(COHORTS, { body });
  expect([begun.status, begun.body]).toMatchObject([201, { mode: 'replay', change }]);
  const read = async () => (await facade.api<Cohort>(`${COHORTS}/${begun.body.cohortId}`)).body;
  await until(async () => (await read()).endedAt !== undefined, 'the cohort has ended');
  const cohort = await read();
  expect(validate.cohort(cohort)).toMatchObject({ ok: true });
  return cohort;
}

describe('a cohort by a build of the worker', () => {
  // [I93]
  it('is replayed by the workers of that build alone, with the child runs below them', async () => {
    // Where runs go by the current build, nothing but the fork says by which it goes.
    const env = { OPENWOP_RUN_VERSIONING: 'auto-upgrade' };
    const all = await begin(env);
    const { worker, build, facade } = all;
    const source = await ended(all, PARENT.id);
    await worker('two', env);
    const { totals, results: [member] = [] } = await reported(all, PARENT.id, { build: 'two' });
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
    const all = await begin();
    const { worker, facade } = all;
    await ended(all, GATE.id);
    await worker('two');
    const { results: [member] = [] } = await reported(all, GATE.id, { build: 'two' });
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
    const all = await begin();
    await ended(all, GATE.id);
    await all.worker('two', { OPENWOP_CACHE_DIR: other.cacheDir });
    const builds = { sourceBuildId: 'one', buildId: 'two' };
    const { totals, results: [member] = [] } = await reported(all, GATE.id, { build: 'two' });
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
    expect(listed.cohorts.map(({ change }) => change)).toEqual([{ build: 'two' }]);
    // By its own code it is the same.
    expect((await reported(all, GATE.id, { build: 'one' })).totals.same).toBe(1);
  });

  it('is refused where the build is none, or stands beside something else', async () => {
    const all = await begin();
    const { facade } = all;
    await ended(all, GATE.id);
    const refused = async (change: object) => {
      const body = { select: { workflowId: GATE.id }, change };
      const { status, body: told } = await facade.api(COHORTS, { body });
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

  it('is refused where no worker names a build', async () => {
    builds = await startBuilds({ postgres: postgres as SharedPostgres, temporal });
    await builds.worker('');
    await ended(builds, GATE.id);
    const body = { select: { workflowId: GATE.id }, change: { build: 'one' } };
    const { status, body: told } = await builds.facade.api(COHORTS, { body });
    expect([status, told.error]).toEqual([501, 'capability_not_provided']);
  });
});
