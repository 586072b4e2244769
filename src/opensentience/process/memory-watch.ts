// Memory limits of agents (manifest `limits.memoryBytes`): no system call bounds a whole group, so its resident memory
// is looked at. Where there is no /proc nothing is seen, and nothing ended.
import { groupMembers, residentBytes } from '../../system/processes.ts';

interface Watched {
  readonly maxBytes: number;
  readonly onOver: (bytes: number) => void;
}

export interface MemoryWatch {
  /** `onOver` is called once. Gives the end of the watch. */
  add(group: number, watched: Watched): () => void;
}

/** Pages shared within a group count for each process that maps them. */
export function createMemoryWatch(everyMs: number): MemoryWatch {
  const watches = new Map<number, Watched>();
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    const members = groupMembers();
    for (const [group, { maxBytes, onOver }] of [...watches]) {
      const bytes = (members.get(group) ?? []).reduce((sum, pid) => sum + residentBytes(pid), 0);
      if (bytes <= maxBytes) continue;
      remove(group);
      onOver(bytes);
    }
  }
  function remove(group: number): void {
    watches.delete(group);
    if (watches.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }
  return {
    add(group, watched) {
      watches.set(group, watched);
      timer ??= setInterval(look, everyMs).unref();
      return () => remove(group);
    },
  };
}
