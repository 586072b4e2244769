// `openwop deployments` and `openwop upgrade-check` (docs/upgrades.md): what is asked of the host, and what is told.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal, scriptedHost, type ScriptedHost } from './scripted-host.ts';

const BASE = '/v1/host/openwop-temporal/deployments';
const two = {
  ...{ buildId: 'two', state: 'current', since: '2026-06-01T10:00:00.000Z', share: 100 },
  ...{ openRuns: 3, heldRuns: 3, hasWorker: true },
};
const one = {
  ...{ buildId: 'one', state: 'draining', share: 0, openRuns: 2, heldRuns: 2, hasWorker: false },
};
const LIST = { builds: [two, one], currentBuildId: 'two', runsWithoutWorker: 2 };

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());

const asked = (line: string) =>
  host.asked.filter((each) => each.line === line).map((it) => it.body);

describe('openwop deployments', () => {
  it('shows each build, and says which runs wait for a worker', async () => {
    host.script({ [`GET ${BASE}`]: { body: LIST } });
    const { code, out, err } = await host.run(['deployments']);
    expect(code).toBe(0);
    expect(out.split('\n').map((line) => line.trim().split(/ {2,}/))).toEqual([
      ['BUILD', 'STATE', 'SINCE', 'NEW RUNS', 'OPEN', 'HELD', 'WORKER'],
      ['two', 'current', '2026-06-01T10:00:00.000Z', '100 %', '3', '3', 'yes'],
      ['one', 'draining', '-', '-', '2', '2', 'none'],
      [''],
    ]);
    expect(err).toContain('2 runs wait for a worker of their build, and none is there.');
    expect(err).toContain('deployments move --all-from one');
  });

  it('says where no worker names a build', async () => {
    host.script({ [`GET ${BASE}`]: { body: { builds: [], runsWithoutWorker: 0 } } });
    const { code, out, err } = await host.run(['deployments']);
    expect([code, out, err]).toEqual([0, 'No worker names a build: each takes what comes.\n', '']);
  });

  it('promotes a part, or all', async () => {
    host.script({ [`POST ${BASE}/two/promote`]: { body: LIST } });
    expect((await host.run(['deployments', 'promote', 'two', '--percent', '10'])).code).toBe(0);
    const { code, out } = await host.run(['deployments', 'promote', 'two', '--json']);
    expect([code, JSON.parse(out)]).toEqual([0, LIST]);
    expect(asked(`POST ${BASE}/two/promote`)).toEqual([{ percent: 10 }, {}]);
    expect((await host.run(['deployments', 'promote', 'two', '--percent', '101'])).code).toBe(2);
  });

  it('a build that is not there is named', async () => {
    host.script({ [`POST ${BASE}/x/promote`]: refusal(404, 'build_not_found') });
    const { code, err } = await host.run(['deployments', 'promote', 'x']);
    expect([code, err]).toEqual([1, expect.stringContaining('knows no build x')]);
  });

  it('moves runs to the current build, all pages of them, and tells which were not', async () => {
    const pages = [
      { moved: ['run-a'], failed: [], nextCursor: 'more' },
      { moved: [], failed: [{ runId: 'run-b', reason: 'The run has ended.' }] },
    ];
    host.script({
      [`GET ${BASE}`]: { body: LIST },
      [`POST ${BASE}/move`]: pages.map((body) => ({ body })),
    });
    const { code, out } = await host.run(['deployments', 'move', '--all-from', 'one']);
    expect([code, out]).toEqual([1, '1 of 2 go on with two.\nrun-b: The run has ended.\n']);
    expect(asked(`POST ${BASE}/move`)).toEqual([
      { fromBuild: 'one', toBuild: 'two' },
      { fromBuild: 'one', toBuild: 'two', cursor: 'more' },
    ]);
  });

  it('moves named runs to a named build, or lets them follow', async () => {
    const moved = { moved: ['run-a'], failed: [] };
    host.script({ [`POST ${BASE}/move`]: { body: moved } });
    expect((await host.run(['deployments', 'move', 'run-a', '--to', 'one'])).code).toBe(0);
    const { out } = await host.run(['deployments', 'move', 'run-a', '--follow']);
    expect(out).toBe('1 of 1 go with the current build.\n');
    expect(asked(`POST ${BASE}/move`)).toEqual([
      { runIds: ['run-a'], toBuild: 'one' },
      { runIds: ['run-a'] },
    ]);
  });

  it.each([
    [['deployments', 'move']],
    [['deployments', 'move', 'run-a', '--all-from', 'one']],
    [['deployments', 'move', 'run-a', '--to', 'one', '--follow']],
    [['deployments', 'nothing']],
  ])('%j wants more said, or less', async (args) => {
    expect((await host.run(args)).code).toBe(2);
  });

  it('tells why a run does not go on', async () => {
    const runs = [
      { runId: 'run-a', held: true, failing: { attempt: 3, reason: 'Nondeterminism error' } },
      { runId: 'run-b', held: false },
    ];
    host.script({ [`GET ${BASE}/two/runs`]: { body: { runs } } });
    const { out } = await host.run(['deployments', 'runs', 'two']);
    expect(out).toMatch(/run-a[^]*try 3[^]*Nondeterminism error[^]*run-b[^]*current one/);
  });
});
