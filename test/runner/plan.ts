// What runs beside what: the tests in process share their workers, and beside them runs one file at a time of those that start and
// kill processes, which depend most on time. Once the tests in process are done, two files of the others run at a time, where
// the others take longer.
import { availableParallelism } from 'node:os';
import type { Durations } from './durations.ts';
import { IN_PROCESS, PROCESSES, type Lane } from './lane.ts';

/** Lanes one after the other. */
export type Track = readonly Lane[];

/** The tests in process; without a dev server those that need none. */
export function inProcess(hasServer: boolean): Lane {
  const workers = Math.max(2, availableParallelism());
  return { projects: hasServer ? IN_PROCESS : ['pure', 'stores'], workers };
}

export const processes = (files?: readonly string[]): Lane => ({
  ...{ projects: PROCESSES, workers: 1 },
  ...(files && { files }),
});

export interface Files {
  readonly inProcess: readonly string[];
  readonly processes: readonly string[];
}

/** The tracks of a whole run. Files that were never measured are with those that start first. */
export function plan(files: Files, durations: Durations): readonly Track[] {
  const main = inProcess(true);
  const msOf = (file: string) => durations[file] ?? 0;
  const sum = (all: readonly string[]) => all.reduce((total, file) => total + msOf(file), 0);
  const mainMs = sum(files.inProcess) / main.workers;
  const excessMs = sum(files.processes) - mainMs;
  const later: string[] = [];
  // The shortest: what is left for the end leaves no track alone with a long one.
  for (const file of [...files.processes].sort((a, b) => msOf(a) - msOf(b)))
    if (msOf(file) > 0 && sum(later) + msOf(file) <= excessMs / 2) later.push(file);
  const first = files.processes.filter((file) => !later.includes(file));
  return [[main, ...(later.length > 0 ? [processes(later)] : [])], [processes(first)]];
}
