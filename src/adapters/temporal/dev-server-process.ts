// Tells one process from another with the same id: a recorded pid alone may belong to a stranger by now (design §7).
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** How long `ps` may take on systems without /proc. */
const PS_LIMIT_MS = 2_000;

export interface ProcessRecord {
  readonly pid: number;
  /** Boot and start time of the process, opaque. */
  readonly startedAt: string;
}

/** Boot id and start tick from /proc, `ps` elsewhere; undefined when no such process runs (a zombie does not). */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name may hold spaces and brackets: fields are counted from the last one. State is field 3, start 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}:${fields[19]}`;
  } catch (error) {
    if (process.platform === 'linux') return undefined;
    return startByPs(pid, error);
  }
}

function startByPs(pid: number, cause: unknown): string | undefined {
  if (process.platform === 'win32') throw new Error('Windows is not supported', { cause });
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

/** True when exactly that process still runs. */
export function isRunning(record: ProcessRecord): boolean {
  return startOf(record.pid) === record.startedAt;
}
