// `openwop agents …` against an HTTP server with the answers that the real routes gave (test/facade/opensentience.test.ts
// records them and fails when they change): what is printed, for humans and for programs, and every way to fail.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { printable } from '../../src/words/printable.js';
import { ROOT } from '../support/root.ts';

const KEY = 'owop_key_of_the_cli_tests';
const BASE = '/v1/host/openwop-temporal/opensentience';
const ATTACHMENT = {
  agentId: 'example.weather',
  socket: '/tmp/core-1.sock',
  token: 'token-of-the-test',
  expiresAt: '2026-01-02T03:09:05.678Z',
};

const recorded = (name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'recorded', `${name}.json`), 'utf8'));

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const ok = (name: string): Answer => ({ status: 200, body: recorded(name) });
const envelope = (status: number, error: string, message: string): Answer => ({
  status,
  body: { error, message },
});
const UNKNOWN_AGENT = envelope(404, 'agent_not_found', 'No such agent.');

const ANSWERS: Record<string, Answer> = {
  'GET /agents': ok('agents'),
  'GET /agents/example.notes': ok('agent-notes'),
  'GET /agents/example.files': ok('agent-files'),
  'GET /agents/example.weather': ok('agent-weather'),
  'POST /agents/example.weather/attach': { status: 201, body: ATTACHMENT },
  'GET /audit?limit=50': ok('audit'),
  'GET /audit?limit=50&agentId=example.notes': ok('audit-notes'),
};

let server: Server;
let url = '';
const asked: string[] = [];
/** Answers of one test, before those of all. */
const special: Record<string, Answer> = {};

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = `${request.method} ${(request.url ?? '').replace(BASE, '')}`;
    asked.push(path);
    const authorized = request.headers.authorization === `Bearer ${KEY}`;
    const { status, body } = authorized
      ? (special[path] ?? ANSWERS[path] ?? UNKNOWN_AGENT)
      : envelope(401, 'unauthenticated', 'A valid API key is required.');
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(args: string, address: { url?: string; apiKey?: string } = {}): Promise<Ran> {
  let out = '';
  let err = '';
  const code = await runCli(args.split(' ').filter(Boolean), {
    ...{ url, apiKey: KEY, ...address },
    out: (text) => void (out += text),
    err: (text) => void (err += text),
  });
  return { code, out, err };
}

const lines = (text: string): string[] => text.trimEnd().split('\n');

describe('seed 004 §5 openwop agents, for humans', () => {
  it.each(['agents', 'agents list'])('%s lists them', async (args) => {
    const { code, out, err } = await run(args);
    expect([code, err]).toEqual([0, '']);
    expect(lines(out).map((line) => line.split(/ {2,}/))).toEqual([
      ['AGENT', 'STATUS', 'HEALTH', 'TOOLS', 'IN FLIGHT', 'QUEUED', 'CORES', 'VERSION'],
      ['example.files', 'absent', '-', '1', '0', '0', '0', '-'],
      ['example.notes', 'connected', 'degraded', '2', '2', '1', '2', '1.2.0'],
      ['example.weather', 'waiting', '-', '0', '0', '0', '1', '1.0.0'],
    ]);
  });

  it('show has Cores, sessions, tools, calls and metrics', async () => {
    const { code, out } = await run('agents show example.notes');
    expect(code).toBe(0);
    for (const told of [
      ...['Cores', 'Sessions', 'Tools', 'Calls', 'Metrics', 'session-2', 'tcp, attached'],
      ...['signal SIGKILL', '4711', 'call-1', 'run-2', '250', 'Adds a note.', 'ask'],
    ])
      expect(out).toContain(told);
  });

  it('show leaves out what there is none of', async () => {
    const { out } = await run('agents show example.weather');
    expect(out).toContain('waiting');
    for (const absent of ['Sessions', 'Metrics']) expect(out).not.toContain(absent);
  });

  it('tools and calls are of one agent or of all', async () => {
    const all = await run('agents tools');
    expect(all.out).toContain('example.files/read');
    expect(all.out).toContain('example.notes/add');
    expect((await run('agents tools example.notes')).out).not.toContain('example.files');
    for (const args of ['agents calls', 'agents calls example.notes']) {
      expect(lines((await run(args)).out).map((line) => line.split(/ {2,}/).slice(0, 4))).toEqual([
        ['CALL', 'TOOL', 'RUN', 'STATE'],
        ['call-1', 'example.notes/add', 'run-1', 'in-flight'],
        ['call-2', 'example.notes/add', 'run-1', 'canceling'],
        ['call-3', 'example.notes/list', 'run-2', 'queued'],
      ]);
    }
    expect((await run('agents calls example.weather')).out).toBe('No calls.\n');
  });

  it('audit is of all agents or of one', async () => {
    const kinds = (out: string) => lines(out).map((line) => line.split(/ {2,}/)[1]);
    const all = await run('agents audit');
    expect(kinds(all.out)).toEqual(['KIND', 'process.exited', 'session.opened', 'hello.refused']);
    expect(all.out).toContain('code=protocol.unauthorized');
    expect(kinds((await run('agents audit --agent example.notes')).out)).toEqual([
      ...['KIND', 'session.opened'],
    ]);
  });

  it('attach tells the environment to start the agent with', async () => {
    const { code, out } = await run('agents attach example.weather');
    expect(code).toBe(0);
    expect(out).toMatch(/OPENSENTIENCE_SOCKET +\/tmp\/core-1\.sock/);
    expect(out).toMatch(/OPENSENTIENCE_SESSION_TOKEN +token-of-the-test/);
    expect(out).toContain(ATTACHMENT.expiresAt);
  });

  it('show tells what the agent asks for, and that acknowledged is not enforced', async () => {
    const weather = recorded('agent-weather') as { instances: object[] };
    const permissions = [
      { permission: 'network:egress', state: 'acknowledged' },
      { permission: 'filesystem:read:/', state: 'refused' },
    ];
    const instances = weather.instances.map((one) => ({ ...one, status: 'refused', permissions }));
    special['GET /agents/asks.much'] = {
      status: 200,
      body: { ...weather, status: 'refused', instances },
    };
    const { out } = await run('agents show asks.much');
    expect(out).toMatch(/network:egress +acknowledged, not enforced +core-1/);
    expect(out).toMatch(/filesystem:read:\/ +refused +core-1/);
  });
  // [I61]
  it('nothing that an agent says is obeyed by the terminal', async () => {
    const hostile = 'a\u001b[2Jb\r\nc\u0007\u202ed\u009be\ud800';
    expect(printable(hostile)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
    const tool = { ...(recorded('agent-files') as { tools: object[] }).tools[0] };
    special['GET /agents/hostile.one'] = {
      status: 200,
      body: { tools: [{ ...tool, description: hostile + 'x'.repeat(5_000) }] },
    };
    const { out } = await run('agents tools hostile.one');
    expect(lines(out)).toHaveLength(2);
    expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
    expect(out.length).toBeLessThan(1_000);
  });
});

describe('seed 004 §5 openwop agents --json, for programs: one document', () => {
  it.each([
    ['agents --json', 'agents', undefined],
    ['agents list --json', 'agents', undefined],
    ['agents show example.notes --json', 'agent-notes', undefined],
    ['agents tools example.notes --json', 'agent-notes', 'tools'],
    ['agents calls example.notes --json', 'agent-notes', 'calls'],
    ['agents audit --json', 'audit', 'entries'],
  ])('%s', async (args, name, part) => {
    const { code, out, err } = await run(args);
    const whole = recorded(name) as Record<string, unknown>;
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toEqual(part === undefined ? whole : { [part]: whole[part] });
  });

  it('attach is exactly socket, token and expiresAt', async () => {
    const { out } = await run('agents attach example.weather --json');
    const { socket, token, expiresAt } = ATTACHMENT;
    expect(JSON.parse(out)).toEqual({ socket, token, expiresAt });
  });

  it('audit --limit above a page reads on until it has them', async () => {
    const entry = (recorded('audit') as { entries: object[] }).entries[0];
    const page = (size: number, nextBefore?: number): Answer => ({
      status: 200,
      body: { entries: Array.from({ length: size }, () => entry), nextBefore },
    });
    special['GET /audit?limit=200'] = page(200, 301);
    special['GET /audit?limit=50&before=301'] = page(50, 251);
    const { out } = await run('agents audit --limit 250 --json');
    expect((JSON.parse(out) as { entries: unknown[] }).entries).toHaveLength(250);
  });
});

describe('what goes wrong is one sentence and an exit code', () => {
  it.each([
    ['no key', { apiKey: undefined }, 'There is no API key'],
    ['a wrong key', { apiKey: 'owop_wrong' }, 'refuses the API key'],
    ['no host there', { url: 'http://127.0.0.1:1' }, 'cannot be reached'],
    ['an address that is none', { url: 'http://host.invalid' }, 'cannot be reached'],
    ['a URL of another kind', { url: 'ftp://127.0.0.1' }, 'OPENWOP_URL'],
    ['no URL', { url: 'nonsense' }, 'OPENWOP_URL'],
  ])('%s is 1', async (_what, address, told) => {
    const { code, out, err } = await run('agents', address);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain(told);
    expect(lines(err)).toHaveLength(1);
    expect(err).not.toContain('owop_');
  });

  it('a host that is not started is 1, and how to start it is told', async () => {
    const gone = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => gone.once('listening', resolve));
    const { port } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    const { code, err } = await run('agents', { url: `http://127.0.0.1:${port}` });
    expect(code).toBe(1);
    expect(err).toContain('npm start');
  });

  it.each(['show no.such', 'tools no.such', 'calls no.such', 'attach no.such', 'show ../../runs'])(
    'agents %s is 1 and names the agent',
    async (args) => {
      const { code, out, err } = await run(`agents ${args}`);
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain(`knows no agent ${args.split(' ')[1]}`);
      expect(asked.at(-1)?.split('/')).toHaveLength(args.startsWith('attach') ? 4 : 3);
    },
  );

  it.each([
    [envelope(404, 'not_found', 'There is nothing at this address.'), 'OPENWOP_OPENSENTIENCE_DIR'],
    [
      envelope(503, 'service_unavailable', 'The service cannot do this now.'),
      'service_unavailable',
    ],
    [{ status: 200, body: '<html>' }, 'no OpenWOP host'],
    [{ status: 302, body: '' }, 'no OpenWOP host'],
    [{ status: 500, body: { error: 7 } }, 'no OpenWOP host'],
  ])('an answer %# that is no list is 1', async (answer, told) => {
    special['GET /agents'] = answer;
    const { code, out, err } = await run('agents --json');
    delete special['GET /agents'];
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain(told);
  });

  it.each([
    ...['', 'nothing', 'agents nothing', 'agents show', 'agents attach', 'agents list --bad'],
    ...['agents audit --limit 0', 'agents audit --limit x', 'agents audit --limit 10001'],
    ...['agents show a b', 'agents audit --limit'],
  ])('"%s" is 2, and the host is not asked', async (args) => {
    const before = asked.length;
    const { code, out, err } = await run(args);
    expect([code, out, asked.length]).toEqual([2, '', before]);
    expect(err).not.toBe('');
  });

  it('a command that there is not is called by its name', async () => {
    expect((await run('agents atach example.weather')).err).toContain("unknown command 'atach'");
  });

  it.each(['--help', 'agents --help', 'agents attach --help', 'help'])('%s is 0', async (args) => {
    const { code, out } = await run(args);
    expect(code).toBe(0);
    expect(out).toContain('Usage: openwop');
  });

  it('help names every command and what the environment says', async () => {
    const { out } = await run('agents --help');
    for (const name of ['list', 'show', 'tools', 'calls', 'audit', 'attach'])
      expect(out).toContain(`  ${name}`);
    expect((await run('--help')).out).toContain('OPENWOP_API_KEY');
  });
});

describe('npm run -s openwop', () => {
  function spawned(args: readonly string[], env: Record<string, string>): Promise<Ran> {
    const child = spawn(process.execPath, ['src/app/launch.js', 'openwop', ...args], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (piece: Buffer) => void (out += piece.toString()));
    child.stderr.on('data', (piece: Buffer) => void (err += piece.toString()));
    return new Promise((resolve) => {
      child.once('close', (code) => resolve({ code: code ?? -1, out, err }));
    });
  }

  it('takes the key from the environment, or else the one that the data folder keeps', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'openwop-cli-'));
    try {
      const env = { OPENWOP_URL: url, OPENWOP_DATA_DIR: folder };
      const args = ['agents', 'attach', 'example.weather', '--json'];
      const without = await spawned(args, env);
      expect([without.code, without.out]).toEqual([1, '']);
      expect(without.err).toContain('There is no API key');
      writeFileSync(join(folder, 'api-key'), `${KEY}\n`);
      const kept = await spawned(args, { ...env, OPENWOP_API_KEY: '' });
      expect([kept.code, kept.err]).toEqual([0, '']);
      expect(JSON.parse(kept.out)).toMatchObject({ token: ATTACHMENT.token });
      const other = await spawned(args, { ...env, OPENWOP_API_KEY: 'owop_wrong' });
      expect(other.code).toBe(1);
      expect(other.err).toContain('refuses the API key');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it.each<[string, () => Record<string, string>, boolean]>([
    ["the host's own port", () => ({ OPENWOP_PORT: new URL(url).port }), false],
    ['where the host of the data folder listened last', () => ({}), true],
    ['the same with a free port', () => ({ OPENWOP_PORT: '0' }), true],
  ])('asks %s when no URL is given', async (_, env, isKept) => {
    const folder = mkdtempSync(join(tmpdir(), 'openwop-cli-'));
    try {
      writeFileSync(join(folder, 'api-key'), `${KEY}\n`);
      if (isKept) writeFileSync(join(folder, 'url'), `${url}\n`);
      const told = await spawned(['agents', '--json'], { OPENWOP_DATA_DIR: folder, ...env() });
      expect([told.code, told.err]).toEqual([0, '']);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
