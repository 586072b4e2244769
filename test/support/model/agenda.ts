// A model of time: what is to happen, and when. Nothing waits in it; the clock stands at what happens next.

export interface Agenda {
  readonly nowMs: () => number;
  /** Entries of one moment happen in the order in which they were put there. Returns what takes it off again. */
  at(ms: number, happen: () => void | Promise<void>): () => void;
  /** Makes the next entry happen; false when there is none. */
  step(): Promise<boolean>;
}

interface Entry {
  readonly atMs: number;
  readonly happen: () => void | Promise<void>;
}

export function openAgenda(startMs: number): Agenda {
  let nowMs = startMs;
  let entries: Entry[] = [];
  return {
    nowMs: () => nowMs,
    at(ms, happen) {
      const entry = { atMs: Math.max(Math.ceil(ms), nowMs), happen };
      const behind = entries.findIndex(({ atMs }) => atMs > entry.atMs);
      entries.splice(behind < 0 ? entries.length : behind, 0, entry);
      return () => {
        entries = entries.filter((other) => other !== entry);
      };
    },
    async step() {
      const next = entries.shift();
      if (!next) return false;
      nowMs = next.atMs;
      await next.happen();
      return true;
    },
  };
}
