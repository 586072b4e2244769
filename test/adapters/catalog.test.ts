// Definitions and agents from folders: what is listed, what is skipped, and what is told (conformance/fixtures.md;
// RFC 0003).
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadCatalog, type CatalogOptions } from '../../src/adapters/catalog/index.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { ContentStore } from '../../src/ports/content.ts';
import type { Logger } from '../../src/ports/logger.ts';
import type { Tools } from '../../src/ports/tools.ts';
import { EDITORS, NO_TEXT } from '../support/editor-files.ts';

const SAMPLES = fileURLToPath(new URL('../fixtures/', import.meta.url));
const CLERK = 'local.tests.clerk';

let folder: string;
let lines: string[];
let stored: Map<string, string>;

const logger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message) => void lines.push(message),
  error: (message) => void lines.push(message),
};
const content: Pick<ContentStore, 'put' | 'get'> = {
  put: async (_, bytes) => {
    const hash = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    stored.set(hash, new TextDecoder().decode(bytes));
    return hash;
  },
  get: async (_, hash) => new TextEncoder().encode(stored.get(hash)),
};
const tools: Pick<Tools, 'list'> = {
  list: () => [{ toolId: 'core:clock' } as ReturnType<Tools['list']>[number]],
};

const load = (more: Partial<CatalogOptions> = {}) =>
  loadCatalog({
    builtIn: { definitions: [], agents: [] },
    content,
    tenant: 'default',
    tools,
    logger,
    ...more,
  });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catalog-'));
  lines = [];
  stored = new Map();
});
afterEach(async () => rm(folder, { recursive: true, force: true }));

describe('definitions', () => {
  const write = (name: string, text: string) => writeFile(join(folder, name), text);

  test('conformance/fixtures.md: every good file of the folder is listed, bad ones are skipped with one line each', async () => {
    await cp(join(SAMPLES, 'definitions'), folder, { recursive: true });
    await write('broken.json', '{ "id": ');
    await write('empty.json', '{}');
    await write('exact.json', '{"id":"a","limit":9007199254740993}');
    await write('binary.json', Buffer.from([0xff, 0xfe, 0x00]).toString('latin1'));
    await write('notes.txt', 'not read');
    await mkdir(join(folder, 'sub.json'));
    const catalog = await load({ fixturesDir: folder });
    expect(catalog.fixtures()).toEqual(['chain']);
    expect(lines).toHaveLength(4);
    expect(lines.join('\n')).toMatch(
      /broken\.json.*not JSON[\s\S]*empty\.json skipped: \/ must have the field/,
    );
    expect(lines.join('\n')).toContain('exact.json skipped: /limit is a number that');
  });

  test('what is left out is kept for its tenant, with file, place and reason; no more than 100 faults', async () => {
    await cp(join(SAMPLES, 'definitions'), folder, { recursive: true });
    await write('broken.json', '{ "id": ');
    await write('empty.json', '{}');
    await write('bad.agent.json', JSON.stringify({ agentId: CLERK, systemPromptRef: '../x' }));
    const catalog = await load({ fixturesDir: folder, agentsDir: folder });
    const { faults, more } = catalog.faults('default');
    const told = faults.map(({ what, source, pointer }) => `${what} ${source} ${pointer}`);
    expect(told).toContain('workflow broken.json ');
    expect(told).toContain('workflow empty.json ');
    expect(told.filter((one) => one.startsWith('agent bad.agent.json')).length).toBeGreaterThan(0);
    expect(faults.filter(({ source }) => source === 'empty.json')).toHaveLength(5);
    expect(faults.find(({ source }) => source === 'broken.json')?.message).toContain('not JSON');
    expect(more).toBe(0);
    expect(catalog.faults('other')).toEqual({ faults: [], more: 0 });
    for (let at = 0; at < 30; at++) await write(`empty-${at}.json`, '{}');
    const many = (await load({ fixturesDir: folder })).faults('default');
    expect([many.faults.length, many.more > 0]).toEqual([100, true]);
    const nowhere = join(folder, 'nowhere');
    const none = await load({ fixturesDir: nowhere, agentsDir: nowhere });
    expect(none.faults('default').faults).toMatchObject([{ what: 'folder', source: nowhere }]);
  });

  test('rest-endpoints.md: a definition is served verbatim, and to its tenant only', async () => {
    const catalog = await load({ fixturesDir: join(SAMPLES, 'definitions') });
    const { default: file } = (await import('../fixtures/definitions/chain.json')) as {
      default: unknown;
    };
    expect(catalog.definition('default', 'chain')).toEqual(file);
    expect(catalog.definition('other', 'chain')).toBeUndefined();
    expect([catalog.definitions('other'), catalog.agents('other')]).toEqual([[], []]);
    expect(catalog.definition('default', 'toString')).toBeUndefined();
  });

  test('conformance/fixtures.md: node types of tests are registered in test mode only', async () => {
    const chain = JSON.parse(
      await readFile(join(SAMPLES, 'definitions', 'chain.json'), 'utf8'),
    ) as { nodes: { typeId: string }[] };
    const [first, ...rest] = chain.nodes;
    const nodes = [{ ...first, typeId: 'conformance.requiresMissing', config: {} }, ...rest];
    await write('chain.json', JSON.stringify({ ...chain, nodes }));
    expect((await load({ fixturesDir: folder })).fixtures()).toEqual([]);
    expect(lines.join()).toContain('there is no node type conformance.requiresMissing');
    expect((await load({ fixturesDir: folder, testMode: true })).fixtures()).toEqual(['chain']);
  });

  test('conformance/fixtures.md: an id that is there already is skipped, with a line', async () => {
    await cp(join(SAMPLES, 'definitions', 'chain.json'), join(folder, 'a.json'));
    await cp(join(SAMPLES, 'definitions', 'chain.json'), join(folder, 'b.json'));
    const catalog = await load({ fixturesDir: folder });
    expect(catalog.fixtures()).toEqual(['chain']);
    expect(lines).toEqual(['workflow definition of b.json skipped: /id "chain" is already loaded']);
  });

  test('conformance/fixtures.md: an unreadable folder is told loudly and nothing else happens', async () => {
    const catalog = await load({
      fixturesDir: join(folder, 'absent'),
      agentsDir: join(folder, 'absent'),
    });
    expect(catalog.definitions('default')).toEqual([]);
    expect(lines[0]).toContain('cannot be read');
  });

  test('a file that is too large is skipped', async () => {
    await write('large.json', JSON.stringify({ id: 'a'.repeat(1024 * 1024) }));
    expect((await load({ fixturesDir: folder })).fixtures()).toEqual([]);
    expect(lines).toEqual(['large.json skipped: is larger than 1048576 bytes']);
  });
});

describe('agents', () => {
  beforeEach(() => cp(join(SAMPLES, 'agents'), folder, { recursive: true }));

  const manifest = (change: object) =>
    writeFile(
      join(folder, 'clerk.agent.json'),
      JSON.stringify({
        agentId: CLERK,
        persona: 'Clerk',
        modelClass: 'general',
        systemPrompt: 'x',
        ...change,
      }),
    );

  test('RFC 0003: a manifest is resolved, stored under its hash and pinned', async () => {
    const catalog = await load({ agentsDir: folder });
    const before = [...stored];
    stored.clear();
    await catalog.store();
    expect(before).toHaveLength(1);
    expect([...stored]).toEqual(before);
    const agent = catalog.agent('default', CLERK);
    expect(lines).toEqual([`agent ${CLERK} is degraded`]);
    expect(agent).toMatchObject({
      ...{ packName: 'local.tests', degraded: ['tests:missing'] },
      pinned: {
        agentId: CLERK,
        modelClass: 'reasoning',
        toolAllowlist: ['core:clock', 'tests:missing'],
        confidenceThreshold: 0.6,
      },
    });
    const resolved = JSON.parse(
      stored.get(agent?.pinned.manifestHash ?? '') ?? 'null',
    ) as ResolvedAgent;
    expect(resolved).toMatchObject({
      systemPrompt: 'You file what you are given.\n',
      taskSchema: { required: ['paper'] },
      returnSchema: { required: ['filed'] },
      manifest: agent?.manifest,
    });
    expect(catalog.scripts.get(CLERK)).toMatchObject({ turns: [{ final: { confidence: 0.9 } }] });
  });

  test.each(Object.entries(EDITORS))(
    'definitions, manifests, prompts and schemas are read as an editor saved them: %s',
    async (_, saved) => {
      await cp(join(SAMPLES, 'definitions'), folder, { recursive: true });
      const plain = await load({ agentsDir: folder, fixturesDir: folder });
      const before = [...stored.keys()];
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const file = join(entry.parentPath, entry.name);
        await writeFile(file, saved(await readFile(file, 'utf8')));
      }
      stored.clear();
      const catalog = await load({ agentsDir: folder, fixturesDir: folder });
      expect(catalog.agents('default')).toEqual(plain.agents('default'));
      expect(catalog.definition('default', 'chain')).toEqual(plain.definition('default', 'chain'));
      expect([catalog.fixtures(), [...stored.keys()]]).toEqual([['chain'], before]);
    },
  );

  test.each(Object.entries(NO_TEXT))('what is no text is refused: %s', async (_, bytes) => {
    await writeFile(join(folder, 'none.json'), bytes);
    await writeFile(join(folder, 'clerk.md'), bytes);
    const catalog = await load({ agentsDir: folder, fixturesDir: folder });
    expect(catalog.agents('default')).toEqual([]);
    for (const place of ['none.json skipped: ', 'clerk.agent.json', '/systemPromptRef "clerk.md" '])
      expect(lines.join('\n')).toContain(place);
    expect(lines.filter((line) => /is no.*; save it as UTF-8$/.test(line))).toHaveLength(2);
  });

  test('loading twice gives the same hashes', async () => {
    const [one, two] = [await load({ agentsDir: folder }), await load({ agentsDir: folder })];
    expect(one.agents('default')).toEqual(two.agents('default'));
    expect(stored.size).toBe(1);
  });

  const REFUSED: Record<string, [object, RegExp]> = {
    'neither prompt nor reference': [
      { systemPrompt: undefined },
      /exactly one of the fields systemPrompt, systemPromptRef/,
    ],
    'both prompt and reference': [
      { systemPromptRef: 'clerk.md' },
      /exactly one of the fields systemPrompt, systemPromptRef/,
    ],
    'an unknown field': [{ colour: 'red' }, /\/colour is not a known field/],
    'a host-local id': [{ agentId: 'host:me' }, /\/agentId/],
    'a missing prompt': [
      { systemPrompt: undefined, systemPromptRef: 'none.md' },
      /\/systemPromptRef "none.md" does not exist/,
    ],
    'a missing schema': [
      { handoff: { taskSchemaRef: 'none.json' } },
      /\/handoff\/taskSchemaRef "none.json" does not exist/,
    ],
    'a schema that does not compile': [
      { handoff: { returnSchemaRef: 'bad.json' } },
      /\/handoff\/returnSchemaRef "bad.json".*must be/,
    ],
    'a schema that is no JSON': [
      { handoff: { taskSchemaRef: 'clerk.md' } },
      /\/handoff\/taskSchemaRef "clerk.md" is not JSON/,
    ],
    '[I103] a schema with a number that would change': [
      { handoff: { taskSchemaRef: 'wide.json' } },
      /\/handoff\/taskSchemaRef "wide.json" \/maximum is a number that cannot be kept/,
    ],
    'a path that climbs': [
      { systemPrompt: undefined, systemPromptRef: '../secret.md' },
      /must be a path inside the folder/,
    ],
    'a path that climbs and returns': [
      { systemPrompt: undefined, systemPromptRef: 'schemas/../clerk.md' },
      /must be a path inside/,
    ],
    'an absolute path': [
      { systemPrompt: undefined, systemPromptRef: '/etc/hostname' },
      /must be a path inside the folder/,
    ],
    'a link that leads out': [
      { systemPrompt: undefined, systemPromptRef: 'link.md' },
      /"link.md" leads out of the folder/,
    ],
    'an empty prompt file': [
      { systemPrompt: undefined, systemPromptRef: 'empty.md' },
      /"empty.md" is empty/,
    ],
    'a missing eval suite': [{ evalSuiteRef: 'none' }, /\/evalSuiteRef "none" does not exist/],
    'a skill without handoff': [{ role: 'skill' }, /\/handoff a skill must have it/],
    'a skill with memory': [
      {
        role: 'skill',
        handoff: { taskSchemaRef: 'schemas/task.json' },
        memoryShape: { longTerm: true },
      },
      /\/memoryShape\/longTerm a skill must not have it/,
    ],
  };

  test.each(Object.entries(REFUSED))(
    'RFC 0003: %s: skipped with one line and not listed',
    async (_, [change, line]) => {
      await writeFile(join(folder, 'bad.json'), '{"type":"text"}');
      await writeFile(join(folder, 'wide.json'), '{"maximum":9223372036854775807}');
      await writeFile(join(folder, 'empty.md'), ' \n');
      await symlink('/etc/hostname', join(folder, 'link.md'));
      await manifest(change);
      const catalog = await load({ agentsDir: folder });
      expect(catalog.agents('default')).toEqual([]);
      expect(catalog.scripts.size).toBe(0);
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(line);
      expect(lines[0]).toMatch(/^agent of clerk\.agent\.json skipped: /);
    },
  );

  test('RFC 0003: what an agent needs and does not get is listed as degraded', async () => {
    await manifest({
      requiresCapabilities: ['prompts', 'toolCatalog'],
      memoryShape: { conversation: true, scratchpad: true },
    });
    const catalog = await load({ agentsDir: folder, capabilities: new Set(['prompts']) });
    expect(catalog.agent('default', CLERK)?.degraded).toEqual([
      'toolCatalog',
      'memory.conversation',
    ]);
  });

  test('an absent allowlist pins no tools', async () => {
    await manifest({});
    expect(
      (await load({ agentsDir: folder })).agent('default', CLERK)?.pinned.toolAllowlist,
    ).toEqual([]);
  });

  test('a broken script leaves its agent listed', async () => {
    await writeFile(join(folder, 'clerk.script.json'), '{');
    const catalog = await load({ agentsDir: folder });
    expect([catalog.agents('default').length, catalog.scripts.size]).toEqual([1, 0]);
    expect(lines.some((line) => line.startsWith('clerk.script.json skipped: is not JSON'))).toBe(
      true,
    );
  });

  test('built-in agents come first, the list is sorted by id, and definitions may name all of them', async () => {
    const builtIn: ResolvedAgent = {
      manifest: { agentId: 'core.demo.z', persona: 'Z', modelClass: 'general', systemPrompt: 'x' },
      ...{ packName: 'core.demo', packVersion: '1.0.0', systemPrompt: 'x' },
    };
    const agentNode = (agentId: string) => ({
      ...{
        id: agentId,
        typeId: 'core.agent',
        name: 'n',
        position: { x: 0, y: 0 },
        config: {},
        inputs: {},
      },
      agent: { agentId },
    });
    const definitions = [
      {
        ...{
          id: 'both',
          name: 'n',
          version: '1',
          edges: [],
          triggers: [],
          variables: [],
          metadata: {},
          settings: {},
        },
        nodes: [agentNode(CLERK), agentNode('core.demo.z')] as [
          ReturnType<typeof agentNode>,
          ReturnType<typeof agentNode>,
        ],
      },
    ];
    const catalog = await load({
      agentsDir: folder,
      builtIn: { definitions, agents: [builtIn, builtIn] },
    });
    expect(catalog.agents('default').map((agent) => agent.manifest.agentId)).toEqual([
      'core.demo.z',
      CLERK,
    ]);
    expect(catalog.definitions('default').map((it) => it.id)).toEqual(['both']);
    expect(catalog.fixtures()).toEqual([]);
    expect(lines).toContain('agent of built in skipped: /agentId "core.demo.z" is already loaded');
  });
});
