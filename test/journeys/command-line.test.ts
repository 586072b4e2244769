// A run by the command line alone, on a real host: started, followed to its question, answered, followed to its end,
// found in the list. Over a pipe, and at terminals of 40 and of 120 columns. Steps that are like another one to the process
// that takes them are taken in this one.
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { createDemo, demoRunRequest, type Demo } from '../../src/demo/index.ts';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { noTerminal, openTerminal, type TerminalSession } from '../support/pseudo-terminal.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { ROOT } from '../support/root.ts';

// Most steps are processes of their own.
vi.setConfig({ testTimeout: 180_000 });

const PROGRAM = [process.execPath, join(ROOT, 'src/app/launch.js'), 'openwop'] as const;
const BIN = join(ROOT, 'src/app/openwop-bin.js');
const { inputs, workflowId } = demoRunRequest as {
  inputs: Record<string, string>;
  workflowId: string;
};
const INPUTS = Object.entries(inputs).flatMap(([name, value]) => ['--input', `${name}=${value}`]);
// eslint-disable-next-line no-control-regex -- what a terminal obeys is looked for
const ESCAPES = /\u001b\[/;

let folder = '';
let demo: Demo;
let host: TestHost;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'openwop-command-line-'));
  demo = await createDemo({ dataDir: folder, logger: quietLogger });
  host = await startTestHost({ builtIn: demo });
});
afterAll(async () => {
  await host.stop();
  await demo.stop();
  rmSync(folder, { recursive: true, force: true });
});

const env = (more: Record<string, string> = {}): NodeJS.ProcessEnv => ({
  ...{ PATH: process.env.PATH, HOME: process.env.HOME, TERM: 'xterm' },
  ...{ OPENWOP_URL: host.url, OPENWOP_API_KEY: host.apiKey, OPENWOP_DATA_DIR: folder },
  ...more,
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function piped(...args: readonly string[]): Promise<Ran> & { interrupt: () => void } {
  const [program, ...before] = PROGRAM;
  const child = spawn(program, [...before, ...args], {
    ...{ cwd: ROOT, env: env(), stdio: ['ignore', 'pipe', 'pipe'] },
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const ended = new Promise<Ran>((resolve) => {
    child.once('close', (code) => resolve({ code: code ?? -1, out, err }));
  });
  const interrupt = () =>
    void until(() => out.includes('interrupt.requested'), 'it asks').then(() =>
      child.kill('SIGINT'),
    );
  return Object.assign(ended, { interrupt });
}

/** As `piped`, in this process. */
async function said(...args: readonly string[]): Promise<Ran> {
  let out = '';
  let err = '';
  const code = await runCli(args, {
    ...{ url: host.url, apiKey: host.apiKey },
    ...{ out: (text) => void (out += text), err: (text) => void (err += text) },
  });
  return { code, out, err };
}

/** In another folder. */
async function called(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { cwd: folder, env: env() });
  return stdout;
}

const documents = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('over a pipe', () => {
  it('words: a run goes from its start to its end', async () => {
    const started = await piped('start', workflowId, ...INPUTS, '--tag', 'piped');
    const runId = /Run (\S+): /.exec(started.out)?.[1] ?? '';
    expect([started.code, started.out]).toEqual([0, expect.stringContaining('run-') as string]);

    const asked = await piped('runs', 'follow', runId, '--until-question');
    expect(asked.code).toBe(3);
    expect(asked.out).toMatch(/agent\.reasoning\.delta +\[triage\] A customer writes about order/);
    const [, command = ''] =
      /openwop -- (runs answer \S+ accept --interrupt \S+)/.exec(asked.out) ?? [];
    expect(command).toContain(runId);

    const undecided = await said('runs', 'answer', runId);
    expect(undecided.code).toBe(2);
    expect(undecided.out).toContain(command);
    const waiting = await piped('runs', '--waiting');
    expect(waiting.out).toMatch(new RegExp(`${runId} +Waiting for you .+ you: .+ \\(until 2`));

    const answered = await piped(...command.split(' '));
    expect([answered.code, answered.out]).toEqual([0, 'Your answer is taken.\n']);
    const twice = await said(...command.replace('accept', 'reject').split(' '));
    expect(twice.code).toBe(1);
    expect(twice.err).toContain('Somebody else has answered this. Your answer was not taken.');

    const ended = await piped('runs', 'follow', runId);
    expect(ended.code).toBe(0);
    expect(ended.out.trimEnd().split('\n').at(-1)).toBe(`Run ${runId}: Completed.`);
    expect((await said('runs', '--status', 'completed')).out).toMatch(
      new RegExp(`${runId} +Completed +${workflowId}`),
    );
    const shown = await said('runs', 'show', runId);
    for (const part of ['Completed', 'piped', 'Inputs', 'Outputs', 'receipt'])
      expect(shown.out).toContain(part);
    for (const { out, err } of [started, asked, undecided, waiting, answered, twice, ended, shown])
      expect(out + err).not.toMatch(ESCAPES);
  });

  it('JSON: the same, and nothing else on the output', async () => {
    const given = ['start', workflowId, '--inputs', JSON.stringify(inputs), '--follow', '--json'];
    const following = piped(...given);
    following.interrupt();
    const stopped = await following;
    expect(stopped.code).toBe(130);
    const [created, ...events] = documents(stopped.out) as [{ runId: string }, ...RunEventDoc[]];
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at));
    // Who stopped following stopped nothing else.
    const shown = await said('runs', 'show', created.runId, '--json');
    const snapshot = JSON.parse(shown.out) as RunSnapshot & {
      questions: { interruptId: string }[];
    };
    expect(snapshot.status).toBe('waiting-approval');
    const id = snapshot.questions[0]?.interruptId ?? '';
    const rejected = await piped(
      ...['runs', 'answer', created.runId, 'reject', '--interrupt', id, '--reason', 'no', '--json'],
    );
    expect(JSON.parse(rejected.out)).toMatchObject({ status: 'resolved' });
    const rest = await piped(
      ...['runs', 'follow', created.runId, '--json', '--from', String(events.length)],
    );
    expect(rest.code).toBe(1);
    const more = documents(rest.out) as RunEventDoc[];
    expect(more[0]?.sequence).toBe(events.length);
    expect(more.at(-1)?.type).toBe('run.failed');
  });

  it('pause, resume and cancel; who follows is told by the exit code', async () => {
    const runId = await host.startRun({ workflowId, inputs });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    expect((await said('runs', 'pause', runId, '--reason', 'x')).out).toMatch(/Paused|Waiting/);
    expect((await said('runs', 'resume', runId)).code).toBe(0);
    expect((await said('runs', 'cancel', runId, '--reason', 'x')).code).toBe(0);
    const followed = await piped('runs', 'follow', runId);
    expect(followed.code).toBe(4);
    expect(followed.out).toContain(`Run ${runId}: Cancelled.`);
  });

  it('called from another folder, by what package.json names', async () => {
    expect(await called(BIN, 'workflows')).toContain(workflowId);
  });

  it("bash completes ids of runs and workflows by the script's own words", async () => {
    const script = await called(BIN, 'completion', 'bash');
    await host.startRun({ workflowId, inputs });
    const complete = async (...words: string[]): Promise<string[]> => {
      const typed = `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}`;
      const shown = await called(
        ...['bash', '-c', `${script}\n${typed}; _openwop; printf '%s\\n' "\${COMPREPLY[@]}"`],
      );
      return shown.trimEnd().split('\n');
    };
    expect(await complete('openwop', 'runs', 'fo')).toEqual(['follow']);
    // A busy host is not waited for: then there is nothing.
    const ids = () => complete('openwop', 'start', workflowId.slice(0, 3));
    await expect.poll(ids).toEqual([workflowId]);
    const runs = () => complete('openwop', 'runs', 'show', 'run-');
    await expect.poll(runs).toContainEqual(expect.stringMatching(/^run-\w{27}$/));
  });
});

const missing = noTerminal();
describe.skipIf(missing)(`at a terminal${missing === undefined ? '' : ` (${missing})`}`, () => {
  const session = (columns: number, ...args: string[]): TerminalSession =>
    openTerminal(columns, [...PROGRAM, ...args], { cwd: ROOT, env: env() });
  const lines = (text: string): string[] =>
    // eslint-disable-next-line no-control-regex -- colours take no room
    text.replaceAll(/\u001b\[\d+m/g, '').split('\n');

  async function fits(columns: number, runId: string): Promise<void> {
    const listed = session(columns, 'runs', '--workflow', workflowId);
    expect(await listed.exited).toBe(0);
    expect(listed.shown()).toContain(runId);
    expect(lines(listed.shown()).filter((line) => [...line].length > columns)).toEqual([]);
    expect(listed.shown()).toMatch(ESCAPES);
  }

  it('the same journey, the answer chosen by its number, at 40 columns; the list at 120 too', async () => {
    const columns = 40;
    const started = session(columns, 'start', workflowId, ...INPUTS);
    expect(await started.exited).toBe(0);
    const runId = /Run (\S+): /.exec(started.shown())?.[1] ?? '';
    const asked = session(columns, 'runs', 'follow', runId, '--until-question');
    expect(await asked.exited).toBe(3);

    const answering = session(columns, 'runs', 'answer', runId);
    await answering.sees('1. accept');
    await answering.sees('Which?');
    answering.keys('9\r');
    await answering.sees('is none of them');
    await answering.sees('Which?');
    answering.keys('1\r');
    await answering.sees('Send this? (y/n)');
    answering.keys('y\r');
    await answering.sees('Your answer is taken.');
    expect(await answering.exited).toBe(0);

    const ended = session(columns, 'runs', 'follow', runId);
    expect(await ended.exited).toBe(0);
    await fits(columns, runId);
    await fits(120, runId);
    const plain = openTerminal(columns, [...PROGRAM, 'runs'], {
      ...{ cwd: ROOT, env: env({ NO_COLOR: '1' }) },
    });
    expect(await plain.exited).toBe(0);
    expect(plain.shown()).not.toMatch(ESCAPES);
  });

  it('Ctrl-C leaves the question unanswered, and a run that is followed alone', async () => {
    const runId = await host.startRun({ workflowId, inputs });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const answering = session(80, 'runs', 'answer', runId);
    await answering.sees('Which?');
    answering.keys('\u0003');
    expect(await answering.exited).toBe(130);
    const followed = session(80, 'runs', 'follow', runId);
    await followed.sees('reject');
    followed.keys('\u0003');
    expect(await followed.exited).toBe(130);
    expect(followed.shown()).toContain('The run goes on without you.');
    const { status } = (await host.api<RunSnapshot>(`/v1/runs/${runId}`)).body;
    expect(status).toBe('waiting-approval');
  });
});
