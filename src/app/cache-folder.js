// Where what can be made again is kept: servers, bundled workflow code, compiled programs. All of it is run, so nobody else
// may put anything there. JavaScript, because what compiles the programs reads it before anything else.
import { lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, parse, resolve, sep } from 'node:path';
import process from 'node:process';

/** The system's own user and group, and whoever owns the program, and so can change it anyway. */
const ROOT_USER = 0;
const PROGRAM_OWNER = lstatSync(import.meta.dirname).uid;
const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
/** Of a folder: only who owns an entry, or the folder, may rename or remove it. */
const STICKY = 0o1000;
/** Symbolic links that are followed, as Linux does. */
const MAX_LINKS = 40;

/**
 * @param {(variable: string) => string | undefined} text an environment variable; an empty one is absent
 * @returns {string} an absolute path
 */
export function cacheFolder(text) {
  const said = text('OPENWOP_CACHE_DIR');
  if (said !== undefined) return resolve(said);
  return join(text('XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'openwop-temporal');
}

/**
 * Makes a cache folder that nobody else can write, where it is not there. Throws where it cannot be made, with the system's
 * code, and `not_private` where another user of the machine can put code there, or something else in its place.
 * @param {string} folder an absolute path
 */
export function openCacheFolder(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const user = process.geteuid?.();
  // A system without such modes.
  if (user === undefined) return;
  const fault = faultOf(folder, user);
  if (fault === undefined) return;
  throw Object.assign(new Error(`others may put programs there: ${fault}`), {
    code: 'not_private',
  });
}

/**
 * What lets others change what is found at a path: who may write in the folder itself, in one above it, or in one that a
 * link on the way leads through. Undefined: nothing.
 * @param {string} folder
 * @param {number} user
 * @returns {string | undefined}
 */
function faultOf(folder, user) {
  let links = 0;
  let { root: place } = parse(folder);
  let above = faultOfFolder(place, user, folder !== place);
  let names = namesOf(folder);
  while (above === undefined && names.length > 0) {
    const [name = '', ...rest] = names;
    const next = join(place, name);
    const state = lstatSync(next);
    if (!state.isSymbolicLink()) {
      place = next;
      names = rest;
      above = faultOfFolder(place, user, names.length > 0);
      continue;
    }
    if (!isTrusted(state.uid, user)) return `the link ${next} belongs to user ${state.uid}`;
    if (++links > MAX_LINKS) return `${next} leads through too many links`;
    const target = resolve(place, readlinkSync(next));
    ({ root: place } = parse(target));
    names = [...namesOf(target), ...rest];
  }
  return above;
}

/**
 * @param {string} path
 * @returns {readonly string[]}
 */
function namesOf(path) {
  return path.slice(parse(path).root.length).split(sep).filter(Boolean);
}

/**
 * @param {string} path
 * @param {number} user
 * @param {boolean} isAbove where what is inside it belongs to somebody whom we trust, too
 * @returns {string | undefined}
 */
function faultOfFolder(path, user, isAbove) {
  const { uid, gid, mode } = lstatSync(path);
  if (!isTrusted(uid, user)) return `${path} belongs to user ${uid}`;
  if (isAbove && (mode & STICKY) !== 0) return undefined;
  if ((mode & OTHERS_WRITE) !== 0) return `everybody may write in ${path}`;
  // A group of one's own has the number of its user.
  if ((mode & GROUP_WRITES) !== 0 && gid !== user && gid !== ROOT_USER)
    return `group ${gid} may write in ${path}`;
  return undefined;
}

/**
 * @param {number} owner
 * @param {number} user
 */
function isTrusted(owner, user) {
  return owner === user || owner === ROOT_USER || owner === PROGRAM_OWNER;
}
