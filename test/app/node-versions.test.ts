// The product on every Node that it is said to run on: it starts, goes on after a kill, and bounds workflow tasks. The
// versions are those of OPENWOP_TEST_NODES (test/support/nodes.ts); absent: the Node that runs the tests.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TYPESCRIPT } from '../../src/system/compiled.ts';
import { recordProcess } from '../../src/system/processes.ts';
import { apiClient, until } from '../support/host.ts';
import { patient } from '../support/machine.ts';
import { testedNodes } from '../support/nodes.ts';
import { copyDatabase } from '../support/prepared.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { ROOT } from '../support/root.ts';

const THREAD_PROGRAM = fileURLToPath(
  new URL('../support/workflow-thread-program.ts', import.meta.url),
);
/** Where it is downloaded first. */
const INSTALL_LIMIT_MS = patient(300_000);
/** Of one start until it asks: the program is compiled, a database and a server begin. */
const START_LIMIT_MS = patient(90_000);
const CASE_LIMIT_MS = patient(300_000);
/** What Node prints of what is deprecated or experimental. */
const NODE_WARNING = /^\(node:\d+\) .*/m;

interface Started {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Exit code or signal, when the process is gone. */
  readonly end: (signal: NodeJS.Signals) => Promise<unknown>;
}

let folder: string;
const started: Started[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'openwop-node-'));
});
afterEach(async () => {
  for (const { child, end } of started.splice(0))
    if (child.exitCode === null && child.signalCode === null) await end('SIGKILL');
  // The server outlives a host that was killed.
  const server = serverPid();
  if (server !== undefined && recordProcess(server)) process.kill(server, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const dataFile = (name: string) => join(folder, 'data', name);
const read = (name: string) => readFileSync(dataFile(name), 'utf8').trim();

function serverPid(): number | undefined {
  if (!existsSync(dataFile('temporal.json'))) return undefined;
  return (JSON.parse(read('temporal.json')) as { process?: { pid: number } }).process?.pid;
}

/** `npm start` by another Node, in the folder of the case. */
function start(node: string, env: Readonly<Record<string, string>> = {}): Started {
  const child = spawn(node, [join(ROOT, 'src/app/launch.js'), 'start'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      OPENWOP_PORT: '0',
      OPENWOP_DATA_DIR: join(folder, 'data'),
      OPENWOP_CACHE_DIR: CACHE_DIR,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (piece: Buffer) => void (stdout += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => void (stderr += piece.toString()));
  const closed = once(child, 'close');
  const host: Started = {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    end: async (signal) => {
      child.kill(signal);
      const [code, by] = (await closed) as unknown[];
      return by ?? code;
    },
  };
  started.push(host);
  return host;
}

/** The first group of `pattern` in what the host printed, as soon as it is there. */
async function printed({ child, stdout, stderr }: Started, pattern: RegExp): Promise<string> {
  await until(() => pattern.test(stdout()) || child.exitCode !== null, `${pattern} is printed`, {
    limitMs: START_LIMIT_MS,
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${stdout()}\n${stderr()}`, { cause: error });
  });
  const match = pattern.exec(stdout());
  if (!match) throw new Error(`no ${pattern} in:\n${stdout()}\n${stderr()}`);
  return match[1] ?? '';
}

/** What has a mode that gives others something, without a database that this test put there. */
function forOthers(data: string): readonly string[] {
  return readdirSync(data, { recursive: true, encoding: 'utf8' })
    .filter((name) => process.env.OPENWOP_TEST_NODES || !/^postgres(\/|$)/.test(name))
    .filter((name) => {
      const state = lstatSync(join(data, name), { throwIfNoEntry: false });
      return state !== undefined && (state.mode & 0o077) !== 0;
    });
}

describe.each(testedNodes())('Node $version', ({ version, major, obtain }) => {
  let node: string;
  beforeAll(async () => {
    node = await obtain();
    const { stdout } = await promisify(execFile)(node, ['-p', 'process.versions.node']);
    expect(`${stdout.trim()}.`.startsWith(`${version}.`)).toBe(true);
  }, INSTALL_LIMIT_MS);

  it(
    'the demo run asks, survives kill -9 of its host, is answered, and ends',
    async () => {
      // Of versions that somebody named, each begins with nothing.
      if (!process.env.OPENWOP_TEST_NODES) await copyDatabase(CACHE_DIR, dataFile('postgres'));
      const first = start(node);
      await printed(first, /curl -X POST '\S+\/interrupts\//);
      const runId = read('demo-run');
      expect(first.stdout()).toContain(`/pages/runs/${runId}\n`);
      expect(first.stdout()).toMatch(/curl -N -H '[^']+' '\S+\/events\?streamMode=debug'/);
      expect(NODE_WARNING.exec(first.stderr())).toBe(null);
      expect(await first.end('SIGKILL')).toBe('SIGKILL');

      const second = start(node, { OPENWOP_LOG_LEVEL: 'debug' });
      const url = await printed(second, /OpenWOP host +(\S+)\/\.well-known/);
      expect(second.stdout()).toContain('going on with the server that is still running');
      const client = apiClient(url, read('api-key'));
      const open = await client.api<{ runs: { runId: string }[] }>(
        '/v1/runs?status=waiting-approval',
      );
      expect(open.body.runs.map((run) => run.runId)).toEqual([runId]);
      const answer = await client.api(`/v1/runs/${runId}/interrupts/triage`, {
        body: { resumeValue: { action: 'accept' } },
      });
      expect(answer.status).toBe(200);
      await client.waitFor(runId, ({ status }) => status === 'completed');
      await printed(second, /The run has ended/);
      expect(forOthers(join(folder, 'data'))).toEqual([]);
      const server = serverPid() ?? 0;
      expect(recordProcess(server)).toBeDefined();
      expect(await second.end('SIGTERM')).toBe(0);
      expect(recordProcess(server)).toBeUndefined();
      expect(existsSync(dataFile('owner.lock'))).toBe(false);

      expect(NODE_WARNING.exec(second.stderr())).toBe(null);
      // Said once where an inside of Node is missing, to whoever asks for it.
      const notes = second.stderr().match(/bounded without async_wrap/g) ?? [];
      expect(notes).toHaveLength(major >= 24 ? 1 : 0);
    },
    CASE_LIMIT_MS,
  );

  // What else keeps the process from its end may be turned off from without.
  const options = major >= 24 ? ['', '--no-async-context-frame'] : [''];
  const cases = options.flatMap((option) => [
    { option, kind: 'plain' },
    { option, kind: 'traces' },
  ]);
  it.each(cases)(
    'a workflow task above its limit of time fails alone, in a thread for $kind, NODE_OPTIONS=$option',
    async ({ option, kind }) => {
      const program = ['--import', TYPESCRIPT, THREAD_PROGRAM, kind];
      const { stdout, stderr } = await promisify(execFile)(node, program, {
        cwd: ROOT,
        env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_OPTIONS: option },
      });
      expect(JSON.parse(stdout)).toEqual([
        'ERR_SCRIPT_EXECUTION_TIMEOUT',
        'done in context',
        'ERR_SCRIPT_EXECUTION_TIMEOUT',
        'done in context',
      ]);
      expect(stderr).toBe('');
    },
    CASE_LIMIT_MS,
  );
});
