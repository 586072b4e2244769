// docs/upgrades.md: builds of the worker beside each other, on Temporal's own server and PostgreSQL. One deployment serves all
// cases: `one` has today's workflow code, as `three` has, and neither `one` nor `two` can go on with a run of the other.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Cohort } from '../../schemas/types.generated.ts';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { createDeployments } from '../../src/adapters/temporal/deployments.ts';
import { replayHistories } from '../../src/adapters/temporal/replay-histories.ts';
import {
  changedCode,
  startBuilds,
  TIMED,
  TIMER_MORE,
  type Builds,
  type OtherCode,
} from '../support/builds.ts';
import { spawnHost, until, type TestHost } from '../support/host.ts';
import { ROOT } from '../support/root.ts';
import { sharePostgres, type SharedPostgres } from '../support/shared-postgres.ts';
import { CACHE_DIR, startTestTemporal, type TestTemporal } from '../support/temporal.ts';
import { paced, patient } from '../support/machine.ts';
import { newestHistory } from '../support/newest-history.ts';

const BASE = '/v1/host/openwop-temporal/deployments';

let postgres: SharedPostgres | undefined;
let missing: string | undefined;
let temporal: TestTemporal;
let other: OtherCode;
let builds: Builds;
let one: TestHost;

beforeAll(async () => {
  const started = await sharePostgres();
  if ('missing' in started) {
    missing = started.missing;
    return;
  }
  postgres = started;
  [temporal, other] = await Promise.all([startTestTemporal(), changedCode(TIMER_MORE)]);
  builds = await startBuilds({ postgres, temporal }, { waits: { cohortStopMs: paced(2_000) } });
});

beforeEach((context) => context.skip(missing !== undefined, missing));
afterAll(async () => {
  await builds?.stop();
  await temporal?.stop();
  await other?.remove();
  await postgres?.stop();
});

const holdsNothing = (buildId: string) =>
  until(async () => (await builds.build(buildId))?.openRuns === 0, `${buildId} has no open run`);

describe('docs/upgrades.md two builds at once', () => {
  // [I80]
  it('runs stay with the build that began them, new ones go to the promoted one, and the first drains', async () => {
    const { worker, waiting, accept, completed, build, facade, deployments } = builds;
    one = await worker('one');
    await until(async () => (await build('one'))?.state === 'current', 'the first is current');
    const old = await waiting();
    await worker('two', { OPENWOP_CACHE_DIR: other.cacheDir });
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

  it('docs/upgrades.md upgrade-check --build looks at the open runs of that build alone: its own code goes on with them; the command ends with 1 by the other, and names each that would break with its reason', async () => {
    const { waiting, accept, completed, deployments } = builds;
    const runs = { one: '', two: '' };
    for (const id of ['one', 'two'] as const) {
      await holdsNothing(id);
      await deployments.promote(id, 100);
      runs[id] = await waiting();
    }
    for (const id of ['one', 'two'])
      await until(async () => (await builds.build(id))?.openRuns === 1, `that of ${id} is listed`);
    const broken = (runId: string) => ({
      runId,
      fault: expect.stringMatching(/nondeterminism/i) as unknown,
    });
    expect(await replayed(CACHE_DIR, 'one')).toEqual([{ runId: runs.one }]);
    expect(await replayed(CACHE_DIR, 'two')).toEqual([broken(runs.two)]);
    expect(await replayed(other.cacheDir, 'two')).toEqual([{ runId: runs.two }]);
    expect(await replayed(other.cacheDir, 'one')).toEqual([broken(runs.one)]);
    expect(await replayed(CACHE_DIR, 'nobody')).toEqual([]);

    const bad = await check(CACHE_DIR, 'two');
    const [named = '', said, ...more] = bad.stdout.trimEnd().split('\n');
    expect([bad.code, said, more]).toEqual([
      1,
      '1 open and 0 ended runs replayed, 1 would break',
      [],
    ]);
    expect(named).toMatch(new RegExp(`^${runs.two} \\([0-9a-f-]{36}\\): .*nondeterminism`, 'i'));
    for (const runId of [runs.one, runs.two]) {
      expect(await accept(runId)).toBe(200);
      await completed(runId);
    }
  });

  it('a run that was moved to a build that cannot go on with it says why, and goes on when it is moved back', async () => {
    const { build, facade, deployments, accept, completed } = builds;
    await Promise.all([holdsNothing('one'), holdsNothing('two')]);
    await deployments.promote('one', 100);
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
    const { base, build, facade, waiting, accept, completed, deployments } = builds;
    const killed = await spawnHost('worker', {
      ...facade.env,
      OPENWOP_BUILD_ID: 'killed',
      // As a process it knows no definitions of ours; the runs' own input has them.
    });
    await until(async () => (await build('killed'))?.hasWorker === true, 'it asks for work');
    await deployments.promote('killed', 100);
    const [a, b] = [await waiting(), await waiting()];
    await killed.kill('SIGKILL');
    const { namespace } = base.temporal as { namespace: string };
    const connection = connectTemporal({ address: temporal.address, namespace });
    try {
      // A worker is believed to be there for the time of its last poll: here for a second.
      const quick = createDeployments({ connection, namespace, workerSeenMs: 1_000 });
      await until(async () => ((await quick.read())?.runsWithoutWorker ?? 0) >= 2, 'both are told');
      expect(
        (await quick.read())?.builds.find(({ buildId }) => buildId === 'killed'),
      ).toMatchObject({
        ...{ state: 'current', heldRuns: 2, hasWorker: false },
      });
    } finally {
      await connection.close();
    }
    // Compatible: the same workflow code under another id.
    await deployments.promote('one', 100);
    const moved = await deployments.moveFrom('killed', { buildId: 'one' });
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
      const { worker, build, facade, deployments, accept, completed } = builds;
      await holdsNothing('one');
      await deployments.promote('one', 100);
      const source = await facade.startRun({ workflowId: TIMED.id, tags: ['cohort'] });
      await facade.waitFor(source, ({ status }) => status === 'waiting-approval');
      expect(await accept(source)).toBe(200);
      await completed(source);
      const cohorts = '/v1/host/openwop-temporal/cohorts';
      const select = { workflowId: TIMED.id, tag: 'cohort' };
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
      await one.stop();

      expect((await facade.api<Cohort>(`${at}/cancel`, { body: {} })).body.state).toBe(
        'cancelling',
      );
      expect(await isToldToEnd(facade, fork)).toBe(true);
      await worker('three');
      await deployments.promote('three', 100);
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
  const events = await newestHistory(place, runId);
  return events.some((event) => event.workflowExecutionCancelRequestedEventAttributes);
}

/** By the workflow code that the cache folder holds. */
async function replayed(cacheDir: string, build: string) {
  const { address, namespace } = builds.base.temporal as { address: string; namespace: string };
  const connection = connectTemporal({ address, namespace });
  try {
    const source = { connection, namespace, dataConverter: {} };
    const bundle = await workflowBundle({ cacheDir });
    const found: { readonly runId: string; readonly fault?: string }[] = [];
    for await (const { runId, fault } of replayHistories({ ...source, bundle }, { build }))
      found.push({ runId, ...(fault === undefined ? {} : { fault }) });
    return found;
  } finally {
    await connection.close();
  }
}

/** As the process that an operator calls. */
async function check(cacheDir: string, build: string): Promise<{ code: number; stdout: string }> {
  const program = [join(ROOT, 'src/app/launch.js'), 'openwop', 'upgrade-check', '--build', build];
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, ...builds.facade.env, OPENWOP_CACHE_DIR: cacheDir };
  const run = promisify(execFile)(process.execPath, program, { cwd: ROOT, env });
  return run.then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
  );
}
