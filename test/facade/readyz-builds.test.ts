// /readyz and runs whose build has no worker (docs/upgrades.md): counted for all, and told to the operator as an error.
import { expect, it } from 'vitest';
import type { Build } from '../../src/ports/deployments.ts';
import { startFaultHost } from './fault-host.ts';

const build = (buildId: string, more: Partial<Build>): Build => ({
  ...{ buildId, state: 'draining', share: 0, openRuns: 0, heldRuns: 0, hasWorker: true },
  ...more,
});

it.each([
  ['none waits', 0, 0],
  ['some wait: an error names the builds that hold them', 3, 1],
])('%s', async (_what, runsWithoutWorker, told) => {
  const builds = [
    build('lost', { heldRuns: runsWithoutWorker, hasWorker: false }),
    build('empty', { hasWorker: false }),
    build('there', { state: 'current', share: 100, heldRuns: 2 }),
  ];
  const errors: [string, object | undefined][] = [];
  const host = await startFaultHost({}, ({ deployments, logger }) => ({
    deployments: {
      ...deployments,
      read: async () => ({ builds, currentBuildId: 'there', runsWithoutWorker }),
    },
    logger: { ...logger, error: (message, fields) => void errors.push([message, fields]) },
  }));
  try {
    const { status, body } = await host.api('/readyz', { headers: { authorization: '' } });
    expect([status, body.builds]).toEqual([200, { current: 'there', runsWithoutWorker }]);
    expect(errors).toHaveLength(told);
    if (told > 0)
      expect(errors[0]).toEqual([
        'runs wait for a worker of their build, and none is there',
        { runs: 3, builds: ['lost'] },
      ]);
  } finally {
    await host.stop();
  }
});
