// docs/upgrades.md, a rollout, step 6: `openwop upgrade-check --build ID` as the process that an operator calls, against open
// runs of two builds, of which each has workflow code that cannot go on with the other's.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  changedCode,
  startBuilds,
  TIMER_MORE,
  type Builds,
  type OtherCode,
} from '../support/builds.ts';
import { until } from '../support/host.ts';
import { sharePostgres, type SharedPostgres } from '../support/shared-postgres.ts';
import { CACHE_DIR, startTestTemporal, type TestTemporal } from '../support/temporal.ts';
import { patient } from '../support/machine.ts';

const ROOT = join(import.meta.dirname, '..', '..');

let postgres: SharedPostgres | undefined;
let missing: string | undefined;
let temporal: TestTemporal;
let other: OtherCode;
let builds: Builds;
const runs = { one: '', two: '' };

beforeAll(async () => {
  const started = await sharePostgres();
  if ('missing' in started) {
    missing = started.missing;
    return;
  }
  postgres = started;
  [temporal, other] = await Promise.all([startTestTemporal(), changedCode(TIMER_MORE)]);
  builds = await startBuilds({ postgres, temporal });
  const { worker, waiting, build, deployments } = builds;
  await worker('one');
  await until(async () => (await build('one'))?.state === 'current', 'the first is current');
  runs.one = await waiting();
  await worker('two', { OPENWOP_CACHE_DIR: other.cacheDir });
  await deployments.promote('two', 100);
  runs.two = await waiting();
  for (const id of ['one', 'two'])
    await until(async () => (await build(id))?.openRuns === 1, `the run of ${id} is listed`);
}, patient(240_000));
beforeEach((context) => context.skip(missing !== undefined, missing));
afterAll(async () => {
  await builds?.stop();
  await temporal?.stop();
  await other?.remove();
  await postgres?.stop();
});

/** By the workflow code that the cache folder holds. */
async function check(cacheDir: string, ...flags: string[]) {
  const program = [join(ROOT, 'src/app/launch.js'), 'openwop', 'upgrade-check', ...flags];
  const env = { ...builds.facade.env, OPENWOP_CACHE_DIR: cacheDir };
  const { PATH, HOME } = process.env;
  const run = promisify(execFile)(process.execPath, program, {
    cwd: ROOT,
    env: { PATH, HOME, ...env },
  });
  return run.then(
    ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      ...{ code, stdout, stderr },
    }),
  );
}

it.each(['one', 'two'] as const)(
  'docs/upgrades.md upgrade-check --build looks at the open runs of build %s alone: 0 and a line of what it looked at by its own code, 1 and each that would break with its reason by the other',
  async (build) => {
    const [own, foreign] =
      build === 'one' ? [CACHE_DIR, other.cacheDir] : [other.cacheDir, CACHE_DIR];
    const good = await check(own, '--build', build);
    expect([good.code, good.stdout]).toEqual([
      0,
      '1 open and 0 ended runs replayed, 0 would break\n',
    ]);
    const bad = await check(foreign, '--build', build);
    const [named = '', said, ...more] = bad.stdout.trimEnd().split('\n');
    expect([bad.code, said, more]).toEqual([
      1,
      '1 open and 0 ended runs replayed, 1 would break',
      [],
    ]);
    expect(named).toMatch(new RegExp(`^${runs[build]} \\([0-9a-f-]{36}\\): .*nondeterminism`, 'i'));
  },
);

it('docs/upgrades.md upgrade-check of a build that nobody has looks at nothing; what is no id of one is refused', async () => {
  const none = await check(CACHE_DIR, '--build', 'nobody');
  expect([none.code, none.stdout]).toEqual([
    0,
    '0 open and 0 ended runs replayed, 0 would break\n',
  ]);
  const wrong = await check(CACHE_DIR, '--build', 'a b');
  expect([wrong.code, wrong.stdout]).toEqual([1, '']);
  expect(wrong.stderr).toContain('--build ID');
});
