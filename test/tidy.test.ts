// The rules of the house as a test (architecture §1.1): who may import whom, how large things may be, what may not be
// named or written, what is dead.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PROJECTS, processTestFiles, pureTestFiles } from './support/projects.ts';
import {
  bareLimits,
  functionsOf,
  mentionedPaths,
  readSource,
  repositoryFiles,
  wideMethods,
  type Import,
  type SourceFile,
} from './support/source-tree.ts';

const FILE_LINES = 600;
const FUNCTION_LINES = 70;
const PARAMETERS = 3;

const CODE = ['src', 'workflows', 'activities', 'schemas', 'examples', 'bench', 'test'];
const files = repositoryFiles(...CODE, '*.config.ts', '*.config.js')
  .filter((path) => /\.(ts|js)$/.test(path))
  .map(readSource);
const product = files.filter(({ path }) => !/^(test|bench)\/|\.config\.[tj]s$/.test(path));

/** What a room may import: rooms, packages, and rooms of which it may take types alone. */
interface Room {
  readonly rooms?: readonly string[];
  readonly types?: readonly string[];
  readonly packages?: readonly string[];
  /** Node's own modules. */
  readonly node?: true;
}

const INSIDE = ['src/rules', 'src/wire', 'src/ports'];
/** The shapes of the wire. */
const SHAPES = ['schemas'];

/** The table of architecture §1.1. A room is named by its longest prefix here. */
const ROOMS: Record<string, Room> = {
  schemas: { packages: ['json-schema-to-typescript', 'prettier'], node: true },
  'src/rules': { types: SHAPES, packages: ['@noble/hashes', 're2js'] },
  'src/wire': {
    rooms: ['schemas', 'src/rules'],
    types: ['src/ports'],
    packages: ['ajv', 'ajv-formats', 're2js'],
    node: true,
  },
  'src/ports': { types: [...SHAPES, 'src/rules', '@temporalio/proto'] },
  'src/system': { packages: ['tsx'], node: true },
  'src/translate': { rooms: ['src/rules'], types: ['src/ports', '@temporalio/proto'] },
  'src/log': {
    rooms: ['src/rules', 'src/ports', 'src/translate', 'src/system'],
    types: SHAPES,
    node: true,
  },
  'src/runs': { rooms: [...INSIDE, 'src/log', 'src/system'], types: SHAPES, node: true },
  'src/facade': {
    rooms: [...INSIDE, 'src/log', 'src/runs', 'src/system', 'src/words', 'src/pages'],
    types: SHAPES,
    packages: ['express', 'prom-client'],
    node: true,
  },
  'src/words': { rooms: ['src/rules'], types: SHAPES },
  'src/pages': { rooms: ['src/words'], types: [...SHAPES, 'src/rules'], node: true },
  'src/demo': { types: [...INSIDE, ...SHAPES], node: true },
  'src/adapters/postgres': {
    // The content store has two homes: files with PGlite, a table with PostgreSQL (architecture §3.6).
    rooms: [...INSIDE, 'src/adapters/content', 'src/system'],
    packages: ['pg', '@electric-sql/pglite'],
    node: true,
  },
  'src/adapters/content': { rooms: INSIDE, node: true },
  'src/adapters/catalog': { rooms: INSIDE, types: SHAPES, node: true },
  'src/adapters/temporal': {
    rooms: [...INSIDE, 'src/system'],
    types: ['activities'],
    packages: [
      '@temporalio/client',
      '@temporalio/common',
      '@temporalio/proto',
      '@temporalio/worker',
    ],
    node: true,
  },
  // What both ends of the wire speak: no dependency but types, so that the SDK can leave the house.
  'src/opensentience/messages.ts': { types: SHAPES },
  'src/opensentience/frame.ts': { rooms: ['src/opensentience/messages.ts'], node: true },
  'src/opensentience': {
    rooms: [...INSIDE, 'src/system', 'src/opensentience'],
    types: SHAPES,
    node: true,
  },
  'src/agent-sdk': {
    rooms: ['src/opensentience/messages.ts', 'src/opensentience/frame.ts'],
    packages: ['ajv', 'ajv-formats', 'json-schema-to-ts'],
    node: true,
  },
  // Agents know the SDK and what they bring themselves.
  // As an agent elsewhere would be: by the package's name.
  examples: { packages: ['openwop-temporal', 'node-sqlite3-wasm'], node: true },
  // Knows only the HTTP API.
  'src/cli': {
    // Of the system the pace of trying again alone, of the rules how a person's file is read.
    rooms: ['src/words', 'src/system/time.ts', 'src/rules/file-text.ts'],
    types: [...SHAPES, 'src/rules'],
    packages: ['commander'],
    node: true,
  },
  'src/adapters/models': {
    rooms: INSIDE,
    types: SHAPES,
    packages: ['eventsource-parser', 'undici', 'openai', '@anthropic-ai/sdk'],
    node: true,
  },
  'src/adapters/tools': { rooms: INSIDE, node: true },
  // Called many times an hour: it loads no adapter.
  'src/app/openwop.ts': {
    rooms: ['src/cli', 'src/app/data-folder.ts', 'src/app/defaults.ts'],
    node: true,
  },
  // Before anything is compiled.
  'src/app/compile.js': { packages: ['esbuild'], node: true },
  'src/app': {
    rooms: ['src', 'workflows', 'activities'],
    types: SHAPES,
    packages: ['@temporalio/worker', '@temporalio/client', '@temporalio/common'],
    node: true,
  },
  workflows: {
    rooms: ['src/rules'],
    types: [...SHAPES, 'activities'],
    packages: ['@temporalio/workflow', '@temporalio/common'],
  },
  activities: {
    rooms: [...INSIDE, 'src/runs', 'src/system'],
    packages: ['@temporalio/activity', '@temporalio/common'],
    node: true,
  },
};

function roomOf(path: string): string {
  const names = Object.keys(ROOMS).filter((name) => path === name || path.startsWith(`${name}/`));
  return names.sort((a, b) => b.length - a.length)[0] ?? path;
}

function within(target: string, names: readonly string[] = []): boolean {
  return names.some((name) => target === name || target.startsWith(`${name}/`));
}

function mayImport(from: SourceFile, { target, inside, typeOnly }: Import): boolean {
  const name = roomOf(from.path);
  const room = ROOMS[name];
  if (!room) return false;
  if (target.startsWith('node:')) return room.node === true;
  if (inside && roomOf(target) === name) return true;
  if (typeOnly && within(target, room.types)) return true;
  return inside ? within(target, room.rooms) : within(target, room.packages);
}

describe('import arrows (architecture §1.1)', () => {
  // [I45]
  it('every room imports only what its row names', () => {
    const wrong = product.flatMap((file) =>
      file.imports
        .filter((one) => !mayImport(file, one))
        .map((one) => `${file.path} -> ${one.target}`),
    );
    expect(wrong).toEqual([]);
  });
  it('the rule refuses what it should: a guard for this test', () => {
    const core = product.find(({ path }) => path === 'src/rules/ids.ts') as SourceFile;
    const one = (target: string, typeOnly = false): Import => ({
      target,
      typeOnly,
      inside: target.includes('/') && !target.startsWith('node:'),
    });
    expect(mayImport(core, one('src/facade/app.ts'))).toBe(false);
    expect(mayImport(core, one('node:fs'))).toBe(false);
    expect(mayImport(core, one('src/wire/render.ts'))).toBe(false);
    expect(mayImport(core, one('schemas/types.generated.ts', true))).toBe(true);
  });
  it('imports inside the repository name the file with its extension, and it exists', () => {
    const known = new Set(files.map(({ path }) => path));
    const data = new Set(repositoryFiles(...CODE));
    const wrong = files.flatMap((file) =>
      file.imports
        .filter(({ inside, target }) => inside && !known.has(target) && !data.has(target))
        .map(({ target }) => `${file.path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
  });
  it('the store of logs is seen by the log, by activities that stream and by who composes them', () => {
    const may = ['src/ports', 'src/adapters/postgres', 'src/log', 'activities'];
    const seen = product.filter(
      ({ path, text }) => /\bLogStore\b/.test(text) && !within(path, may),
    );
    const reached = product.filter(
      ({ path, text }) => /\bstores\.log\b/.test(text) && !within(path, may),
    );
    expect([...seen, ...reached].map(({ path }) => path)).toEqual([]);
  });
  it('of the routes streams alone are given the response', () => {
    const routes = product.filter(({ path }) => path.startsWith('src/facade/routes/'));
    const given = routes.filter(({ text }) => /\bresponse\b|from 'express'/.test(text));
    const streams = routes.filter(({ text }) => /\bstreamed\(/.test(text));
    expect(given.map(({ path }) => path)).toEqual(streams.map(({ path }) => path));
    expect(streams).not.toEqual([]);
  });
  it('an operation is named where it is declared', () => {
    const facade = product.filter(({ path }) => path.startsWith('src/facade/'));
    // A name of one word (`health`) is a word for other things, too.
    const names = facade.flatMap(({ text }) =>
      [...text.matchAll(/\boperationId: '(\w*[A-Z]\w*)'/g)].map(([, name = '']) => name),
    );
    const places = (name: string) => facade.filter(({ text }) => text.includes(`'${name}'`));
    expect(names.filter((name) => places(name).length > 1)).toEqual([]);
    expect(names.length).toBeGreaterThan(15);
  });
  it('a run is named in one place', () => {
    const named = product.filter(({ text }) => /\bas (unknown as )?Run(Ref|Row)\b/.test(text));
    expect(named.map(({ path }) => path)).toEqual(['src/adapters/postgres/run-ref.ts']);
  });
  it('nothing is passed off as all that the facade is built from', () => {
    // Put together here, so that this file does not find itself.
    const pretended = new RegExp(`\\bas (unknown as )?${'Facade'}Deps\\b`);
    expect(files.filter(({ text }) => pretended.test(text)).map(({ path }) => path)).toEqual([]);
  });
  it('there are no cycles', () => expect(cycles(product)).toEqual([]));
});

/** Cycles over imports of values: types vanish before anything runs. */
function cycles(all: readonly SourceFile[]): string[] {
  const next = new Map(
    all.map((file) => [
      file.path,
      file.imports.filter((one) => one.inside && !one.typeOnly).map(({ target }) => target),
    ]),
  );
  const done = new Set<string>();
  const found: string[] = [];
  const walk = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path);
    if (at >= 0) found.push([...way.slice(at), path].join(' -> '));
    if (at >= 0 || done.has(path)) return;
    for (const target of next.get(path) ?? []) walk(target, [...way, path]);
    done.add(path);
  };
  for (const { path } of all) walk(path, []);
  return found;
}

describe('size and shape', () => {
  const generated = (path: string) => path.endsWith('.generated.ts');
  it(`no file is longer than ${FILE_LINES} lines`, () => {
    const long = files.filter(({ path, lines }) => !generated(path) && lines > FILE_LINES);
    expect(long.map(({ path, lines }) => `${path}: ${lines}`)).toEqual([]);
  });
  it(`no function is longer than ${FUNCTION_LINES} lines`, () => {
    const long = product.flatMap(functionsOf).filter(({ lines }) => lines > FUNCTION_LINES);
    expect(long.map(({ where, lines }) => `${where}: ${lines}`)).toEqual([]);
  });
  it(`no function takes more than ${PARAMETERS} parameters`, () => {
    const ports = product.filter(({ path }) => path.startsWith('src/ports'));
    const ofPorts = new Set(ports.flatMap((file) => [...wideMethods(file, PARAMETERS)]));
    const wide = product.flatMap(functionsOf).filter(
      // A port's method has the port's parameters, and Express knows an error handler by its fourth.
      ({ name, parameters }) =>
        parameters.length > PARAMETERS &&
        !ofPorts.has(name) &&
        // A sink's function gets Temporal's workflow info before its own arguments.
        name !== 'fn' &&
        !(parameters.length === 4 && /^_?next$/.test(parameters[3] ?? '')),
    );
    expect(wide.map(({ where, name }) => `${where} ${name}`)).toEqual([]);
  });
  it('every file opens with a comment that says what it is for', () => {
    const silent = files.filter(({ text }) => !/^(#!.*\n)?\/[/*]/.test(text));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });
});

/** What Temporal offers to workflow code that waits, calls, listens or draws lots. */
const TEMPORAL_REACHES = new Set([
  ...['condition', 'sleep', 'setHandler', 'currentUpdateInfo', 'uuid4'],
  ...['scheduleActivity', 'scheduleLocalActivity', 'proxyActivities', 'proxyLocalActivities'],
  ...['startChild', 'executeChild', 'getExternalWorkflowHandle', 'defineSignal', 'defineUpdate'],
]);
const LANGUAGE_REACHES =
  /\bDate\.now\b|\bnew Date\b|\bMath\.random\b|\bperformance\.|\bcrypto\.|\bset(?:Timeout|Interval|Immediate)\b/g;

function reachesOf({ text }: SourceFile): string[] {
  const imported = [...text.matchAll(/import \{([^}]*)\} from '@temporalio\/workflow'/g)]
    .flatMap(([, names = '']) => names.split(','))
    .map((name) => name.trim().replace(/ as .*/, ''));
  return [
    ...imported.filter((name) => TEMPORAL_REACHES.has(name)),
    ...(text.match(LANGUAGE_REACHES) ?? []),
  ];
}

describe('names and words', () => {
  it('no file or folder is called after nothing', () => {
    const empty = /^(utils?|helpers?|commons?|managers?|services?)$/;
    const named = files.filter(({ path }) =>
      path.split('/').some((part) => part.split(/[.-]/).some((word) => empty.test(word))),
    );
    expect(named.map(({ path }) => path)).toEqual([]);
  });
  it('file names are kebab-case', () => {
    const odd = files.filter(
      ({ path }) => !/^[a-z0-9]+([.-][a-z0-9]+)*$/.test(path.split('/').at(-1) ?? ''),
    );
    expect(odd.map(({ path }) => path)).toEqual([]);
  });
  it('nothing is left for later', () => {
    // Put together here, so that this file does not find itself.
    const later = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`);
    expect(files.filter(({ text }) => later.test(text)).map(({ path }) => path)).toEqual([]);
  });
  it('only src/app reads the environment', () => {
    // Others are set, for packages that read them.
    const reads = /process\.env(?!\.\w+ (\?\?)?= )/;
    const readers = product.filter(
      ({ path, text }) => !path.startsWith('src/app/') && reads.test(text),
    );
    expect(readers.map(({ path }) => path)).toEqual([]);
  });
  it('[I107] TypeScript runs by src/system/typescript.js alone, whose cache is off', () => {
    const byTsx = /--import[ =]tsx|'--import', 'tsx|"--import", "tsx/;
    const strays = repositoryFiles('.').filter(
      (path) =>
        !/^(test\/mutants\/|test\/tidy|package-lock)/.test(path) &&
        byTsx.test(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')),
    );
    expect(strays).toEqual([]);
  });
  it('[I107] the tools that keep compiled code in the temporary folder do not', () => {
    const { scripts } = JSON.parse(
      readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
    ) as { scripts: Record<string, string> };
    const tools = Object.values(scripts).filter((script) => !script.includes('node '));
    const keeps = /^NODE_DISABLE_COMPILE_CACHE=1 (tsc|eslint|prettier) |^JITI_FS_CACHE=false knip /;
    expect(tools.filter((script) => !keeps.test(`${script} `))).toEqual([
      expect.stringMatching(/^npm run -s types && /),
    ]);
  });
  // [I44]
  it('workflow code reaches time, the world and people through live Steps alone (architecture §4)', () => {
    const LIVE = 'workflows/live-steps.ts';
    // No run: it states nothing, and is never forked.
    const COHORT = 'workflows/cohort.ts';
    const workflows = product.filter(({ path }) => path.startsWith('workflows/'));
    const reached = new Map(workflows.map((file) => [file.path, reachesOf(file)]));
    expect(reached.get(LIVE)).not.toEqual([]);
    reached.delete(LIVE);
    reached.delete(COHORT);
    expect([...reached].filter(([, found]) => found.length > 0)).toEqual([]);
  });
  it('rests, limits and the pace of trying again are those of src/system/time.ts', () => {
    // The SDK leaves the house, and its examples are programs of their own (architecture §1.1).
    const own = /^(src\/system\/time|src\/agent-sdk\/.*|examples\/.*)\.ts$/;
    const byHand = /from '(node:)?timers\/promises'|\b2 \*\* /;
    const strays = product.filter(({ path, text }) => !own.test(path) && byHand.test(text));
    expect(strays.map(({ path }) => path)).toEqual([]);
  });

  it('a word that stands for a value is made in one place', () => {
    const strays = product.filter(
      ({ path, text }) =>
        path !== 'src/rules/redaction.ts' &&
        /['"`]\[(redacted|sensitive|hidden|masked|secret)\b/i.test(text),
    );
    expect(strays.map(({ path }) => path)).toEqual([]);
  });

  it('there are no default exports', () => {
    const defaults = product.filter(({ text }) => /^export default /m.test(text));
    expect(defaults.map(({ path }) => path)).toEqual([]);
  });
});

describe('limits of tests', () => {
  it('each that ends a wait goes by the machine (test/support/machine.ts)', () => {
    const tests = files.filter(({ path }) => path.startsWith('test/'));
    expect(tests.flatMap(bareLimits)).toEqual([]);
  });
});

/** Not among those that start processes, though they start a program of the product. */
const STARTS_ELSEWHERE = [
  // Runs where nothing but Java can be had: all that starts processes is skipped there.
  'test/app/in-memory.test.ts',
  // One short command that asks a scripted host.
  'test/cli/agents.test.ts',
  'test/cli/runs.test.ts',
];

describe('projects of tests (test/support/projects.ts)', () => {
  const tests = files.filter(({ path }) => /^test\/.*\.test\.ts$/.test(path));
  it('each row is there', () => {
    const rows = Object.values(PROJECTS).flatMap(({ include, exclude }) => [
      ...include,
      ...exclude,
    ]);
    const isThere = (row: string) => {
      const [folder = ''] = row.split('**');
      return tests.some(({ path }) => path === row || (folder !== row && path.startsWith(folder)));
    };
    expect([...new Set(rows)].filter((row) => !isThere(row))).toEqual([]);
  });
  it('what starts programs is among those that start processes', () => {
    const starts =
      /\b(spawnHost|spawnCommand|programArgs|startHalf)\(|launch\.js\b|support\/(walk|faults\/system)\.ts'/;
    const processes = processTestFiles();
    const strays = tests.filter(({ path, text }) => starts.test(text) && !processes.includes(path));
    expect(strays.map(({ path }) => path)).toEqual(STARTS_ELSEWHERE);
  });
  it('what runs workflow code on plain Node is among those without a server', () => {
    const isPlain = /support\/plain-(run|sandbox)\.ts'/;
    const pure = pureTestFiles();
    const strays = tests.filter(({ path, text }) => isPlain.test(text) && !pure.includes(path));
    expect(strays.map(({ path }) => path)).toEqual([]);
  });
});

describe('nothing is dead', () => {
  const { scripts, bin } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  ) as Record<'scripts' | 'bin', Record<string, string>>;
  const checks = repositoryFiles('.ci').map((path) => readFileSync(path, 'utf8'));
  /** Programs of src/app that a text starts by its launcher. */
  const launched = (text: string): string[] =>
    [...text.matchAll(/(?:launch\.js |LAUNCHER, ')([a-z-]+)/g)].map(
      ([, name = '']) => `src/app/${name}.ts`,
    );
  const commands = new Set(
    [...Object.values(scripts), ...Object.values(bin), ...checks].flatMap((command) => [
      ...command.split(/\s/),
      ...launched(command),
    ]),
  );
  const ENTRIES =
    /^examples\/(?:[^/]+\/){1,2}agent\.ts$|^workflows\/(index|interceptors)\.ts$|^test\/.*\.(test|campaign)\.ts$|^test\/support\/(global-setup|setup-databases|each-file)\.ts$|^test\/runner\/reporter\.ts$|\.config\.[tj]s$/;
  it('every file is reached from a command, a test or the tools', () => {
    const byPath = new Map(files.map((file) => [file.path, file]));
    const reached = new Set(
      files.map(({ path }) => path).filter((path) => ENTRIES.test(path) || commands.has(path)),
    );
    for (const path of reached) {
      const file = byPath.get(path);
      if (!file) continue;
      for (const { target, inside } of file.imports) if (inside) reached.add(target);
      for (const target of [...mentionedPaths(file), ...launched(file.text)]) reached.add(target);
    }
    expect(files.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([]);
  });
  it('every schema is used by name', () => {
    const schemas = repositoryFiles('schemas').filter((path) => path.endsWith('.schema.json'));
    const text = files.map((file) => file.text).join('\n');
    const unused = schemas.filter((path) => {
      const name = path.split('/').at(-1)?.replace('.schema.json', '') ?? '';
      return !new RegExp(`['"\`/:]${name}(\\.schema\\.json)?['"\`]`).test(text);
    });
    expect(unused).toEqual([]);
  });
});
