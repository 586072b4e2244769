// The place of one test run: a temporary folder for all that its processes make there. Where the run ends, however it does,
// what still runs on that folder is ended, and the folder goes.
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, recordProcess, type ProcessRecord } from '../../src/system/processes.ts';

/** How the names of places begin. */
const PREFIX = 'owt-';
/** In a place: the process that took it. */
const OWNER = 'owner.json';

/** Time in ms that a process gets between SIGTERM and SIGKILL. */
const GRACE_MS = 3_000;
const PROBE_MS = 50;

/**
 * Does some work in a place of its own, and clears it whatever came of that; what former runs left is cleared first. What ran on
 * is named.
 */
export async function inPlace<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  for (const command of await sweepPlaces())
    console.log(`left behind by a run that was killed, and ended: ${command}`);
  const folder = takePlace();
  try {
    return await work(folder);
  } finally {
    for (const command of await clear(folder)) console.log(`left behind, and ended: ${command}`);
  }
}

/** Its path is short, for the sockets in it. From then on it is the temporary folder of this process and its children. */
function takePlace(): string {
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  writeFileSync(join(folder, OWNER), JSON.stringify(recordProcess(process.pid) ?? null));
  // PostgreSQL runs as a user of its own where the tests run as root.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  return folder;
}

/**
 * Clears the places in the temporary folder whose owner has gone without doing so, killed for one; the command lines of what
 * still ran there. A place that names no owner is left alone.
 */
export async function sweepPlaces(base = tmpdir()): Promise<readonly string[]> {
  const folders = readdirSync(base)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => join(base, name))
    .filter(isLeft);
  return (await Promise.all(folders.map(clear))).flat();
}

function isLeft(folder: string): boolean {
  try {
    // Another user's is that user's to clear.
    if (statSync(folder).uid !== process.getuid?.()) return false;
    const owner = JSON.parse(readFileSync(join(folder, OWNER), 'utf8')) as ProcessRecord;
    return !isRunning(owner);
  } catch {
    return false;
  }
}

/** Ends what runs on the folder and removes it; the command lines of what was ended. */
async function clear(folder: string): Promise<readonly string[]> {
  const left = processesOn(folder);
  for (const { pid } of left) signal(pid, 'SIGTERM');
  const limit = Date.now() + GRACE_MS;
  while (Date.now() < limit && processesOn(folder).length > 0) await sleep(PROBE_MS);
  for (const { pid } of processesOn(folder)) signal(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  return left.map(({ command }) => command);
}

interface Process {
  readonly pid: number;
  readonly command: string;
}

/**
 * Those that name the folder in their arguments or in their environment, but for this one and its own children, which end
 * with it. Linux alone can say.
 */
function processesOn(folder: string): readonly Process[] {
  return pids().flatMap((pid) => {
    const [command, environment] = [textOf(pid, 'cmdline'), textOf(pid, 'environ')];
    const isOwn = pid === process.pid || parentOf(pid) === process.pid;
    if (isOwn || !`${command}\0${environment}`.includes(folder)) return [];
    return [{ pid, command: command.replaceAll('\0', ' ').trim() }];
  });
}

function pids(): readonly number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function parentOf(pid: number): number | undefined {
  const [, fields = ''] = textOf(pid, 'stat').split(') ');
  return Number(fields.split(' ')[1]);
}

/** Empty for a process that has gone, or is another user's. */
function textOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
