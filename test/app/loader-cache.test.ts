// No program of the product runs code from a folder that another user of the machine may write. tsx, which runs TypeScript,
// keeps compiled sources in the temporary folder: each case fills that, puts code of its own into every file, sees that plain
// tsx runs it, and then takes one of our ways in. And tools read settings, which can be programs, in each folder above theirs.
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openPglite } from '../../src/adapters/postgres/pglite.ts';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import { compile } from '../../src/app/compile.js';
import { launchProcess } from '../../src/opensentience/process/launch.ts';
import { TYPESCRIPT } from '../../src/system/compiled.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { ROOT } from '../support/root.ts';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'openwop-loader-'));
const places = mkdtempSync(join(folder, 'tmp-'));
/** Times that plain tsx is run until its cache is whole. */
const FILLS = 20;
const TSX = import.meta.resolve('tsx');
afterAll(() => rmSync(folder, { recursive: true }));
// Whoever started the tests by our loader has turned the cache off for all that it starts.
beforeEach(() => void vi.stubEnv('TSX_DISABLE_CACHE', undefined));
afterEach(() => void vi.unstubAllEnvs());

/** All that a process of ours gets here: its temporary folder is the poisoned one. */
const environment = (place: string) => ({ PATH: process.env.PATH, TMPDIR: place });

interface Poisoned {
  readonly place: string;
  /** True: its code ran since the last question. */
  readonly hasRun: () => boolean;
}

/** A temporary folder with what plain tsx kept of a program, each file of which says that it ran. */
async function poison(...program: readonly string[]): Promise<Poisoned> {
  const place = mkdtempSync(join(places, 'place-'));
  const marker = join(place, 'marker');
  const plain = () =>
    run(process.execPath, ['--import', TSX, ...program], { cwd: ROOT, env: environment(place) });
  // A program that ends at once leaves some of them half-written, and tsx writes those again.
  for (let tries = 0; tries === 0 || !keptIn(place).every(isWhole); tries++) {
    expect(tries).toBeLessThan(FILLS);
    await plain();
  }
  const kept = keptIn(place);
  const code = `process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(marker)}, '');\n`;
  for (const path of kept) {
    const entry = JSON.parse(readFileSync(path, 'utf8')) as { code: string };
    writeFileSync(path, JSON.stringify({ ...entry, code: code + entry.code }));
  }
  const hasRun = () => {
    const ran = existsSync(marker);
    rmSync(marker, { force: true });
    return ran;
  };
  expect(hasRun()).toBe(false);
  await plain();
  expect(hasRun()).toBe(true);
  // What is written from here on is ours.
  const fresh = () => keptIn(place).filter((path) => !kept.includes(path));
  return { place, hasRun: () => hasRun() || fresh().length > 0 };
}

function isWhole(path: string): boolean {
  try {
    return Boolean(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return false;
  }
}

function keptIn(place: string): readonly string[] {
  const names = readdirSync(place).filter((name) => name.startsWith('tsx-'));
  return names.flatMap((name) => readdirSync(join(place, name)).map((it) => join(place, name, it)));
}

const SOURCE = join(ROOT, 'src/rules/ids.ts');

describe('[I107] code that others put into the temporary folder is run', () => {
  it('by no script of package.json, whose loader this is', async () => {
    const { place, hasRun } = await poison(SOURCE);
    const env = environment(place);
    await run(process.execPath, ['--import', TYPESCRIPT, SOURCE], { cwd: ROOT, env });
    expect(hasRun()).toBe(false);
  });
  it('by no agent that names the loader as the README does', async () => {
    const { place, hasRun } = await poison(SOURCE);
    const args = ['--import', 'openwop-temporal/typescript', SOURCE];
    await run(process.execPath, args, { cwd: ROOT, env: environment(place) });
    expect(hasRun()).toBe(false);
  });
  it('by no agent that the host starts with a command of its own', async () => {
    const { place, hasRun } = await poison(SOURCE);
    const launch = { command: process.execPath, args: ['--import', TSX, SOURCE] };
    const agent = join(folder, 'agent');
    mkdirSync(agent);
    const { exited } = launchProcess({
      agent: {
        manifest: { id: 'com.example.a', version: '1', launch },
        folder: agent,
        hash: '',
      },
      socketPath: '/s.sock',
      token: 'T'.repeat(43),
      environment: environment(place),
      output: { attach: (stream: PassThrough) => void stream.resume() } as never,
    });
    expect(await exited).toMatchObject({ reason: 'exit code 0' });
    expect(hasRun()).toBe(false);
  });
  it('by no command', async () => {
    const program = join(ROOT, 'src/app/openwop.ts');
    const { place, hasRun } = await poison(program, '--help');
    const args = [join(ROOT, 'src/app/launch.js'), 'openwop', '--help'];
    const env = { ...environment(place), OPENWOP_CACHE_DIR: join(folder, 'commands') };
    const { stdout } = await run(process.execPath, args, { env });
    expect(stdout).toContain('Usage: openwop');
    expect(hasRun()).toBe(false);
  });
  it('by no bundler of workflow code, from its source or compiled', async () => {
    const { place, hasRun } = await poison(join(ROOT, 'src/adapters/temporal/bundle-config.ts'));
    vi.stubEnv('TMPDIR', place);
    const { codePath } = await workflowBundle({ cacheDir: join(folder, 'bundles') });
    expect(hasRun()).toBe(false);
    const outdir = join(folder, 'compiled');
    await compile({ entryPoints: [], outdir });
    const draft = join(folder, 'draft.js');
    const program = join(outdir, 'src/adapters/temporal/bundle-process.mjs');
    await run(process.execPath, [program, draft, ''], { env: environment(place) });
    expect(hasRun()).toBe(false);
    expect(readFileSync(draft, 'utf8') === readFileSync(codePath, 'utf8')).toBe(true);
  });
  it('by no thread of the database', async () => {
    const { place, hasRun } = await poison(join(ROOT, 'src/adapters/postgres/pglite-folder.ts'));
    vi.stubEnv('TMPDIR', place);
    const database = await openPglite(join(folder, 'data'), quietLogger);
    await database.close();
    expect(hasRun()).toBe(false);
  });
});

/** Code that says that it ran, and what else a module needs. */
const marking = (marker: string, more = '') =>
  `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '');\n${more}`;

describe('[I107] settings and modules that others put into a folder above are not used', () => {
  it('by a program that the loader runs', async () => {
    const place = mkdtempSync(join(places, 'above-'));
    const marker = join(place, 'marker');
    const inside = join(place, 'agent');
    mkdirSync(inside);
    const paths = { '@noble/hashes/sha2.js': ['./evil.cjs'] };
    const settings = { compilerOptions: { baseUrl: '.', paths } };
    writeFileSync(join(place, 'tsconfig.json'), JSON.stringify(settings));
    writeFileSync(join(place, 'evil.cjs'), marking(marker, 'exports.sha256 = () => [];'));
    const started = async (loader: string, env = {}) => {
      rmSync(marker, { force: true });
      const options = { cwd: inside, env: { PATH: process.env.PATH, ...env } };
      await run(process.execPath, ['--import', loader, SOURCE], options).catch(() => undefined);
      return existsSync(marker);
    };
    expect(await started(TSX)).toBe(true);
    expect(await started(TYPESCRIPT)).toBe(false);
    // Who names settings gets them.
    const named = { TSX_TSCONFIG_PATH: join(place, 'tsconfig.json') };
    expect(await started(TYPESCRIPT, named)).toBe(true);
  });

  it('by the bundler of workflow code, nor do they change what it makes', async () => {
    const above = mkdtempSync(join(folder, 'above-'));
    const project = join(above, 'project');
    for (const each of ['src', 'workflows', 'activities', 'schemas', 'package.json'])
      cpSync(join(ROOT, each), join(project, each), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(project, 'node_modules'));
    const marker = join(above, 'marker');
    const bundle = async () => {
      const draft = join(above, 'draft.js');
      const program = join(project, 'src/adapters/temporal/bundle-process.ts');
      await run(process.execPath, ['--import', TYPESCRIPT, program, draft, ''], { cwd: project });
      return readFileSync(draft, 'utf8');
    };
    const before = await bundle();
    const packages = join(above, 'node_modules');
    const browsers = join(packages, 'browserslist-config-evil');
    const temporal = join(packages, '@temporalio/workflow/lib');
    for (const path of [browsers, temporal]) mkdirSync(path, { recursive: true });
    writeFileSync(join(above, '.browserslistrc'), 'extends browserslist-config-evil\n');
    writeFileSync(join(browsers, 'index.js'), marking(marker, "module.exports = ['ie 11'];"));
    for (const name of ['global-overrides.ts', 'worker-interface.ts'])
      writeFileSync(join(temporal, name), 'export const evil = 1;\n');
    expect((await bundle()) === before).toBe(true);
    expect(existsSync(marker)).toBe(false);
  });
});
