// The workflow bundle: made once for a content of workflows/ and src/rules/ and kept in the user's cache folder, since
// bundling takes seconds and loading none. Processes that make the same one at once write the same bytes.
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compiledEntry, TYPESCRIPT } from '../../system/compiled.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const BUNDLER = fileURLToPath(new URL('./bundle-process.ts', import.meta.url));
const CONFIG = fileURLToPath(new URL('./bundle-config.ts', import.meta.url));
/** Longest time that bundling may take, in ms: it takes seconds. */
const BUNDLE_LIMIT_MS = 180_000;
/** What workflow code may import (architecture §1.1): a change anywhere here is another bundle. */
const SOURCES = ['workflows', 'src/rules'];
const BUNDLE_PREFIX = 'workflow-bundle-';
const BUNDLE_KEPT_MS = 30 * 24 * 3600 * 1000;
const PACKAGES = ['@temporalio/worker', '@temporalio/workflow', '@noble/hashes', 're2js'];

export interface BundleOptions {
  readonly cacheDir: string;
  /** Of the data converter: it runs in the sandbox, too. */
  readonly failureConverterPath?: string;
}

const run = promisify(execFile);
const made = new Map<string, Promise<{ codePath: string }>>();

/** Path of the bundle; made at most once per process and content. */
export async function workflowBundle(options: BundleOptions): Promise<{ codePath: string }> {
  const key = `${options.cacheDir}|${options.failureConverterPath ?? ''}`;
  const known = made.get(key);
  if (known) return known;
  const making = make(options);
  made.set(key, making);
  making.catch(() => made.delete(key));
  return making;
}

async function make({
  cacheDir,
  failureConverterPath,
}: BundleOptions): Promise<{ codePath: string }> {
  const codePath = join(
    cacheDir,
    `${BUNDLE_PREFIX}${await digest([CONFIG, failureConverterPath])}.js`,
  );
  const exists = await access(codePath).then(
    () => true,
    () => false,
  );
  if (exists) return { codePath };
  await mkdir(cacheDir, { recursive: true });
  const draft = `${codePath}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await bundle(draft, failureConverterPath);
  await rename(draft, codePath);
  await dropOldBundles(cacheDir);
  return { codePath };
}

/** Bundles of code that is gone; one that a process still wants is made again. */
async function dropOldBundles(cacheDir: string): Promise<void> {
  const before = Date.now() - BUNDLE_KEPT_MS;
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith(BUNDLE_PREFIX)) continue;
    const path = join(cacheDir, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }));
    if (mtimeMs < before) await rm(path, { force: true });
  }
}

async function bundle(draft: string, failureConverterPath = ''): Promise<void> {
  const compiled = compiledEntry('src/adapters/temporal/bundle-process.ts');
  const program =
    compiled === undefined ? ['--import', TYPESCRIPT, BUNDLER] : [fileURLToPath(compiled)];
  try {
    await run(process.execPath, [...program, draft, failureConverterPath], {
      cwd: ROOT,
      timeout: BUNDLE_LIMIT_MS,
    });
  } catch (error) {
    const said = (error as { stderr?: string }).stderr ?? '';
    throw new Error(`the workflow code cannot be bundled: ${said}`, { cause: error });
  }
}

/** Of the workflow code alone, encrypted or not: where it is the same, so is what open runs go on with. */
export async function workflowDigest(): Promise<string> {
  return digest([]);
}

/** `more`: what else a bundle of the workflow code comes of. */
async function digest(more: readonly (string | undefined)[]): Promise<string> {
  const hash = createHash('sha256');
  const paths = (await Promise.all(SOURCES.map((folder) => sourcesIn(join(ROOT, folder)))))
    .flat()
    .sort();
  for (const path of [...paths, ...more.flatMap((it) => it ?? [])]) {
    hash
      .update(`${relative(ROOT, path)}\0`)
      .update(await readFile(path))
      .update('\0');
  }
  const require = createRequire(import.meta.url);
  for (const name of PACKAGES) hash.update(`${name}@${await versionOf(require, name)}\0`);
  return hash.digest('hex').slice(0, 32);
}

async function sourcesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((it) => it.isFile() && it.name.endsWith('.ts'))
    .map((it) => join(it.parentPath, it.name));
}

/** Not by its exports: packages need not export their package.json. */
async function versionOf(require: NodeJS.Require, name: string): Promise<string> {
  for (const folder of require.resolve.paths(name) ?? []) {
    const text = await readFile(join(folder, name, 'package.json'), 'utf8').catch(() => undefined);
    if (text !== undefined) return (JSON.parse(text) as { version: string }).version;
  }
  return '';
}
