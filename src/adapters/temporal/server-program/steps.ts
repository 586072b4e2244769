// What the ways to Temporal's server share: their options, what a way comes to, versions, and a second and third try
// where the network, and not an answer, stood in the way.
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { BackOff, rest } from '../../../system/time.ts';
import {
  isExecutable,
  ProgramFault,
  runProgram,
  type Environment,
} from '../../../system/programs.ts';

/** Versions of the CLI, in the order in which they are asked for. The dev server of the first is Temporal 1.29. */
export const CLI_VERSIONS = ['v1.5.1', 'v1.6.0', 'v1.9.1'] as const;
const MINIMUM_CLI: Version = [1, 5, 0];
const MINIMUM_SERVER: Version = [1, 29, 0];
/** A build without a release number names its server version only. */
const UNRELEASED = '0.0.0';
const VERSION_LIMIT_MS = 10_000;
const SOURCES = fileURLToPath(new URL('../../../../dev-server', import.meta.url));
const DIGEST_CHARS = 16;
/** Tries of what met a passing network fault, and the pauses between them in ms: the first, the longest. */
const TRIES = 3;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 2_000;

type Version = readonly [number, number, number];

/** A server that can be started. */
export interface ServerProgram {
  /** `dev`: Temporal's server, its database in a file. `test`: Java's test server, which forgets all with its process. */
  readonly kind: 'dev' | 'test';
  /** Absolute. */
  readonly path: string;
}

export interface ProgramOptions {
  /** Folder for obtained programs, shared by all data folders of the user. */
  readonly cacheDir: string;
  /** Environment of the commands run; its PATH is searched. */
  readonly env: Environment;
  /** Gets one line per step, and one before a step that takes minutes. */
  readonly report: (line: string) => void;
  /** Where no server that keeps its runs can be had, one that does not will do. */
  readonly orInMemory?: boolean;
  /** Base URL of another download service; `off`: none. */
  readonly downloadService?: string;
  readonly downloadLimitMs?: number;
  /** Sources of the dev server and, in `in-memory`, of the one that keeps nothing; for tests. */
  readonly sourcesDir?: string;
  readonly signal?: AbortSignal;
}

/** What a way found, in words for the line about it. */
export interface Found extends ServerProgram {
  readonly what: string;
}

/** Why a way does not lead to a server: a sentence without its full stop. */
export class NoWay extends Error {}

/** Another try may go through. */
export class PassingFault extends Error {}

/** Runs `work`; a PassingFault is tried again. What it throws in the end is a NoWay or unforeseen. */
export async function againIfPassing<T>(
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const backOff = new BackOff(FIRST_PAUSE_MS, MAX_PAUSE_MS);
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PassingFault)) throw error;
      if (tries === TRIES || signal?.aborted)
        throw new NoWay(`${error.message}, ${TRIES} times`, { cause: error });
      await rest(backOff.next(), signal);
    }
  }
}

const PASSING_WORDS =
  /i\/o timeout|timed? ?out|connection reset|handshake timeout|unexpected EOF|temporary failure|server misbehaving|premature end/i;
/** Only where they are the status of an answer: versions, ports and hashes hold such numbers too. */
const PASSING_STATUS = [
  /(?:status(?: code)?|code(?: is)?|error|HTTP\/[\d.]+):? (?:429|500|502|503|504)\b/i,
  /: (?:429|500|502|503|504) [A-Z]/,
];
/** What Maven says below each fault. */
const ADVICE = /^\[ERROR\] *(?:$|To see the full|Re-run Maven|For more information|\[Help)/;
const SHOWN_LINES = 3;
/** Characters of a program's complaint that are shown. */
const SHOWN_CHARS = 300;

/** A program that fetches what it needs: what it said tells a refusal from a fault that may pass. */
export function fetchFault(what: string, error: unknown): Error {
  if (!(error instanceof ProgramFault)) return error as Error;
  const lines = stripVTControlCharacters(error.output).split('\n');
  const said = lines.filter((line) => line.trim() !== '' && !ADVICE.test(line));
  const complaint = said.slice(-SHOWN_LINES).join(' ').trim();
  const reason = `${what} failed (${complaint.slice(-SHOWN_CHARS) || error.message})`;
  return [PASSING_WORDS, ...PASSING_STATUS].some((passing) => passing.test(complaint))
    ? new PassingFault(reason, { cause: error })
    : new NoWay(reason, { cause: error });
}

/** Folders in the cache that something is made in; a process that was killed leaves them behind. */
const MADE_IN = /^(build|download|fetch)-/;
/** Longer than anything is made. */
const LEFTOVER_MS = 2 * 3600_000;

/** A folder in the cache for what is being made; deleted when `work` is over. */
export async function inFreshFolder<T>(
  cacheDir: string,
  kind: 'build' | 'download' | 'fetch',
  work: (folder: string) => Promise<T>,
): Promise<T> {
  await mkdir(cacheDir, { recursive: true });
  await removeLeftovers(cacheDir);
  const folder = await mkdtemp(join(cacheDir, `${kind}-`));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function removeLeftovers(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const path = join(cacheDir, name);
    const madeAtMs = MADE_IN.test(name)
      ? await stat(path).then(
          (it) => it.mtimeMs,
          () => Infinity,
        )
      : Infinity;
    if (madeAtMs < Date.now() - LEFTOVER_MS) await rm(path, { recursive: true, force: true });
  }
}

/** Sources of the servers that are built here. */
export function sourcesOf({ sourcesDir }: ProgramOptions): string {
  return sourcesDir ?? SOURCES;
}

/** Of names and bytes: part of the name in the cache, so that an upgrade of this host builds its own. */
export async function digestOf(folder: string, names: readonly string[]): Promise<string> {
  const digest = createHash('sha256');
  for (const name of names) digest.update(`${name}\n`).update(await readFile(join(folder, name)));
  return digest.digest('hex').slice(0, DIGEST_CHARS);
}

export function cachedCli(cacheDir: string, version: string): string {
  return join(cacheDir, `temporal-${version}`);
}

/** Checks an obtained program and moves it into its place at once: a cached one is always whole. */
export async function keep(
  path: string,
  target: string,
): Promise<{ path: string; version: string }> {
  await chmod(path, 0o755);
  const version = await checkVersion(path);
  await rename(path, target);
  return { path: target, version };
}

/** An executable of the right version at that place; undefined where there is none. Throws NoWay. */
export async function usable(path: string): Promise<string | undefined> {
  return (await isExecutable(path)) ? checkVersion(path) : undefined;
}

/** The version in readable form. Throws NoWay when it is too old or cannot be read. */
export async function checkVersion(path: string, env: Environment = {}): Promise<string> {
  const output = await runProgram(path, ['--version'], {
    env,
    limitMs: VERSION_LIMIT_MS,
  }).catch((error: unknown) => {
    throw new NoWay(`${path} does not run`, { cause: error });
  });
  const cli = /temporal version v?(\d+\.\d+\.\d+)/.exec(output)?.[1];
  const server = /Server v?(\d+\.\d+\.\d+)/.exec(output)?.[1];
  const released = cli !== undefined && cli !== UNRELEASED;
  const found = released ? cli : server;
  if (found === undefined) throw new NoWay(`${path} does not tell its version`);
  const minimum = released ? MINIMUM_CLI : MINIMUM_SERVER;
  if (isBelow(parseVersion(found), minimum)) {
    const kind = released ? 'version' : 'server';
    throw new NoWay(`${path} is too old (${kind} ${found}, ${minimum.join('.')} is needed)`);
  }
  return released ? `version ${cli}` : `server ${server}`;
}

export function parseVersion(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split('.').map(Number);
  return [major, minor, patch];
}

export function isBelow(version: Version, minimum: Version): boolean {
  for (const [at, part] of version.entries()) {
    const wanted = minimum[at] as number;
    if (part !== wanted) return part < wanted;
  }
  return false;
}
