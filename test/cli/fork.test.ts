// `openwop fork` (replay.md): what is asked of the host, and what is told of the fork.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal, scriptedHost, type ScriptedHost } from './scripted-host.ts';
import { ROOT } from '../support/root.ts';

const FORK = 'POST /v1/runs/run-a:fork';
const MADE = {
  runId: 'run-b',
  sourceRunId: 'run-a',
  fromSeq: 4,
  mode: 'branch',
  status: 'running',
};

let host: ScriptedHost;
let folder: string;
beforeAll(async () => {
  host = await scriptedHost();
  folder = await mkdtemp(join(tmpdir(), 'openwop-fork-'));
});
afterAll(async () => {
  await host.close();
  await rm(folder, { recursive: true, force: true });
});

const asked = () => host.asked.find(({ line }) => line === FORK)?.body;

describe('openwop fork', () => {
  it('a replay from the beginning', async () => {
    host.script({ [FORK]: { status: 201, body: MADE } });
    const { code, out, err } = await host.run(['fork', 'run-a', '--replay']);
    expect([code, out]).toEqual([0, 'Run run-b, a replay of run-a from 0: Running.\n']);
    expect(err).toContain('diff run-a run-b');
    expect(asked()).toEqual({ mode: 'replay', fromSeq: 0 });
  });

  it('a branch goes by all that is said', async () => {
    const file = join(folder, 'prompt.md');
    // As an editor of Windows saves it.
    await writeFile(file, '\ufeffBe strict.\r\nBe fair.', 'utf16le');
    host.script({
      [FORK]: { status: 201, body: MADE },
      'GET /v1/runs/run-a': { body: { runId: 'run-a', workflowId: 'w', status: 'completed' } },
      'GET /v1/workflows/w': { body: { variables: [{ name: 'n', type: 'number' }] } },
    });
    const { code, out } = await host.run([
      ...['fork', 'run-a', '--from', '4', '--prompt', `judge=${file}`, '--model', 'm'],
      ...['--provider', 'p', '--tools', 'recorded', '--answer', '{"action":"reject"}'],
      ...['--input', 'n=3', '--agent-version', 'judge=2.0.0', '--agent-version', 'clerk=3'],
      '--json',
    ]);
    expect([code, JSON.parse(out)]).toEqual([0, MADE]);
    expect(asked()).toEqual({
      ...{ mode: 'branch', fromSeq: 4 },
      runOptionsOverlay: {
        configurable: { 'ai.model': 'm', 'ai.provider': 'p' },
        agents: {
          judge: { systemPrompt: 'Be strict.\nBe fair.', packVersion: '2.0.0' },
          clerk: { packVersion: '3' },
        },
        inputs: { n: 3 },
        answer: { seq: 4, value: { action: 'reject' } },
        tools: 'recorded',
      },
    });
  });

  it.each([
    ['neither a place nor a replay', ['fork', 'run-a'], '--from'],
    ['a replay by another model', ['fork', 'run-a', '--replay', '--model', 'm'], 'leave --replay'],
    [
      'a replay with another answer',
      ['fork', 'run-a', '--replay', '--answer', '{}'],
      'leave --replay',
    ],
    ['a prompt of nobody', ['fork', 'run-a', '--from', '0', '--prompt', 'file'], 'agent=file'],
    [
      'a version of nobody',
      ['fork', 'run-a', '--from', '0', '--agent-version', '2'],
      'agent=version',
    ],
    [
      'two versions of one agent',
      ['fork', 'run-a', '--from', '0', '--agent-version', 'a=2', '--agent-version', 'a=3'],
      '--agent-version has "a" twice. Nothing was sent.',
    ],
    [
      'two prompts of one agent',
      [
        'fork',
        'run-a',
        '--from',
        '0',
        '--prompt',
        `a=${ROOT}README.md`,
        '--prompt',
        `a=${ROOT}README.md`,
      ],
      '--prompt has "a" twice. Nothing was sent.',
    ],
    ['a file that is none', ['fork', 'run-a', '--from', '0', '--prompt', 'a=/none/x'], 'ENOENT'],
    ['an answer that is no JSON', ['fork', 'run-a', '--from', '1', '--answer', '{'], 'is not JSON'],
    [
      '[I103] an answer with a number that would change',
      ['fork', 'run-a', '--from', '1', '--answer', '{"order":9007199254740993}'],
      '--answer cannot be accepted: /order is a number',
    ],
  ])('asks for more, exit code 2: %s', async (_what, args, words) => {
    host.script({});
    const { code, err } = await host.run(args);
    expect([code, host.asked]).toEqual([2, []]);
    expect(err).toContain(words);
  });

  it('says which run is not there, and what the host refuses', async () => {
    host.script({ [FORK]: refusal(404, 'run_not_found') });
    expect((await host.run(['fork', 'run-a', '--replay'])).err).toContain('knows no run run-a');
    host.script({ [FORK]: refusal(422, 'invalid_from_seq') });
    expect((await host.run(['fork', 'run-a', '--from', '99'])).code).toBe(1);
  });
});
