// Real processes: what they are given, what they leave behind, what of their output is kept.
import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../../src/rules/redaction.ts';
import { launchProcess, type LaunchedProcess } from '../../../src/opensentience/process/launch.ts';
import { openLogFile } from '../../../src/opensentience/process/log-file.ts';
import type { AgentFolder } from '../../../src/opensentience/manifest.ts';
import {
  createOutputCapture,
  MAX_LINE_LENGTH,
  OUTPUT_BURST,
} from '../../../src/opensentience/process/output-capture.ts';
import { groupMembers, isGroupRunning } from '../../../src/system/processes.ts';
import { placeSocket, MAX_SOCKET_PATH_BYTES } from '../../../src/opensentience/socket/place.ts';
import { tempFolder } from '../../support/opensentience/temp.ts';

const root = tempFolder();
const linux = process.platform === 'linux';
let number = 0;

const TOKEN = 'T'.repeat(43);
const SECRET = 'operator-secret-1';

function launch(manifest: Partial<AgentFolder['manifest']>, script = '') {
  const folder = join(root, `agent-${number++}`);
  mkdirSync(folder);
  writeFileSync(join(folder, 'script.mjs'), script);
  const file = openLogFile(join(folder, 'log', 'a.log'), 1024 * 1024);
  const output = createOutputCapture({
    redactor: createRedactor([{ id: 'key', value: SECRET }]),
    withoutTokens: (text) => text.replaceAll(TOKEN, '[token]'),
    file,
  });
  const agent: AgentFolder = {
    manifest: {
      id: 'com.example.a',
      version: '1',
      launch: { command: process.execPath, args: ['script.mjs'] },
      ...manifest,
    },
    folder,
    hash: '',
  };
  const environment = { PATH: process.env.PATH, HOME: '/home/x', OPENWOP_API_KEY: SECRET };
  const launched = launchProcess({
    agent,
    socketPath: '/s.sock',
    token: TOKEN,
    environment,
    output,
  });
  return { launched, folder, log: () => readFileSync(file.path, 'utf8'), file };
}

const ended = async ({ exited }: LaunchedProcess) => (await exited).reason;

describe('seed 004 §5.2: how an agent is started', () => {
  it('gets named variables only, token and socket among them, in its own folder and group', async () => {
    const script = `console.log(JSON.stringify({ env: process.env, cwd: process.cwd(), argv: process.argv }))`;
    const { launched, folder, log } = launch({}, script);
    expect(await ended(launched)).toBe('exit code 0');
    await expect.poll(log).toContain('stdout {');
    const said = JSON.parse(log().split('stdout ')[1] ?? '') as {
      env: Record<string, string>;
      cwd: string;
      argv: string[];
    };
    expect(said.cwd).toBe(folder);
    expect(said.env).toEqual({
      PATH: process.env.PATH,
      HOME: '/home/x',
      TSX_DISABLE_CACHE: '1',
      OPENSENTIENCE_SOCKET: '/s.sock',
      OPENSENTIENCE_SESSION_TOKEN: '[token]',
      OPENSENTIENCE_AGENT_ID: 'com.example.a',
    });
    expect(said.argv.join()).not.toContain('[token]');
  });
  it('the manifest names what it inherits besides, adds, and has the last word', async () => {
    const launchPart = {
      command: process.execPath,
      args: ['script.mjs'],
      inheritEnv: ['OPENWOP_API_KEY', 'NOT_THERE'],
      env: { MODE: 'x', HOME: '/of/its/own' },
    };
    const script = `console.log(process.env.HOME, Object.keys(process.env).sort().join())`;
    const { launched, log } = launch({ launch: launchPart }, script);
    await ended(launched);
    await expect
      .poll(log)
      .toContain(
        '/of/its/own HOME,MODE,OPENSENTIENCE_AGENT_ID,OPENSENTIENCE_SESSION_TOKEN,OPENSENTIENCE_SOCKET,OPENWOP_API_KEY,PATH,TSX_DISABLE_CACHE',
      );
  });
  it.runIf(linux)('the token is in no argument list', async () => {
    const limits = { openFiles: 100 };
    const { launched } = launch({ limits }, 'setInterval(() => {}, 1000)');
    const cmdline = readFileSync(`/proc/${launched.record?.pid}/cmdline`, 'utf8');
    expect(cmdline).not.toContain(TOKEN);
    launched.signal('SIGKILL');
    expect(await ended(launched)).toBe('SIGKILL');
  });
  it('one that cannot be started says so and throws nothing', async () => {
    const { launched } = launch({ launch: { command: './not-there' } });
    expect(await ended(launched)).toBe('could not be started (ENOENT)');
    expect(launched.record).toBeUndefined();
  });
  it('limits hold: open files and CPU time', async () => {
    const limits = { openFiles: 64, cpuSeconds: 1 };
    const command = {
      command: '/bin/sh',
      args: ['-c', 'ulimit -n; ulimit -t; while :; do :; done'],
    };
    const { launched, log } = launch({ limits, launch: command });
    expect(['SIGKILL', 'SIGXCPU']).toContain(await ended(launched));
    await expect.poll(log).toMatch(/stdout 64\n.*stdout 1\n/);
  });
  it.runIf(linux)('what it leaves behind in its group ends with it', async () => {
    const script = `
      import { spawn } from 'node:child_process';
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
      child.once('spawn', () => process.exit(7));`;
    const { launched } = launch({}, script);
    const pid = launched.record?.pid ?? 0;
    expect(await ended(launched)).toBe('exit code 7');
    await expect.poll(() => groupMembers().get(pid) ?? []).toEqual([]);
    expect(isGroupRunning(launched.record ?? { pid: 0, startedAt: '' })).toBe(false);
  });
});

describe('seed 004 §7: output is bounded and without secrets', () => {
  function capture() {
    const file = openLogFile(join(root, `capture-${number++}.log`), 1024 * 1024);
    const stream = new PassThrough();
    const lines: string[] = [];
    const output = createOutputCapture({
      redactor: createRedactor([{ id: 'key', value: SECRET }]),
      withoutTokens: (text) => text.replaceAll(TOKEN, '[token]'),
      file,
      onLine: (_, line) => lines.push(line),
    });
    output.attach(stream, 'stderr');
    const write = async (...pieces: readonly (string | Buffer)[]) => {
      for (const piece of pieces) stream.write(piece);
      stream.end();
      await once(stream, 'end');
      return lines;
    };
    return { write };
  }
  it('lines over any pieces, multi-byte characters and a last one without end', async () => {
    const euro = Buffer.from('€');
    const lines = await capture().write(
      'a',
      'b\r\n\nc',
      euro.subarray(0, 1),
      euro.subarray(1),
      '\nd',
    );
    expect(lines).toEqual(['ab', 'c€', 'd']);
  });
  it('secrets and tokens are out, split over pieces too', async () => {
    const lines = await capture().write(
      SECRET.slice(0, 5),
      `${SECRET.slice(5)} ${TOKEN.slice(0, 9)}`,
      TOKEN.slice(9),
    );
    expect(lines).toEqual(['[REDACTED:key] [token]']);
  });
  it.each([[TOKEN], [SECRET]])('a long line is cut, and no half of %s is shown', async (secret) => {
    for (const inside of [1, 5, secret.length - 1]) {
      const text = `${'. '.repeat(MAX_LINE_LENGTH / 2 - 60)}`;
      const padding = ' '.repeat(MAX_LINE_LENGTH - text.length - inside);
      const [line = ''] = await capture().write(`${text}${padding}${secret} more\nnext\n`);
      expect(line.length).toBeLessThanOrEqual(MAX_LINE_LENGTH + 1);
      expect(line.trimEnd().at(-1)).toBe('…');
      expect(line).not.toContain(secret.slice(0, Math.min(inside, 5)));
    }
  });
  it('no control character reaches a terminal', async () => {
    expect(await capture().write('a\u001b[2Jb\u0007\n')).toEqual(['a\ufffd[2Jb\ufffd']);
  });
  it('more than permitted is dropped, counted and told', async () => {
    let nowMs = 1_000;
    const file = openLogFile(join(root, 'flood.log'), 4 * OUTPUT_BURST);
    const stream = new PassThrough();
    const lines: string[] = [];
    createOutputCapture({
      redactor: createRedactor([]),
      withoutTokens: (text) => text,
      file,
      onLine: (_, line) => lines.push(line),
      now: () => nowMs,
    }).attach(stream, 'stdout');
    const fitting = Math.floor(OUTPUT_BURST / 1_000);
    stream.write(`${'x'.repeat(999)}\n`.repeat(fitting + 100));
    await expect.poll(() => lines.length).toBe(fitting);
    nowMs += 60_000;
    stream.end('after\n');
    await once(stream, 'end');
    expect(lines.at(-1)).toBe('after');
    expect(readFileSync(file.path, 'utf8')).toContain('core 100 lines dropped');
  });
  it('a clock that is set back silences nobody', async () => {
    let nowMs = 3_600_000;
    const lines: string[] = [];
    const stream = new PassThrough();
    createOutputCapture({
      redactor: createRedactor([]),
      withoutTokens: (text) => text,
      file: openLogFile(join(root, 'clock.log'), 1_000),
      onLine: (_, line) => lines.push(line),
      now: () => nowMs,
    }).attach(stream, 'stdout');
    nowMs = 0;
    stream.end('still here\n');
    await once(stream, 'end');
    expect(lines).toEqual(['still here']);
  });
  it('the file is bounded with one predecessor, for its owner only', () => {
    const path = join(root, 'rotated', 'a.log');
    const file = openLogFile(path, 1_000);
    for (let n = 0; n < 100; n++) file.append(`${String(n).padStart(98, '.')}\n`);
    file.close();
    file.append('late\n');
    expect(statSync(path).size).toBeLessThanOrEqual(1_000);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(1_000);
    expect(readFileSync(path, 'utf8')).toContain('99');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(existsSync(`${path}.2`)).toBe(false);
  });
  it('a link or a pipe in place of the file is not written to, nor waited for', () => {
    const target = join(root, 'of-somebody-else');
    writeFileSync(target, 'kept');
    symlinkSync(target, join(root, 'link.log'));
    execFileSync('mkfifo', [join(root, 'pipe.log')]);
    for (const name of ['link.log', 'pipe.log']) {
      const file = openLogFile(join(root, name), 1_000);
      file.append('line\n');
      file.close();
    }
    expect(readFileSync(target, 'utf8')).toBe('kept');
  });
});

describe('seed 004 §1.1: the socket has a folder of its owner', () => {
  // Only the superuser can be another user for a moment.
  it.runIf(process.getuid?.() === 0)('no other user reaches the socket', async () => {
    const open = mkdtempSync('/tmp/reach-');
    chmodSync(open, 0o755);
    const { path } = placeSocket(join(open, 'sockets'));
    const server = createServer((socket) => socket.end()).listen(path);
    await once(server, 'listening');
    const script = `require('net').connect(${JSON.stringify(path)})
      .on('connect', () => console.log('in')).on('error', (error) => console.log(error.code))`;
    const asUser = promisify(execFile);
    const { stdout: own } = await asUser(process.execPath, ['-e', script]);
    const other = { uid: 65_534, gid: 65_534, cwd: '/' };
    const { stdout } = await asUser(process.execPath, ['-e', script], other);
    expect([own, stdout]).toEqual(['in\n', 'EACCES\n']);
    server.close();
    rmSync(open, { recursive: true });
  });
  it('a folder that is none, or a link to one, is not used', () => {
    writeFileSync(join(root, 'a-file'), '');
    symlinkSync(root, join(root, 'a-link'));
    expect(() => placeSocket(join(root, 'a-link'))).toThrow(
      expect.objectContaining({ code: 'config_invalid' }),
    );
    expect(() => placeSocket(join(root, 'a-file'))).toThrow();
  });
  it('0700, made where it is missing; a long path gets a temporary one', () => {
    const folder = join(root, 'sockets');
    const near = placeSocket(folder);
    expect(near.path.startsWith(folder)).toBe(true);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const far = placeSocket(join(root, 'd'.repeat(120)));
    expect(Buffer.byteLength(far.path)).toBeLessThanOrEqual(MAX_SOCKET_PATH_BYTES);
    const made = join(far.path, '..');
    expect(statSync(made).mode & 0o777).toBe(0o700);
    far.remove();
    expect(existsSync(made)).toBe(false);
  });
  it('what a killed Core left is removed, what a living one has stays', () => {
    const folder = join(root, 'stale');
    mkdirSync(folder);
    const dead = join(folder, `core-${2 ** 22 + 1}-abcdef.sock`);
    const living = join(folder, `core-${process.pid}-abcdef.sock`);
    for (const path of [dead, living, join(folder, 'other')]) writeFileSync(path, '');
    placeSocket(folder);
    expect([dead, living].map(existsSync)).toEqual([false, true]);
    expect(existsSync(join(folder, 'other'))).toBe(true);
  });
});
