// opensentience.agent.json: what is read, what is refused and how that is told, what the operator permits a tool.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DeclaredTool } from '../../src/opensentience/messages.ts';
import {
  agentToolOf,
  isRefused,
  permissionsOf,
  checkManifest,
  DEFAULT_TOOL_TIMEOUT_MS,
  DEFAULT_TOOL_WAIT_MS,
  MANIFEST_BYTES,
  MANIFEST_FILE,
  readAgentFolders,
  toolPolicy,
} from '../../src/opensentience/manifest.ts';
import { EDITORS, NO_TEXT } from '../support/editor-files.ts';
import { tempFolder, writeAgent } from '../support/opensentience/temp.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const root = tempFolder();

function recording(): { lines: string[]; logger: typeof quietLogger } {
  const lines: string[] = [];
  return { lines, logger: { ...quietLogger, warn: (line) => void lines.push(line) } };
}

function given(name: string, files: Readonly<Record<string, string | Buffer>>): string {
  const folder = join(root, name);
  for (const [agent, text] of Object.entries(files)) {
    mkdirSync(join(folder, agent), { recursive: true });
    writeFileSync(join(folder, agent, MANIFEST_FILE), text);
  }
  return folder;
}

describe('seed 004 §4.1.1: manifests of a folder', () => {
  it('are read by id, with a hash of their bytes', async () => {
    const folder = join(root, 'good');
    const written = writeAgent(folder, { id: 'com.example.notes', launch: { command: './run' } });
    const agents = await readAgentFolders(folder, quietLogger);
    const agent = agents.get('com.example.notes');
    const bytes = readFileSync(join(written, MANIFEST_FILE));
    expect(agent?.hash).toBe(`sha256:${createHash('sha256').update(bytes).digest('hex')}`);
    expect(agent?.folder).toBe(written);
    expect([...agents.keys()]).toEqual(['com.example.notes']);
  });
  it('of other things in the folder nothing is said', async () => {
    const folder = given('others', { a: '{"id":"abc","version":"1"}' });
    writeFileSync(join(folder, 'README.md'), '');
    mkdirSync(join(folder, 'empty'));
    symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling'));
    const { lines, logger } = recording();
    expect([...(await readAgentFolders(folder, logger)).keys()]).toEqual(['abc']);
    expect(lines).toEqual([]);
  });
  it('as the published standard has them are taken; what means nothing is named, once', async () => {
    const standard = {
      manifest_version: 1,
      id: 'com.graphonomous.core',
      name: 'Graphonomous',
      version: '1.0.0',
      description: 'A knowledge graph.',
      source: { git_url: 'https://example.com/graph.git', ref: 'main' },
      entrypoint: { type: 'mix_task', value: 'opensentience.agent' },
      capabilities: ['tools', 'streaming'],
      permissions: ['filesystem:read:~/notes/**'],
      homepage_url: 'https://example.com',
      tool_summary: [{ name: 'graph_search' }],
      resources: { cpu: { limit: '500m' } },
    };
    const folder = given('standard', { a: JSON.stringify(standard) });
    const { lines, logger } = recording();
    const agents = await readAgentFolders(folder, logger);
    expect(agents.get('com.graphonomous.core')?.manifest.launch).toEqual({
      command: 'mix',
      args: ['opensentience.agent'],
    });
    expect(lines).toEqual([expect.stringContaining('mean nothing')]);
  });
  it.each<[string, unknown, unknown]>([
    ['a file of the folder', { type: 'command', value: 'run me.sh' }, { command: './run me.sh' }],
    ['a path into the folder', { type: 'release', value: 'bin/agent' }, { command: 'bin/agent' }],
    [
      'a command with its arguments',
      { type: 'command', value: 'node  agent.mjs --fast' },
      { command: 'node', args: ['agent.mjs', '--fast'] },
    ],
    [
      'a file of the folder with arguments',
      { type: 'command', value: 'start --fast' },
      { command: './start', args: ['--fast'] },
    ],
  ])('the entry point is %s', async (name, entrypoint, launch) => {
    const folder = given(name, { a: JSON.stringify({ id: 'abc', entrypoint }) });
    for (const file of ['run me.sh', 'start']) writeFileSync(join(folder, 'a', file), '');
    const agents = await readAgentFolders(folder, quietLogger);
    expect(agents.get('abc')?.manifest.launch).toEqual({ args: [], ...(launch as object) });
  });
  it("the operator's launch goes before the agent's entry point", async () => {
    const manifest = {
      id: 'abc',
      launch: { command: 'python3' },
      entrypoint: { type: 'command', value: 'node' },
    };
    const folder = given('both', { a: JSON.stringify(manifest) });
    const agents = await readAgentFolders(folder, quietLogger);
    expect(agents.get('abc')?.manifest.launch).toEqual({ command: 'python3' });
  });
  it.each(Object.entries(EDITORS))(
    'a file as an editor saved it, whose hash is of its bytes: %s',
    async (name, saved) => {
      const bytes = saved('{\n"id":"abc","version":"1","name":"Ä"\n}\n');
      const { lines, logger } = recording();
      const agents = await readAgentFolders(given(`saved ${name}`, { a: bytes }), logger);
      expect(lines).toEqual([]);
      expect(agents.get('abc')).toMatchObject({
        manifest: { name: 'Ä' },
        hash: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
      });
    },
  );
  it.each(Object.entries(NO_TEXT))('what is no text is refused: %s', async (name, bytes) => {
    const { lines, logger } = recording();
    const agents = await readAgentFolders(given(`no text ${name}`, { a: bytes }), logger);
    expect(agents.size).toBe(0);
    expect(lines).toEqual([
      expect.stringMatching(/^agent manifest not used: .* \/ is no.*; save it as UTF-8$/),
    ]);
  });
  it('a pipe in place of a manifest is not waited for', async () => {
    const folder = given('pipe', { a: '{"id":"abc","version":"1"}' });
    mkdirSync(join(folder, 'b'));
    execFileSync('mkfifo', [join(folder, 'b', MANIFEST_FILE)]);
    const { lines, logger } = recording();
    expect([...(await readAgentFolders(folder, logger)).keys()]).toEqual(['abc']);
    expect(lines).toEqual([expect.stringContaining('cannot be read (no file)')]);
  });
  it('each fault is one line with its place, and costs that manifest only', async () => {
    const folder = given('bad', {
      a: '{"id":"abc","version":"1"}',
      b: '{"id":"ab","version":"1","restart":{"policy":"sometimes","typo":1}}',
      c: 'not json',
      d: Buffer.from([0xff, 0xc0]),
      e: '{"id":"abc","version":"2"}',
      f: ' '.repeat(MANIFEST_BYTES + 1),
      h: '{"id":"abd","version":"1","a":1e400}',
    });
    mkdirSync(join(folder, 'g', MANIFEST_FILE), { recursive: true });
    const { lines, logger } = recording();
    const agents = await readAgentFolders(folder, logger);
    expect(agents.get('abc')?.manifest.version).toBe('1');
    expect(agents.size).toBe(1);
    const told = lines.map((line) =>
      line.replaceAll(`${folder}/`, '').replaceAll(MANIFEST_FILE, ''),
    );
    expect(told).toEqual([
      'agent manifest not used: b/ /id must match pattern "^[A-Za-z0-9][A-Za-z0-9_.-]{2,127}$"',
      'agent manifest not used: b/ /restart/typo is not a known field',
      'agent manifest not used: b/ /restart/policy must be one of ["always","on-failure","never"]',
      'agent manifest not used: c/ / is not JSON',
      'agent manifest not used: d/ / is not UTF-8 text; save it as UTF-8',
      'agent manifest not used: e/ /id is the id of a/ already',
      `agent manifest not used: f/ / is larger than ${MANIFEST_BYTES} bytes`,
      'agent manifest not used: g/ / cannot be read (no file)',
      'agent manifest not used: h/ /a is a number that cannot be kept exactly; send it as text, in quotes',
    ]);
  });
  it('a folder that is not there holds none', async () => {
    const { lines, logger } = recording();
    expect((await readAgentFolders(join(root, 'missing'), logger)).size).toBe(0);
    expect(lines).toEqual(['the folder of agents cannot be read']);
  });
});

describe('manifest fields', () => {
  const check = (over: Record<string, unknown>) =>
    checkManifest(Buffer.from(JSON.stringify({ id: 'abc', version: '1', ...over }))).ok;
  it.each([
    [{ launch: { command: 'x', env: { OPENSENTIENCE_SESSION_TOKEN: 'mine' } } }],
    [{ launch: { command: 'x', inheritEnv: ['OPENSENTIENCE_SOCKET'] } }],
    [{ launch: { command: 'x', env: { 'A=B': 'c' } } }],
    [{ launch: { command: 'x', args: ['a\u0000b'] } }],
    [{ launch: {} }],
    [{ limits: { maxInflightRequests: 257 } }],
    [{ policy: { tools: { t: { timeoutMs: 240_001 } } } }],
    [{ policy: { tools: { t: { waitMs: 30 * 24 * 3600 * 1000 + 1 } } } }],
    [{ policy: { sideEffects: 'maybe' } }],
    [{ restart: { crashLoop: { exits: 3 } } }],
    [{ id: '../escape' }],
    [{ id: 'a/b' }],
  ])('refuses %j', (over) => expect(check(over)).toBe(false));
  it('takes all that it knows', () =>
    expect(
      check({
        name: 'Notes',
        description: 'Keeps notes.',
        launch: { command: 'node', args: ['a.js'], env: { A: '1' }, inheritEnv: ['PATH'] },
        restart: {
          policy: 'on-failure',
          firstDelayMs: 100,
          maxDelayMs: 1000,
          crashLoop: { exits: 3, withinMs: 1000 },
        },
        limits: { memoryBytes: 1e9, openFiles: 64, cpuSeconds: 60, maxInflightRequests: 8 },
        policy: { sideEffects: 'allow', directives: 'deny', tools: { t: { approval: 'ask' } } },
        context: { project_root: '/srv', resource_paths: ['a'] },
      }),
    ).toBe(true));
});

describe('architecture §10: what an agent asks for', () => {
  it.each<
    [string, readonly string[] | undefined, readonly string[] | undefined, string[], boolean]
  >([
    ['nothing', undefined, undefined, [], false],
    ['an empty list', [], ['network'], [], false],
    ['something', ['network'], undefined, ['network refused'], true],
    ['something given', ['network'], ['network'], ['network acknowledged'], false],
    ['less than is given', ['network'], ['*', 'Network', 'network '], ['network refused'], true],
    ['it twice', ['a', 'a'], ['a'], ['a acknowledged'], false],
    ['two, one given', ['a', 'b'], ['b'], ['a refused', 'b acknowledged'], true],
  ])('%s', (_, permissions, acknowledgedPermissions, states, refused) => {
    const manifest = {
      id: 'abc',
      ...(permissions ? { permissions: [...permissions] } : {}),
      policy: {
        ...(acknowledgedPermissions
          ? { acknowledgedPermissions: [...acknowledgedPermissions] }
          : {}),
      },
    };
    expect(checkManifest(Buffer.from(JSON.stringify(manifest))).ok).toBe(true);
    const told = permissionsOf(manifest).map(({ permission, state }) => `${permission} ${state}`);
    expect(told).toEqual(states);
    expect(isRefused(manifest)).toBe(refused);
  });
});

describe('architecture §5: what the operator permits', () => {
  const tool = (over: Partial<DeclaredTool> = {}): DeclaredTool => ({
    tool_id: 'abc/t',
    name: 't',
    description: '',
    input_schema: {},
    ...over,
  });
  const base = { id: 'abc', version: '1' };
  it.each([
    // Silence is never consent: what a tool does not declare it may do.
    [undefined, {}, 'ask'],
    [undefined, { side_effects: false }, 'none'],
    [undefined, { side_effects: true }, 'ask'],
    [undefined, { side_effects: false, requires_directive: true }, 'ask'],
    [{ sideEffects: 'allow' }, { side_effects: true }, 'none'],
    [{ sideEffects: 'allow' }, { side_effects: true, requires_directive: true }, 'ask'],
    [{ directives: 'deny' }, { side_effects: true, requires_directive: true }, 'deny'],
    [{ sideEffects: 'deny' }, {}, 'deny'],
    [{ sideEffects: 'deny' }, { side_effects: false }, 'none'],
    [{ sideEffects: 'deny', tools: { t: { sideEffects: false } } }, {}, 'none'],
    [{ tools: { t: { sideEffects: false } } }, { side_effects: true }, 'none'],
    [{ tools: { t: { sideEffects: true } } }, { side_effects: false }, 'ask'],
    [{ tools: { toString: { sideEffects: true } } }, { side_effects: false }, 'none'],
    [{ sideEffects: 'deny', tools: { t: { approval: 'allow' } } }, { side_effects: true }, 'none'],
    [{ tools: { t: { approval: 'deny' } } }, {}, 'deny'],
    [{ tools: { other: { approval: 'deny' } } }, {}, 'ask'],
  ] as const)('policy %j, tool %j: %s', (policy, declared, approval) => {
    const manifest = { ...base, ...(policy ? { policy } : {}) };
    expect(toolPolicy(manifest, tool(declared)).approval).toBe(approval);
  });
  it('limits of a tool by name, others by default', () => {
    const policy = {
      tools: { t: { timeoutMs: 5, waitMs: 6, maxInputBytes: 7, maxOutputBytes: 8 } },
    };
    expect(toolPolicy({ ...base, policy }, tool({ side_effects: false }))).toEqual({
      approval: 'none',
      ...policy.tools.t,
    });
    const other = toolPolicy(base, tool({ name: 'toString' }));
    expect([other.timeoutMs, other.waitMs]).toEqual([
      DEFAULT_TOOL_TIMEOUT_MS,
      DEFAULT_TOOL_WAIT_MS,
    ]);
  });
  it.each([
    [{}, {}, true, []],
    [{}, { side_effects: false }, false, []],
    [{}, { capabilities: ['idempotency'] }, true, ['idempotency']],
    [{ sideEffects: false }, {}, false, []],
    [{ idempotent: true }, { capabilities: ['streaming'] }, true, ['streaming', 'idempotency']],
    [{ idempotent: false }, { capabilities: ['idempotency'] }, true, []],
  ] as const)(
    "the operator's word %j on a tool that declares %j: effects %s, capabilities %j",
    (own, declared, sideEffects, capabilities) => {
      const manifest = { ...base, policy: { tools: { t: own } } };
      expect(agentToolOf(manifest, tool(declared))).toMatchObject({ sideEffects, capabilities });
    },
  );
  it('a declared tool as runs see it', () =>
    expect(agentToolOf(base, tool({ tags: ['x'], side_effects: true }))).toMatchObject({
      toolId: 'abc/t',
      agentId: 'abc',
      capabilities: [],
      sideEffects: true,
      requiresDirective: false,
      tags: ['x'],
      approval: 'ask',
    }));
});
