// The list of processes that Core started (architecture §7): a Core that was killed leaves it behind, and the next one
// ends what still runs. Only exactly those processes: pid, boot and start time have to match.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from '../../ports/logger.ts';
import { Deadline, rest } from '../../system/time.ts';
import {
  isGroupRunning,
  isRunning,
  recordProcess,
  signalGroup,
  type ProcessRecord,
} from '../../system/processes.ts';

/** Largest list that is read, in bytes. */
const LIST_BYTES = 1024 * 1024;
/** SIGTERM to SIGKILL for a former Core's processes, in ms, from there to their end, and how often they are looked at. */
const ORPHAN_TERM_MS = 2_000;
const ORPHAN_KILL_MS = 2_000;
const LOOK_EVERY_MS = 50;

interface Child {
  readonly agentId: string;
  readonly process: ProcessRecord;
  /** Of the Core that started it. */
  readonly core: ProcessRecord;
}

export interface Children {
  add(agentId: string, process: ProcessRecord): void;
  remove(process: ProcessRecord): void;
  /** Ends what Cores that run no more left behind; gives the agents' ids. */
  endOrphans(): Promise<readonly string[]>;
}

/** `path` is one file, written whole at each change. */
export function openChildren(path: string, logger: Logger): Children {
  const core = recordProcess(process.pid) ?? { pid: process.pid, startedAt: '' };

  const change = (edit: (children: readonly Child[]) => readonly Child[]) => {
    try {
      write(path, edit(read(path)));
    } catch (error) {
      // Without the list a killed Core's agents end only by themselves, as their connection is gone.
      const code = (error as { code?: string }).code;
      logger.warn('the list of agent processes cannot be written', { path, code });
    }
  };
  return {
    add: (agentId, process) => change((list) => [...list, { agentId, process, core }]),
    remove: (gone) => change((list) => list.filter(({ process }) => !isSame(process, gone))),
    async endOrphans() {
      const orphans = read(path).filter((child) => !isRunning(child.core));
      if (orphans.length === 0) return [];
      const running = orphans.filter(({ process }) => isGroupRunning(process));
      await Promise.all(running.map(({ process }) => endGroup(process)));
      change((list) =>
        list.filter((child) => !orphans.some((one) => isSame(one.process, child.process))),
      );
      return running.map(({ agentId }) => agentId);
    },
  };
}

/** They are gone then, unless a kernel does not let go: whoever is started next would find their places taken. */
async function endGroup(leader: ProcessRecord): Promise<void> {
  const steps = [
    ['SIGTERM', ORPHAN_TERM_MS],
    ['SIGKILL', ORPHAN_KILL_MS],
  ] as const;
  for (const [signal, limitMs] of steps) {
    signalGroup(leader.pid, signal);
    const deadline = new Deadline(limitMs);
    while (isGroupRunning(leader) && !deadline.isOver()) await rest(LOOK_EVERY_MS);
    if (!isGroupRunning(leader)) return;
  }
}

function isSame(a: ProcessRecord, b: ProcessRecord): boolean {
  return a.pid === b.pid && a.startedAt === b.startedAt;
}

/** Empty where there is no list, or none that can be understood: nobody is ended on a guess. */
function read(path: string): readonly Child[] {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > LIST_BYTES) return [];
    const list = JSON.parse(bytes.toString('utf8')) as unknown;
    return Array.isArray(list) ? list.filter(isChild) : [];
  } catch {
    return [];
  }
}

function isChild(value: unknown): value is Child {
  const { agentId, process, core } = (value ?? {}) as Partial<Record<keyof Child, unknown>>;
  return typeof agentId === 'string' && isRecord(process) && isRecord(core);
}

function isRecord(value: unknown): value is ProcessRecord {
  const { pid, startedAt } = (value ?? {}) as Partial<Record<keyof ProcessRecord, unknown>>;
  return (
    Number.isInteger(pid) &&
    (pid as number) > 1 &&
    typeof startedAt === 'string' &&
    startedAt !== ''
  );
}

function write(path: string, children: readonly Child[]): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, JSON.stringify(children), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
