// Where what can be made again is kept: servers, bundled workflow code, compiled programs. All of it is run, so nobody else
// may put anything there. JavaScript, because what compiles the programs reads it before anything else.
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, parse, resolve, sep } from 'node:path';
import process from 'node:process';

/** The system's own user and group. */
const ROOT_USER = 0;
/** Whoever owns the program can change it anyway. */
const PROGRAM_OWNER = lstatSync(import.meta.dirname).uid;
/** How Linux shows whoever has no number in the user namespace of this process. */
const NOBODY_HERE = 65_534;
/** Length of the map of a process that is in no namespace of its own. */
const ALL_NUMBERS = 4_294_967_295;
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
  const caches = text('XDG_CACHE_HOME') ?? '';
  // A relative one is to be ignored (XDG Base Directory Specification).
  return join(isAbsolute(caches) ? caches : resolve(homedir(), '.cache'), 'openwop-temporal');
}

/**
 * Makes a cache folder that nobody else can write, where it is not there. Throws where it cannot be made, with the system's
 * code, and `not_private` where another user of the machine can put code there, has put something there, or can put another
 * folder in its place. An access control list on a folder above is seen as far as its mask is in the mode of the group.
 * @param {string} folder an absolute path
 */
export function openCacheFolder(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const user = process.geteuid?.();
  // A system without such modes.
  if (user === undefined) return;
  const fault = faultOfPath(folder, user) ?? faultWithin(folder, user);
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
function faultOfPath(folder, user) {
  let links = 0;
  let { root: place } = parse(folder);
  let names = namesOf(folder);
  let fault = faultOf(place, user, names.length > 0);
  while (fault === undefined && names.length > 0) {
    const [name = '', ...rest] = names;
    names = rest;
    // `..` goes up from where the links have led, not from where the text says.
    const next = join(place, name);
    const state = lstatSync(next);
    if (!state.isSymbolicLink()) {
      place = next;
      fault = faultOf(place, user, names.length > 0);
    } else if (!isTrusted(state.uid, user)) fault = `the link ${next} belongs to user ${state.uid}`;
    else if (++links > MAX_LINKS) fault = `${next} leads through too many links`;
    else {
      const target = readlinkSync(next);
      if (isAbsolute(target)) ({ root: place } = parse(target));
      names = [...namesOf(target), ...rest];
    }
  }
  return fault;
}

/**
 * @param {string} path
 * @returns {readonly string[]}
 */
function namesOf(path) {
  return path
    .slice(parse(path).root.length)
    .split(sep)
    .filter((name) => name !== '' && name !== '.');
}

/**
 * What others have put there, or may change there, when the folder itself is closed to them.
 * @param {string} folder
 * @param {number} user
 * @returns {string | undefined}
 */
function faultWithin(folder, user) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const state = lstatSync(path, { throwIfNoEntry: false });
    // Another process of ours removed it, or made a link.
    if (state === undefined) continue;
    if (!isTrusted(state.uid, user)) return `${path} belongs to user ${state.uid}: remove it`;
    const writers = state.isSymbolicLink() ? undefined : writersOf(state, user);
    if (writers !== undefined) return `${writers} may write in ${path}: remove it`;
  }
  return undefined;
}

/**
 * @param {string} path of a folder
 * @param {number} user
 * @param {boolean} isAbove where what is inside it belongs to somebody whom we trust, too
 * @returns {string | undefined}
 */
function faultOf(path, user, isAbove) {
  const state = lstatSync(path);
  const isSystem = isAbove && state.uid === NOBODY_HERE && isInNamespace();
  if (!isTrusted(state.uid, user) && !isSystem) return `${path} belongs to user ${state.uid}`;
  if (isAbove && (state.mode & STICKY) !== 0) return undefined;
  const writers = writersOf(state, user);
  if (writers !== undefined) return `${writers} may write in ${path} (chmod go-w closes it)`;
  // An access control list may hold more than the group.
  if (!isAbove && state.uid === user && (state.mode & GROUP_WRITES) !== 0)
    chmodSync(path, state.mode & 0o755);
  return undefined;
}

/**
 * Who else may write. A group of one's own has the number of its user.
 * @param {{ readonly mode: number, readonly gid: number }} state
 * @param {number} user
 * @returns {string | undefined}
 */
function writersOf({ mode, gid }, user) {
  if ((mode & OTHERS_WRITE) !== 0) return 'everybody';
  return (mode & GROUP_WRITES) !== 0 && gid !== user && gid !== ROOT_USER
    ? `group ${gid}`
    : undefined;
}

/**
 * @param {number} owner
 * @param {number} user
 */
function isTrusted(owner, user) {
  if (owner === user || owner === ROOT_USER) return true;
  return owner === PROGRAM_OWNER && !(owner === NOBODY_HERE && isInNamespace());
}

/** Whether the numbers of users are others here: the system's own user then has none. */
function isInNamespace() {
  try {
    const [, , count] = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/);
    return Number(count) < ALL_NUMBERS;
  } catch {
    return false;
  }
}
