// What the operating system tells of processes and their groups (architecture §7; seed 004 §5): identity beyond a pid,
// which may belong to a stranger by now, members of a group and their memory. Fullest with /proc; `ps` tells identity
// elsewhere.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** How long `ps` may take on systems without /proc. */
const PS_LIMIT_MS = 2_000;

export interface ProcessRecord {
  readonly pid: number;
  /** Boot and start time of the process, opaque. */
  readonly startedAt: string;
}

interface Stat {
  readonly state: string;
  readonly group: number;
  readonly startTick: string;
}

/** Fields of /proc/<pid>/stat; undefined when there is no such process or no /proc. */
function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name may hold spaces and brackets: fields are counted from the last one, state is field 3.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state = '', , group] = fields;
    return { state, group: Number(group), startTick: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/**
 * Where ids of processes mean the same: one boot of one machine, and there one namespace of them; without /proc the machine
 * of that name. Opaque.
 */
export function processSpace(): string {
  return `${bootId() || hostname()} ${pidNamespace()}`;
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return process.platform;
  }
}

function isDead({ state }: Stat): boolean {
  return state === 'Z' || state === 'X';
}

function startOf(pid: number): string | undefined {
  if (process.platform === 'win32') throw new Error('Windows is not supported');
  if (process.platform !== 'linux') return startByPs(pid);
  const stat = statOf(pid);
  return stat === undefined || isDead(stat) ? undefined : `${bootId()}:${stat.startTick}`;
}

function startByPs(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { timeout: PS_LIMIT_MS });
    return line.toString().trim() || undefined;
  } catch {
    // `ps` exits with 1 when there is no such process.
    return undefined;
  }
}

/** What to write down about a running process; undefined when it does not run. */
export function recordProcess(pid: number): ProcessRecord | undefined {
  const startedAt = startOf(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** True when some process has that id now; for who has no record of it. */
export function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM';
  }
}

/** True when exactly that process still runs. */
export function isRunning(record: ProcessRecord): boolean {
  return startOf(record.pid) === record.startedAt;
}

/**
 * True when the group that the recorded process led still has a process of its own: the leader itself, or members that
 * outlived it (their group's id is not given to others while they live). Where there is no /proc: the leader only.
 */
export function isGroupRunning(leader: ProcessRecord): boolean {
  if (isRunning(leader)) return true;
  // Another boot, or a stranger with the pid: then the group had become empty.
  if (!leader.startedAt.startsWith(`${bootId()}:`)) return false;
  const stat = statOf(leader.pid);
  if (stat && !isDead(stat)) return false;
  return (groupMembers().get(leader.pid) ?? []).length > 0;
}

/** Signals a process group. False when there is none, or none that may be signalled. */
export function signalGroup(leader: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}

/** Living processes by group; empty where there is no /proc. */
export function groupMembers(): ReadonlyMap<number, readonly number[]> {
  const groups = new Map<number, number[]>();
  for (const name of processNames()) {
    const pid = Number(name);
    const stat = statOf(pid);
    if (!stat || isDead(stat)) continue;
    groups.set(stat.group, [...(groups.get(stat.group) ?? []), pid]);
  }
  return groups;
}

function processNames(): readonly string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** Resident memory of a process in bytes, as the kernel counts it; 0 when it is gone. */
export function residentBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
