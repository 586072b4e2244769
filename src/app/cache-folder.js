// Where what can be made again is kept: servers, bundled workflow code, compiled programs. JavaScript, because what
// compiles the programs reads it before anything else.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/**
 * @param {(variable: string) => string | undefined} text an environment variable; an empty one is absent
 * @returns {string} an absolute path
 */
export function cacheFolder(text) {
  const said = text('OPENWOP_CACHE_DIR');
  if (said !== undefined) return resolve(said);
  return join(text('XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'openwop-temporal');
}
