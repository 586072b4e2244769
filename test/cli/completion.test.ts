// What a shell is offered at each place of the command line, and what it never is.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scriptedHost, type ScriptedHost } from './scripted-host.ts';

const OVERVIEW = 'GET /v1/host/openwop-temporal/runs';
const RUN_ID = `run-${'a'.repeat(27)}`;

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());
const lines = (text: string): string[] => text.trimEnd().split('\n');

describe('completion', () => {
  const complete = async (...words: string[]): Promise<string[]> =>
    lines((await host.run(['complete', '--', ...words])).out).map(
      (line) => line.split('\t')[0] ?? '',
    );

  it('commands, options, their values, and ids of the host', async () => {
    host.script({
      [OVERVIEW]: { body: { runs: [{ runId: RUN_ID, status: 'completed', workflowId: 'w' }] } },
    });
    expect(await complete('ru')).toEqual(['runs']);
    expect(await complete('runs', 'c')).toEqual(['cancel']);
    expect(await complete('runs', '--wa')).toEqual(['--waiting']);
    expect(await complete('runs', '--status', 'waiting-e')).toEqual(['waiting-external']);
    expect(await complete('runs', 'answer', '')).toEqual([RUN_ID]);
    expect(host.asked.at(-1)?.line).toContain('waiting=true');
    expect(await complete('completion', 'z')).toEqual(['zsh']);
  });

  it('nothing that a shell would obey', async () => {
    const ids = ['$(touch x)', 'a;id', '`id`', '-rf', 'a b', 'a\u001b', 'fine-1'];
    host.script({
      'GET /v1/host/openwop-temporal/workflows': {
        body: { workflows: ids.map((workflowId) => ({ workflowId, name: 'x', inputs: [] })) },
      },
    });
    expect(await complete('start', '')).toEqual(['fine-1']);
  });

  it('is silent when the host does not answer', async () => {
    const args = ['complete', '--', 'runs', 'show', ''];
    const gone = await host.run(args, { url: 'http://127.0.0.1:1' });
    expect(gone).toEqual({ code: 0, out: '', err: '' });
    host.script({ [OVERVIEW]: () => undefined });
    expect(await host.run(args)).toEqual({ code: 0, out: '', err: '' });
  });

  it.each(['bash', 'zsh', 'fish'])('%s: a script that calls this program', async (shell) => {
    const self = ['/a path/node', "/it's/openwop-bin.js"];
    const { code, out } = await host.run(['completion', shell], { self });
    expect(code).toBe(0);
    expect(out).toContain(String.raw`'/a path/node' '/it'\''s/openwop-bin.js' complete -- `);
  });
});
