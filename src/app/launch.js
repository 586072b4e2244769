// Runs a program of this folder: `node src/app/launch.js PROGRAM [ARGUMENT...]`. As one compiled file, which starts in
// half the time and in less memory than its hundreds of sources by a loader (docs/performance.md). JavaScript, because
// nothing is compiled before it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { cacheFolder, openCacheFolder } from './cache-folder.js';
import { compiled } from './compile.js';

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
// What it makes is its user's alone: programs, data, logs, and what the programs that it starts make.
process.umask(0o077);
let folder = 'the cache folder';
await import(await ready(program).catch(giveUp));

/**
 * @param {string} name
 * @returns {Promise<string>} the address of the module to import
 */
async function ready(name) {
  folder = cacheFolder((variable) => process.env[variable]?.trim() || undefined);
  openCacheFolder(folder);
  return compiled(name, folder);
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
