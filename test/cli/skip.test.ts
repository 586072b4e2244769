// `openwop runs skip`, and rehearsals as the command line starts, shows and lists them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scriptedHost, type ScriptedHost } from './scripted-host.ts';

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());

describe('openwop runs skip', () => {
  const OVERVIEW = 'GET /v1/host/openwop-temporal/runs';
  const SKIP = 'POST /v1/host/openwop-temporal/runs/run-1:skip';
  const skipping = { status: 202, body: { runId: 'run-1', status: 'skipping' } };

  it.each<[string[], object]>([
    [['90s'], { forMs: 90_000 }],
    [['3d'], { forMs: 3 * 86_400_000 }],
    [['2w'], { forMs: 14 * 86_400_000 }],
    [['--to-deadline'], { to: 'next-deadline' }],
  ])('%j', async (args, body) => {
    host.script({ [SKIP]: skipping });
    const { code, out } = await host.run(['runs', 'skip', 'run-1', ...args]);
    expect([code, out]).toMatchObject([0, expect.stringContaining('its clock moves')]);
    expect(host.asked[0]).toMatchObject({ body });
  });

  it.each([[[]], [['3d', '--to-deadline']], [['soon']], [['0d']], [['-3d']], [['1.5h']]])(
    '%j is not understood, and nothing is sent',
    async (args) => {
      host.script({});
      const { code, out } = await host.run(['runs', 'skip', 'run-1', ...args]);
      expect([code, out, host.asked]).toEqual([2, '', []]);
    },
  );

  it('a rehearsal is started by --rehearsal; shown and listed it says that it is one', async () => {
    const run = { runId: 'run-1', workflowId: 'refund', status: 'running', atSeq: 9 };
    const listed = {
      ...{ runId: 'run-1', workflowId: 'refund', workflowName: 'Refund', rehearsal: true },
      ...{
        status: 'waiting-approval',
        createdAt: '2026-01-02T03:04:05.000Z',
        tags: [],
        waiting: [],
      },
    };
    const rehearsal = { now: '2026-01-04T00:00:00.000Z', skippedMs: 3 * 86_400_000 };
    host.script({
      'GET /v1/workflows/w': { body: { variables: [] } },
      'POST /v1/runs': { status: 201, body: { runId: 'run-1', status: 'pending' } },
      'GET /v1/runs/run-1': { body: { ...run, rehearsal } },
      [`${OVERVIEW}/run-1/questions`]: { body: { questions: [] } },
      [`${OVERVIEW}/run-1/children`]: { body: { runs: [] } },
      [OVERVIEW]: { body: { runs: [listed] } },
    });
    expect((await host.run(['start', 'w', '--rehearsal'])).code).toBe(0);
    expect(host.asked.at(-1)).toMatchObject({ body: { workflowId: 'w', rehearsal: true } });
    const shown = await host.run(['runs', 'show', 'run-1']);
    expect(shown.out).toMatch(
      /its clock stands at 2026-01-04T00:00:00.000Z, 3 days after it began/,
    );
    expect((await host.run(['runs'])).out).toContain('Waiting for you (rehearsal)');
  });
});
