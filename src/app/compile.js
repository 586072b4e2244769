// Programs as JavaScript: each is made once for a content of the sources and kept in the cache folder, beside the threads
// and processes that it starts. Packages stay where they are.
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { dirname, join, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL, URL } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** All that a program is made of: a change anywhere here is another program. */
const SOURCES = ['src', 'workflows', 'activities', 'schemas'];
/** Modules with which a thread or a process of a program begins (src/system/compiled.ts). */
const ENTRIES = [
  'src/adapters/postgres/pglite-worker.ts',
  'src/adapters/temporal/bundle-process.ts',
];
/** A program, or what is made of one: nothing else in the cache folder is ours. */
const NAME = /^program-[0-9a-f]{32}(\.\d+\.[0-9a-f]{8})?$/;
/** Lists the files that a program consists of: of each its length, a space and its path, which is as our sources' are. */
const LIST = 'files.txt';
/** How long one that nobody starts any more is kept, in ms. A process reads its own only when it starts. */
const KEPT_MS = 7 * 24 * 3600 * 1000;
/** Its use is noted so often, in ms. */
const NOTED_MS = 24 * 3600 * 1000;
/** Times that one is looked for: it is made, and made again where its sources changed meanwhile. */
const TRIES = 5;

/**
 * @param {string} program a file of this folder, without its ending
 * @param {string} cacheDir
 * @returns {Promise<string>} the address of the module to import
 */
export async function compiled(program, cacheDir) {
  for (let tries = 0; tries < TRIES; tries++) {
    const name = digest(program);
    const folder = join(cacheDir, `program-${name}`);
    if (isWhole(folder)) {
      noteUse(folder);
      return pathToFileURL(join(folder, 'src/app', `${program}.mjs`)).href;
    }
    // Of sources that changed meanwhile it would be kept under another's name.
    await make(program, folder, () => digest(program) === name);
  }
  throw new Error('The sources change, or what is made of them, while they are compiled.');
}

/**
 * False: it is not there, or somebody took of it.
 * @param {string} folder
 */
function isWhole(folder) {
  try {
    const lines = readFileSync(join(folder, LIST), 'utf8').split('\n');
    return lines.every((line) => {
      const [bytes = '', path = ''] = line.split(' ');
      return statSync(join(folder, path)).size === Number(bytes);
    });
  } catch {
    return false;
  }
}

/**
 * A cache that cannot be written serves all the same.
 * @param {string} folder
 */
function noteUse(folder) {
  try {
    const now = new Date();
    if (now.getTime() - statSync(folder).mtimeMs > NOTED_MS) utimesSync(folder, now, now);
  } catch {
    // It is made again some day.
  }
}

/**
 * Processes that make the same one at once make the same files.
 * @param {string} program
 * @param {string} folder
 * @param {() => boolean} isRight of what was read, once it is compiled
 */
async function make(program, folder, isRight) {
  const draft = `${folder}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await mkdir(draft, { recursive: true });
  try {
    await compile({ entryPoints: [join(ROOT, 'src/app', `${program}.ts`)], outdir: draft, folder });
    if (!isRight()) return;
    const lines = filesIn(draft).map((path) => `${statSync(path).size} ${relative(draft, path)}`);
    await writeFile(join(draft, LIST), lines.join('\n'));
    await dropOld(dirname(folder));
    // Where it is there already, whole or not, each file takes the place of its like: no start finds one missing.
    await rename(draft, folder).catch(() => moveEach(draft, folder));
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * Its list last.
 * @param {string} draft
 * @param {string} folder
 */
async function moveEach(draft, folder) {
  const paths = filesIn(draft).map((path) => relative(draft, path));
  for (const path of [...paths.filter((each) => each !== LIST), LIST]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await rename(join(draft, path), join(folder, path));
  }
}

/**
 * Makes one file of each entry point and of each thread and process, where its source lies from the top of the project.
 * @param {{ entryPoints: string[], outdir: string, folder?: string }} options absolute paths; `folder`: where the files
 *   are when they run, `outdir` when it is left out
 */
export async function compile({ entryPoints, outdir, folder = outdir }) {
  const { build } = await import('esbuild');
  const sources = [...entryPoints, ...ENTRIES.map((path) => join(ROOT, path))];
  await build({
    // By their places in the project: whatever the folders above are called, esbuild takes none of it for a pattern, and
    // names its files as their sources are named.
    absWorkingDir: ROOT,
    entryPoints: sources.map((path) => {
      const place = relative(ROOT, path);
      return { in: place, out: place.replace(/\.ts$/, '') };
    }),
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    // What Node itself would choose of a package.
    conditions: [],
    define: { COMPILED_INTO: JSON.stringify(pathToFileURL(`${folder}/`).href) },
    plugins: [asIfInPlace],
    logLevel: 'error',
  });
}

/** @type {import('esbuild').Plugin} A module sees the address that its source has, and the packages that its source sees. */
const asIfInPlace = {
  name: 'as-if-in-place',
  setup(making) {
    /** @type {Map<string, Promise<string>>} */
    const found = new Map();
    /** The file that a package's name means to a source. */
    const find = async (/** @type {string} */ name, /** @type {string} */ resolveDir) => {
      const from = { kind: 'import-statement', resolveDir, pluginData: asIfInPlace };
      const { path, errors } = await making.resolve(name, /** @type {never} */ (from));
      if (errors.length > 0) throw new Error(errors[0]?.text);
      return pathToFileURL(path).href;
    };
    making.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
      if (kind === 'entry-point' || pluginData === asIfInPlace) return undefined;
      if (isBuiltin(path)) return { path, external: true };
      const known = found.get(path) ?? find(path, resolveDir);
      found.set(path, known);
      return { path: await known, external: true };
    });
    making.onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      // By functions: `$` in a folder's name is no pattern.
      const contents = text
        .replaceAll('import.meta.url', () => JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', () => JSON.stringify(dirname(path)));
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
    });
  },
};

/**
 * Of what is read, and of which packages are there: their files are named in what is made.
 * @param {string} program
 */
function digest(program) {
  const hash = createHash('sha256').update(`${ROOT}\0${program}\0`);
  const installed = ['node_modules', '..'].map((place) => join(ROOT, place, '.package-lock.json'));
  const lists = [join(ROOT, 'package.json'), ...installed].filter((path) => existsSync(path));
  for (const path of [...lists, ...SOURCES.flatMap((folder) => sourcesIn(join(ROOT, folder)))])
    hash
      .update(`${relative(ROOT, path)}\0`)
      .update(readFileSync(path))
      .update('\0');
  return hash.digest('hex').slice(0, 32);
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function sourcesIn(folder) {
  return filesIn(folder)
    .filter((path) => /\.(ts|js|json)$/.test(path))
    .sort();
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((it) => it.isFile())
    .map((it) => join(it.parentPath, it.name));
}

/**
 * Programs that nobody starts any more, and what a process left that was killed while it made one.
 * @param {string} cacheDir
 */
async function dropOld(cacheDir) {
  const before = Date.now() - KEPT_MS;
  for (const name of readdirSync(cacheDir).filter((each) => NAME.test(each))) {
    const path = join(cacheDir, name);
    if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) > before) continue;
    // What cannot be removed, or another process removes, stays for the next time.
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}
