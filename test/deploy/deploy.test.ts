// What the container files and the README name exists in the code: there is no container engine in the tests, so
// every file, command, variable and port is compared with its source.
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadCatalog } from '../../src/adapters/catalog/index.ts';
import { coreTools } from '../../src/adapters/tools/core-tools.ts';
import { createTools } from '../../src/adapters/tools/index.ts';
import type { ContentStore } from '../../src/ports/content.ts';
import { readMigrations } from '../../src/adapters/postgres/migrate.ts';
import { exitLimitMs } from '../../src/app/command.ts';
import { readConfig } from '../../src/app/config.ts';
import { STOP_LIMITS } from '../../src/app/parts.ts';
import { EARLY_ROLES, LATE_ROLES } from '../../src/app/roles.ts';
import { nodeTypesOf } from '../../src/rules/capabilities.ts';
import { TRANSLATE_VERSION } from '../../src/rules/run-input.ts';
import { ROOT } from '../support/root.ts';
import { readSource, repositoryFiles } from '../support/source-tree.ts';

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_add?: readonly string[];
  readonly mem_limit?: string;
  readonly pids_limit?: number;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly stop_grace_period?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

const read = (path: string) => readFileSync(ROOT + path, 'utf8');
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
};
const services = Object.entries(compose.services);
const dockerfile = read('Dockerfile');
const packageJson = JSON.parse(read('package.json')) as {
  version: string;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  engines: { node: string };
};
const appSources = repositoryFiles('src/app')
  .map((path) => read(path))
  .join('\n');

const SECRETS: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: 'secret123',
  OPENWOP_API_KEY: 'k'.repeat(24),
};

const VARIABLE = /\b(?:OPENWOP|OPENAI|ANTHROPIC|TEMPORAL)_[A-Z_]+\b|\bDATABASE_URL\b/g;

/** One variable for each class of models: the code reads the first part, the README names it with an underscore behind. */
const CLASS_OF_MODELS = /^([A-Z]+_MODEL)_(?!PROVIDER)[A-Z]+$/;

/** Those that the table of the configuration names. */
function variablesOfReadme(): string[] {
  const table = read('README.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  return [...new Set(table.flatMap((line) => line.split('|')[1]?.match(VARIABLE) ?? []))];
}

/** With the secrets filled in, and the defaults of everything else. */
function filled(text: string): string {
  return text.replace(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, variable: string, kind: string | undefined, rest: string | undefined) =>
      SECRETS[variable] ?? (kind === '-' ? (rest ?? '') : ''),
  );
}

/** Folders of this machine that a service sees, by their place in it. */
function mountsOf({ volumes = [] }: Service): Map<string, { source: string; mode: string }> {
  const mounts = volumes
    .map((volume) => filled(volume).split(':'))
    .filter(([source]) => source?.startsWith('.'))
    .map(([source = '', target = '', mode = ''] = []) => [target, { source, mode }] as const);
  return new Map(mounts);
}

/** The values of a service; folders are where they are on this machine. */
function environmentOf(service: Service): Record<string, string> {
  const mounts = mountsOf(service);
  const values = Object.entries(service.environment ?? {}).map(([name, value]) => {
    const mount = mounts.get(value);
    return [name, mount ? ROOT + mount.source : filled(value)];
  });
  return Object.fromEntries(values) as Record<string, string>;
}

describe('docker-compose.yml', () => {
  it('has the parts of production (architecture §7)', () => {
    expect(Object.keys(compose.services).sort()).toEqual([
      'facade',
      'postgres',
      'temporal',
      'temporal-ui',
      'worker',
      'worker-next',
    ]);
  });
  it.each(services.filter(([, { build }]) => !build))(
    '%s: the image has a pinned version',
    (_, service) => {
      expect(service.image).toMatch(/^[a-z/-]+:\d+\.\d+(\.\d+)?$/);
    },
  );
  it.each(services)(
    '%s: has no capabilities, gets no privileges, and is bounded',
    (name, service) => {
      expect(service).toMatchObject({
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        restart: 'unless-stopped',
      });
      expect(service.cap_add === undefined).toBe(name !== 'postgres');
      // The images of Temporal write their configuration when they start.
      expect(service.read_only === true).toBe(!name.startsWith('temporal'));
      expect(filled(String(service.mem_limit))).toMatch(/^\d+[gm]$/);
      expect(service.pids_limit).toBeGreaterThan(0);
    },
  );
  it.each(services.filter(([, { build }]) => build))(
    '%s: writes to its own folders alone',
    (_, service) => {
      const { OPENWOP_DATA_DIR, OPENWOP_CACHE_DIR } = imageEnvironment();
      expect(service.volumes).toEqual(
        expect.arrayContaining([OPENWOP_DATA_DIR, OPENWOP_CACHE_DIR]),
      );
      // Where a socket lies whose path would be too long.
      expect(service.tmpfs).toEqual(['/tmp']);
    },
  );
  it.each(services)('%s: waits for services that tell their health', (_, service) => {
    for (const [name, { condition }] of Object.entries(service.depends_on ?? {})) {
      expect(condition).toBe('service_healthy');
      expect(compose.services[name]?.healthcheck?.test.length).toBeGreaterThan(0);
    }
  });
  it('named volumes are declared', () => {
    const named = services
      .flatMap(([, { volumes = [] }]) => volumes.map((one) => filled(one).split(':')[0] ?? ''))
      .filter((source) => !/^[./]/.test(source));
    expect(Object.keys(compose.volumes)).toEqual([...new Set(named)]);
  });
  it('nothing but the API and the UI is published, and only to this machine', () => {
    const ports = services.flatMap(([, service]) => service.ports ?? []);
    expect(ports).toEqual(['127.0.0.1:8233:8080', '127.0.0.1:8787:8787']);
  });
  it.each(['facade', 'worker'])(
    '%s: its command is the one of package.json, and its file exists',
    (name) => {
      const command = compose.services[name]?.command ?? [];
      const script = name === 'facade' ? 'serve' : 'worker';
      // No shell starts it here, and the image has the variable.
      const [, started] =
        /^MALLOC_ARENA_MAX=\S+ exec (.*)$/.exec(packageJson.scripts[script] ?? '') ?? [];
      expect(command.join(' ')).toBe(started);
      expect(existsSync(ROOT + (command.at(-2) ?? ''))).toBe(true);
      expect(existsSync(`${ROOT}src/app/${command.at(-1)}.ts`)).toBe(true);
    },
  );
  it('docs/upgrades.md: the next build runs beside the other, when it is asked for', () => {
    const [worker, next] = [compose.services.worker, compose.services['worker-next']];
    expect(next).toEqual({
      ...worker,
      profiles: ['rollout'],
      image: 'openwop-temporal:${OPENWOP_NEXT_BUILD_ID:-next}',
      environment: {
        ...worker?.environment,
        OPENWOP_BUILD_ID: '${OPENWOP_NEXT_BUILD_ID:-next}',
      },
    });
  });
  it.each(['facade', 'worker', 'worker-next'])('%s: the host takes its configuration', (name) => {
    const config = readConfig({
      ...environmentOf(compose.services[name] ?? {}),
      ...imageEnvironment(),
    });
    expect(config).toMatchObject({
      http: { host: '0.0.0.0', port: 8787 },
      database: { kind: 'postgres', url: 'postgres://openwop:secret123@postgres:5432/openwop' },
      temporal: { kind: 'external', address: 'temporal:7233' },
    });
  });
  it.each(['facade', 'worker'])(
    '%s: definitions and agents are folders that exist, are not written to, and load',
    async (name) => {
      const service = compose.services[name] ?? {};
      const { fixturesDir, agentsDir } = readConfig({
        ...environmentOf(service),
        ...imageEnvironment(),
      });
      for (const { source, mode } of mountsOf(service).values()) {
        expect(statSync(ROOT + source).isDirectory(), source).toBe(true);
        expect(mode).toBe('ro');
      }
      const notes: string[] = [];
      const note = (message: string) => void notes.push(message);
      const tools = createTools(coreTools());
      const catalog = await loadCatalog({
        fixturesDir,
        agentsDir,
        builtIn: { definitions: [], agents: [] },
        content: namesOnly,
        tenant: 'default',
        tools,
        logger: { debug: note, info: () => {}, warn: note, error: note },
      });
      expect(notes).toEqual([]);
      const started = /"workflowId":"([\w-]+)"/.exec(read('docker-compose.yml'))?.[1] ?? '';
      expect(catalog.definition('default', started)?.nodes.length).toBeGreaterThan(0);
      expect(catalog.agents('default').map(({ degraded }) => degraded)).toEqual([[]]);
    },
  );
  it('halves of one deployment can run the same', () => {
    const { facade, worker } = compose.services;
    expect(worker?.volumes).toEqual(facade?.volumes);
    const { OPENWOP_HEALTH_PORT: healthPort, ...shared } = worker?.environment ?? {};
    expect(shared).toEqual(facade?.environment);
    // One that tells its health by the API has no other port.
    expect(worker?.healthcheck?.test.at(-1)).toContain(`127.0.0.1:${healthPort}/healthz`);
  });
  it.each(['facade', 'worker'])(
    'the %s is given the time that its parts may take to stop',
    (half) => {
      const { database, reads, connection } = STOP_LIMITS;
      const limits = [...EARLY_ROLES, ...LATE_ROLES]
        .filter((role) => role.half === half || role.half === 'both')
        .map(({ stopLimitMs }) => stopLimitMs);
      // Histories and logs are read by one part each; the stores are watched.
      const parts = [...limits, database, database, connection, reads, reads];
      const stopLimitMs = parts.reduce((sum, limitMs) => sum + limitMs, 0);
      const grace = /^(\d+)s$/.exec(compose.services[half]?.stop_grace_period ?? '');
      expect(Number(grace?.[1]) * 1_000).toBeGreaterThanOrEqual(exitLimitMs({ stopLimitMs }));
    },
  );

  it('what is set from outside and has no default stops the start instead of being empty', () => {
    const text = read('docker-compose.yml');
    for (const [, variable = ''] of text.matchAll(/\$\{(\w+)\}/g))
      expect(text).toContain(`\${${variable}:?`);
  });
  it('a folder that is a volume in the container belongs to the user of the image', () => {
    const own = services
      .flatMap(([, { volumes = [] }]) => volumes)
      .filter((volume) => volume.startsWith('/'));
    const { OPENWOP_DATA_DIR, OPENWOP_CACHE_DIR } = imageEnvironment();
    expect(new Set(own)).toEqual(new Set([OPENWOP_DATA_DIR, OPENWOP_CACHE_DIR]));
    expect(dockerfile).toContain(
      `RUN mkdir -p ${OPENWOP_DATA_DIR} ${OPENWOP_CACHE_DIR} && chown -R node:node /home/node\n`,
    );
  });
  it('every variable of the host is one that the code reads', () => {
    const names = Object.keys({ ...compose.services.facade?.environment, ...imageEnvironment() });
    const readAs = (name: string) => name.replace(CLASS_OF_MODELS, '$1');
    const unread = names.filter((name) => !appSources.includes(`'${readAs(name)}'`));
    const notOurs = ['NODE_ENV', 'MALLOC_ARENA_MAX'];
    expect(unread.filter((name) => !notOurs.includes(name))).toEqual([]);
  });
  it('what operators choose is passed on', () => {
    const names = Object.keys({ ...compose.services.facade?.environment, ...imageEnvironment() });
    const given = new Set([...names, ...names.map((name) => name.replace(CLASS_OF_MODELS, '$1_'))]);
    /** Other values than these need another deployment: an image with agents in it, a cluster elsewhere, a secret. */
    const fixed =
      /^OPENWOP_(OPENSENTIENCE|PORT|HEALTH_PORT|CACHE|TEMPORAL|TEST)|^TEMPORAL_(API_KEY|TLS)|_FILE$/;
    const variables = variablesOfReadme().filter((name) => !fixed.test(name));
    expect(variables.filter((name) => !given.has(name))).toEqual([]);
  });
  it('commands and checks are lists of text: YAML made nothing else of them', () => {
    for (const [, { command = [], healthcheck }] of services)
      for (const word of [...command, ...(healthcheck?.test ?? [])])
        expect(word).toBeTypeOf('string');
  });
  it.each([
    ['facade', 'src/facade/routes/health.ts'],
    ['worker', 'src/facade/listen-health.ts'],
  ])('the health check of the %s asks an address that exists', (service, file) => {
    const [path] =
      /\/[a-z]+(?=')/.exec(compose.services[service]?.healthcheck?.test.at(-1) ?? '') ?? [];
    expect(read(file)).toContain(`'${path}'`);
  });
});

/** Names what it is given and keeps nothing: a catalog that is loaded and not run reads nothing back. */
const namesOnly: Pick<ContentStore, 'put'> = {
  put: (_tenant, bytes) =>
    Promise.resolve(`sha256:${createHash('sha256').update(bytes).digest('hex')}`),
};

function imageEnvironment(): Record<string, string> {
  const [block = ''] = /^ENV (?:.*\\\n)*.*$/m.exec(dockerfile) ?? [];
  const pairs = [...block.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  return Object.fromEntries(pairs) as Record<string, string>;
}

describe('Dockerfile', () => {
  it('copies what exists and .dockerignore lets through', () => {
    const copied = [...dockerfile.matchAll(/^COPY (.+) \S+$/gm)].flatMap(
      ([, names]) => names?.split(' ') ?? [],
    );
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'));
    expect(copied.filter((path) => !existsSync(ROOT + path))).toEqual([]);
    expect(allowed.map((line) => line.slice(1)).sort()).toEqual([...copied].sort());
  });
  it('copies every folder that the commands import from', () => {
    const copied = [...dockerfile.matchAll(/^COPY (\w+) \S+$/gm)].map(([, name]) => name);
    const used = new Set(
      repositoryFiles('src', 'workflows', 'activities')
        .filter((path) => /\.[tj]s$/.test(path))
        .flatMap((path) => readSource(path).imports)
        .filter(({ inside }) => inside)
        .map(({ target }) => target.split('/')[0]),
    );
    expect(copied).toEqual(expect.arrayContaining([...used]));
  });
  it('installs without development packages: what runs is a dependency', () => {
    const used = repositoryFiles('src', 'workflows', 'activities')
      .filter((path) => /\.[tj]s$/.test(path))
      .flatMap((path) => readSource(path).imports)
      .filter(({ inside, target, typeOnly }) => !inside && !typeOnly && !target.startsWith('node:'))
      .map(({ target }) => target);
    const missing = [...new Set(used)].filter(
      (name) => !Object.hasOwn(packageJson.dependencies, name),
    );
    expect(missing).toEqual([]);
    expect(packageJson.dependencies).toHaveProperty('tsx');
  });
  it('does not run as root, on a Debian with glibc', () => {
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile).toMatch(/^FROM node:24\.\d+\.\d+-bookworm-slim$/m);
  });
});

describe('commands and documents', () => {
  it('.ci/run can be run', () => expect(statSync(`${ROOT}.ci/run`).mode & 0o111).not.toBe(0));
  it.each(Object.entries(packageJson.scripts))('npm run %s: the file exists', (_, script) => {
    const [, program] = /src\/app\/launch\.js ([\w-]+)$/.exec(script) ?? [];
    const [named] = /(?:src|test|schemas|bench)\/[\w./-]+\.ts/.exec(script) ?? [];
    const file = program === undefined ? named : `src/app/${program}.ts`;
    if (file) expect(existsSync(ROOT + file), file).toBe(true);
    else expect(script).not.toContain('.ts');
  });
  it('the README, the lockfile and the image agree with the versions of Node that package.json names', () => {
    const { node } = packageJson.engines;
    const lock = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { engines: unknown }>;
    };
    expect(lock.packages['']?.engines).toEqual({ node });
    const lines = node.split(' || ').map((range) => /^\^(\d+)\.(\d+)\.0$/.exec(range));
    const [sentence = ''] = /^Node \d[^;]+ is needed/m.exec(read('README.md')) ?? [];
    const words = lines.map((line) =>
      line?.[2] === '0' ? line[1] : `${line?.[1]} (from ${line?.[1]}.${line?.[2]})`,
    );
    expect(sentence).toBe(`Node ${words.slice(0, -1).join(', ')} or ${words.at(-1)} is needed`);
    expect(lines.map((line) => line?.[1])).toContain(/^FROM node:(\d+)/m.exec(dockerfile)?.[1]);
  });
  it('the README names exactly the variables that the code reads', () => {
    const readers = ['config.ts', 'model-settings.ts', 'cache-folder.js']
      .map((file) => read(`src/app/${file}`))
      .join('\n');
    const known = new Set(readers.match(VARIABLE) ?? []);
    expect(variablesOfReadme().sort()).toEqual(
      [...known].filter((name) => !/_VARIABLES$/.test(name)).sort(),
    );
  });
  it.each(['start', 'serve', 'worker'])(
    'npm run %s bounds the arenas of glibc, of which each thread would have one of its own: an operator may choose others',
    (name) => {
      const line = packageJson.scripts[name]?.replace(/ node .*$/, ' printenv MALLOC_ARENA_MAX');
      const told = (given: Record<string, string>) =>
        execFileSync('sh', ['-c', line ?? ''], {
          env: { PATH: process.env.PATH, ...given },
          encoding: 'utf8',
        }).trim();
      expect(told({})).toBe('2');
      expect(told({ MALLOC_ARENA_MAX: '7' })).toBe('7');
      expect(dockerfile).toMatch(/^ +MALLOC_ARENA_MAX=2$/m);
    },
  );
  it('migrations are numbered from 1 without a gap', async () => {
    const versions = (await readMigrations()).map(({ version }) => version);
    expect(versions).toEqual(versions.map((_, at) => at + 1));
  });
  it('until the first release there is one schema, and one translation of a history: both are changed in place', async () => {
    const isUnreleased = read('CHANGELOG.md').includes(
      `\n## ${packageJson.version} – unreleased\n`,
    );
    const isBeforeTheFirst = isUnreleased && packageJson.version === '0.1.0';
    const numbers = [(await readMigrations()).length, TRANSLATE_VERSION];
    expect(isBeforeTheFirst ? numbers : [1, 1]).toEqual([1, 1]);
  });

  it('the README names exactly the node kinds that a definition may use', () => {
    const [, named = ''] = /^Node kinds: ([^]*?)\.$/m.exec(read('README.md')) ?? [];
    expect([...named.matchAll(/`([^`]+)`/g)].map(([, type]) => type).sort()).toEqual(
      [...nodeTypesOf({ testMode: false })].sort(),
    );
  });
  it('the dev server is of the release of Temporal that compose runs', () => {
    const [, release] = /go\.temporal\.io\/server v(\S+)/.exec(read('dev-server/go.mod')) ?? [];
    expect(compose.services.temporal?.image).toBe(`temporalio/auto-setup:${release}`);
  });
  it('every file that a document links to exists', () => {
    const broken = ['README.md', 'SECURITY.md', 'CHANGELOG.md'].flatMap((path) =>
      [...read(path).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map(([, target]) => target ?? '')
        .filter((target) => !existsSync(ROOT + target))
        .map((target) => `${path} -> ${target}`),
    );
    expect(broken).toEqual([]);
  });
});
