// docs/upgrades.md: builds of the worker beside each other, on Temporal's own server and PostgreSQL.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Client } from '@temporalio/client';
import type { Cohort } from '../../schemas/types.generated.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { createDeployments } from '../../src/adapters/temporal/deployments.ts';
import {
  changedCode,
  startBuilds,
  TIMED,
  TIMER_MORE,
  type Builds,
  type OtherCode,
} from '../support/builds.ts';
import { spawnHost, until, type TestHostOptions } from '../support/host.ts';
import { sharePostgres, type SharedPostgres } from '../support/shared-postgres.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';
import { paced, patient } from '../support/machine.ts';

const BASE = '/v1/host/openwop-temporal/deployments';

let postgres: SharedPostgres | undefined;
let missing: string | undefined;
let temporal: TestTemporal;
let other: OtherCode;
let builds: Builds;

beforeAll(async () => {
  const started = await sharePostgres();
  if ('missing' in started) missing = started.missing;
  else postgres = started;
  [temporal, other] = await Promise.all([startTestTemporal(), changedCode(TIMER_MORE)]);
});

beforeEach((context) => context.skip(missing !== undefined, missing));
afterEach(() => builds?.stop());
afterAll(async () => {
  await temporal?.stop();
  await other?.remove();
  await postgres?.stop();
});

async function begin(more: Partial<TestHostOptions> = {}): Promise<Builds> {
  builds = await startBuilds({ postgres: postgres as SharedPostgres, temporal }, more);
  return builds;
}

const two = () => ({ OPENWOP_CACHE_DIR: other.cacheDir });

describe('docs/upgrades.md two builds at once', () => {
  // [I80]
  it('runs stay with the build that began them, new ones go to the promoted one, and the first drains', async () => {
    const { worker, waiting, accept, completed, build, facade, deployments } = await begin();
    await worker('one');
    await until(async () => (await build('one'))?.state === 'current', 'the first is current');
    const old = await waiting();
    await worker('two', two());
    expect(await build('two')).toMatchObject({ state: 'inactive', share: 0, openRuns: 0 });
    await completed(await answered(await waiting()));

    const promoted = await facade.api(`${BASE}/two/promote`, { body: {} });
    expect(promoted.status).toBe(200);
    const young = await waiting();
    await until(async () => (await build('two'))?.heldRuns === 1, 'the new run is held by two');
    expect(await deployments.read()).toMatchObject({
      currentBuildId: 'two',
      runsWithoutWorker: 0,
      builds: [
        { buildId: 'two', state: 'current', share: 100, openRuns: 1, heldRuns: 1, hasWorker: true },
        { buildId: 'one', state: 'draining', share: 0, openRuns: 1, heldRuns: 1, hasWorker: true },
      ],
    });
    const readiness = async () => (await facade.api('/readyz')).body.builds;
    await until(async () => (await readiness()) !== undefined, 'readiness tells of builds');
    expect(await readiness()).toEqual({ current: 'two', runsWithoutWorker: 0 });
    expect(await deployments.runsOf('one')).toEqual([{ runId: old, buildId: 'one', held: true }]);

    for (const runId of [old, young]) await completed(await answered(runId));
    await until(async () => (await build('one'))?.state === 'drained', 'the first has drained');
    expect(await build('one')).toMatchObject({ openRuns: 0, heldRuns: 0 });

    async function answered(runId: string): Promise<string> {
      expect(await accept(runId)).toBe(200);
      return runId;
    }
  });

  it('a run that was moved to a build that cannot go on with it says why, and goes on when it is moved back', async () => {
    const { worker, build, facade, deployments, accept, completed } = await begin();
    await worker('one');
    await until(async () => (await build('one'))?.state === 'current', 'the first is current');
    // Before the run begins: no start of a worker stands against its clock.
    await worker('two', two());
    const runId = await facade.startRun({ workflowId: TIMED.id });
    await until(async () => (await build('one'))?.heldRuns === 1, 'the run is held');
    const moved = await facade.api(`${BASE}/move`, { body: { runIds: [runId], toBuild: 'two' } });
    expect(moved.body).toEqual({ moved: [runId], failed: [] });
    const failing = async () => (await deployments.runsOf('two'))[0]?.failing;
    await until(async () => (await failing())?.reason !== undefined, 'its reason is told');
    expect((await failing())?.reason).toMatch(/nondeterminism/i);
    expect((await facade.api(`/v1/runs/${runId}`)).body.status).toBe('running');
    await deployments.moveRuns([runId], { buildId: 'one' });
    await facade.waitFor(runId, ({ status }) => status === 'waiting-approval');
    expect(await accept(runId)).toBe(200);
    await completed(runId);
  });

  it('kill -9 of the only worker of a build: its runs are told of, and go on when they are moved', async () => {
    const { worker, base, build, facade, waiting, accept, completed, deployments } = await begin();
    const killed = await spawnHost('worker', {
      ...facade.env,
      OPENWOP_BUILD_ID: 'one',
      // As a process it knows no definitions of ours; the runs' own input has them.
    });
    await until(async () => (await build('one'))?.state === 'current', 'the first is current');
    const [a, b] = [await waiting(), await waiting()];
    await killed.kill('SIGKILL');
    // Compatible: the same workflow code under another id.
    await worker('two');
    const { namespace } = base.temporal as { namespace: string };
    const connection = connectTemporal({ address: temporal.address, namespace });
    try {
      // A worker is believed to be there for the time of its last poll: here for a second.
      const quick = createDeployments({ connection, namespace, workerSeenMs: 1_000 });
      await until(async () => ((await quick.read())?.runsWithoutWorker ?? 0) >= 2, 'both are told');
      expect((await quick.read())?.builds.find((one) => one.buildId === 'one')).toMatchObject({
        ...{ state: 'current', heldRuns: 2, hasWorker: false },
      });
    } finally {
      await connection.close();
    }
    await deployments.promote('two', 100);
    const moved = await deployments.moveFrom('one', { buildId: 'two' });
    expect([...moved.moved].sort()).toEqual([a, b].sort());
    for (const runId of [a, b] as string[]) {
      expect(await accept(runId)).toBe(200);
      await completed(runId);
    }
  });

  it(
    'a cohort is no run of a build and goes on with the current one; cancelled, its forks are told whoever is there',
    { timeout: patient(120_000) },
    async () => {
      const { worker, build, facade, deployments, accept, completed } = await begin({
        waits: { cohortStopMs: paced(2_000) },
      });
      const first = await worker('one');
      await until(async () => (await build('one'))?.state === 'current', 'the first is current');
      const source = await facade.startRun({ workflowId: TIMED.id });
      await facade.waitFor(source, ({ status }) => status === 'waiting-approval');
      expect(await accept(source)).toBe(200);
      await completed(source);
      const cohorts = '/v1/host/openwop-temporal/cohorts';
      const select = { workflowId: TIMED.id };
      const change = { configurable: { note: 'again' } };
      const begun = await facade.api(cohorts, { body: { select, change } });
      const at = `${cohorts}/${String(begun.body.cohortId)}`;
      const report = async () => (await facade.api<Cohort>(at)).body;
      await until(
        async () => (await report()).results?.[0]?.forkRunId !== undefined,
        'it is forked',
      );
      const fork = (await report()).results?.[0]?.forkRunId ?? '';
      await until(
        async () => (await build('one'))?.heldRuns === 1,
        'the fork is held, and nothing else',
      );
      expect(await build('one')).toMatchObject({ openRuns: 1 });
      expect((await deployments.runsOf('one')).map(({ runId }) => runId)).toEqual([fork]);
      await first.stop();

      expect((await facade.api<Cohort>(`${at}/cancel`, { body: {} })).body.state).toBe(
        'cancelling',
      );
      expect(await isToldToEnd(facade, fork)).toBe(true);
      await worker('two');
      await deployments.promote('two', 100);
      await until(async () => (await report()).state === 'cancelled', 'the cohort has ended', {
        limitMs: patient(60_000),
      });
      expect((await report()).results).toMatchObject([
        {
          outcome: 'not-finished',
          error: { message: expect.stringContaining('no worker') as unknown },
        },
      ]);
    },
  );
});

/** By Temporal, where its next task finds it. */
async function isToldToEnd({ temporal: place }: Builds['facade'], runId: string): Promise<boolean> {
  const connection = connectTemporal(place);
  try {
    const { workflow } = new Client({ connection, namespace: place.namespace });
    const { events = [] } = await workflow.getHandle(runId).fetchHistory();
    return (events ?? []).some((event) => event.workflowExecutionCancelRequestedEventAttributes);
  } finally {
    await connection.close();
  }
}
