// `openwop runs show` of a run that waits for others (seed 003 §3.4): which of the runs below it ask people.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scriptedHost, type ScriptedHost } from './scripted-host.ts';

const RUN = 'GET /v1/runs/run-1';
const OVERVIEW = 'GET /v1/host/openwop-temporal/runs/run-1';
const HOSTILE = 'a\u001b[2Jb';

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());

const question = (title: string) => ({
  ...{ nodeId: 'gate', interruptId: 'int-1', kind: 'approval', title },
  requestedAt: '2026-01-02T03:04:06.000Z',
});
const below = (runId: string, questions?: readonly object[]) => ({
  ...{ runId, parentRunId: 'run-1', workflowId: 'agent:a.b.c', status: 'waiting-approval' },
  ...{ createdAt: '2026-01-02T03:04:05.000Z', questions },
});
const given = (...runs: object[]) => ({
  [RUN]: { body: { runId: 'run-1', workflowId: 'refund', status: 'running', atSeq: 9 } },
  [`${OVERVIEW}/questions`]: { body: { questions: [] } },
  [`${OVERVIEW}/children`]: { body: { runs, more: false } },
});

describe('openwop runs show', () => {
  it('names the runs below that ask, with what they ask and the command that shows it', async () => {
    host.script(
      given(
        below('run-2', []),
        below('run-3', [question('Pay?'), question(HOSTILE)]),
        below('run-4'),
      ),
    );
    const { code, out } = await host.run(['runs', 'show', 'run-1']);
    expect(code).toBe(0);
    const [, asking = ''] = out.split('\n\n');
    expect(asking.trimEnd().split('\n')).toEqual([
      'Runs below it ask:',
      '  run-3 (agent:a.b.c): Pay?',
      expect.stringMatching(/^ {2}run-3 \(agent:a\.b\.c\): a.*b$/),
      '    npm run -s openwop -- runs show run-3',
      '  run-4 (agent:a.b.c): may ask',
      '    npm run -s openwop -- runs show run-4',
    ]);
    // eslint-disable-next-line no-control-regex
    expect(out).not.toMatch(/\u001b/);
    const json = await host.run(['runs', 'show', 'run-1', '--json']);
    const { asking: told } = JSON.parse(json.out) as { asking: { runId: string }[] };
    expect(told.map(({ runId }) => runId)).toEqual(['run-3', 'run-4']);
  });

  it('says nothing of them where none asks', async () => {
    host.script(given(below('run-2', [])));
    const { out } = await host.run(['runs', 'show', 'run-1']);
    expect(out).not.toContain('below');
    expect(JSON.parse((await host.run(['runs', 'show', 'run-1', '--json'])).out)).toMatchObject({
      asking: [],
    });
  });
});
