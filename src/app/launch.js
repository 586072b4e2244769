// Runs a program of this folder: `node src/app/launch.js PROGRAM [ARGUMENT...]`. As one compiled file, which starts in
// half the time and in less memory than its hundreds of sources by a loader (docs/performance.md). JavaScript, because
// nothing is compiled before it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { cacheFolder, openCacheFolder } from './cache-folder.js';
import { compiled } from './compile.js';

/** Of a mode: the group and everybody may write. */
const OTHERS_WRITE = 0o022;

const [, , program = ''] = process.argv;
const source = join(import.meta.dirname, `${program}.ts`);
if (!/^[a-z-]+$/.test(program) || !existsSync(source)) {
  process.stderr.write(`No program "${program}": name one of src/app, as \`npm start\` does.\n`);
  process.exit(2);
}
// What it reads of its arguments is as if it had been called by its own name.
process.argv.splice(1, 2, source);
// Where an error tells a line, it is the source's.
process.setSourceMapsEnabled(true);
// What it makes nobody else may change: its own programs are among it.
process.umask(process.umask(OTHERS_WRITE) | OTHERS_WRITE);
const folder = cacheFolder((name) => process.env[name]?.trim() || undefined);
await import(await ready(program, folder).catch(giveUp));

/**
 * @param {string} name
 * @param {string} cacheDir
 */
async function ready(name, cacheDir) {
  openCacheFolder(cacheDir);
  return compiled(name, cacheDir);
}

/**
 * What the system refuses, in a sentence; a fault of ours with its stack.
 * @param {unknown} error
 * @returns {never}
 */
function giveUp(error) {
  const { code, message } = /** @type {Error & { code?: string }} */ (error);
  if (code === undefined) throw error;
  process.stderr.write(
    `Programs cannot be kept in ${folder} (${message}). Set OPENWOP_CACHE_DIR to a folder that you can write, and nobody else.\n`,
  );
  process.exit(1);
}
