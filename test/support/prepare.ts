// Makes what prepared.ts hands out, before the first test: for global-setup.ts.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build, type Plugin } from 'esbuild';
import { databaseFolder, PROGRAMS } from './prepared.ts';

const run = promisify(execFile);
/** Longest time to initialise a database, in ms: it takes seconds. */
const INIT_LIMIT_MS = 120_000;

/** Our sources become one file per program; packages stay where they are, named by their full address. */
export async function bundlePrograms(folder: string): Promise<void> {
  await build({
    entryPoints: PROGRAMS.map((name) => join(import.meta.dirname, name)),
    outdir: folder,
    entryNames: '[name]',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    plugins: [asIfInPlace],
    logLevel: 'warning',
  });
}

/** A module of a bundle sees the address that its source has, and the packages that its source sees. */
const asIfInPlace: Plugin = {
  name: 'as-if-in-place',
  setup(making) {
    /** The file that a package's name means where it is imported. */
    const find = async (name: string, resolveDir: string): Promise<string> => {
      const from = { kind: 'import-statement', resolveDir, pluginData: asIfInPlace } as const;
      return (await making.resolve(name, from)).path;
    };
    making.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
      if (kind === 'entry-point' || pluginData === asIfInPlace) return undefined;
      return { path: isBuiltin(path) ? path : await find(path, resolveDir), external: true };
    });
    making.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const folder = dirname(path);
      let text = await readFile(path, 'utf8');
      for (const [call, name = ''] of text.matchAll(/import\.meta\.resolve\('([^']+)'\)/g))
        text = text.replace(call, JSON.stringify(pathToFileURL(await find(name, folder)).href));
      const inPlace = text
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', JSON.stringify(folder));
      return { contents: inPlace, loader: 'ts' };
    });
  },
};

/** Makes the initialised folder that `copyDatabase` copies, unless it is there. */
export async function prepareDatabase(cacheDir: string): Promise<void> {
  const ready = databaseFolder(cacheDir);
  if (existsSync(ready)) return;
  mkdirSync(cacheDir, { recursive: true });
  const draft = `${ready}.${randomBytes(4).toString('hex')}`;
  const program = fileURLToPath(new URL('./empty-database.ts', import.meta.url));
  await run(process.execPath, ['--import', 'tsx', program, draft], { timeout: INIT_LIMIT_MS });
  try {
    renameSync(draft, ready);
  } catch (error) {
    // Another run was first.
    if (!existsSync(ready)) throw error;
    rmSync(draft, { recursive: true, force: true });
  }
}
