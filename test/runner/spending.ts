// What a test file takes of the machine, measured in the process that runs it.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { ROOT } from '../support/root.ts';
import { writeLine, type Startable } from './lines.ts';

/** Ticks of /proc in a second. */
const TICKS = 100;
/** Of the fields behind the name of a process in /proc: user and system, and the same of children that ended. */
const CPU_FIELDS = [11, 12, 13, 14];

type Counts = Record<Startable, number>;
const none = (): Counts => ({ host: 0, database: 0, program: 0 });
let started = none();

/** Counts what costs seconds to start. */
export function count(what: Startable): void {
  started[what] += 1;
}

/** At the head of a file; the function that is returned writes its line. */
export function beginSpending(path: string | undefined): () => void {
  const beganMs = cpuMs();
  started = none();
  return () => {
    if (path === undefined) return;
    const spent = { cpuMs: cpuMs() - beganMs, started };
    writeLine({ kind: 'spent', file: relative(ROOT, path), spent });
  };
}

/** 0 where there is no /proc. */
function cpuMs(): number {
  try {
    const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
    const numbers = fields.split(' ');
    const ticks = CPU_FIELDS.reduce((sum, field) => sum + Number(numbers[field]), 0);
    return (ticks * 1_000) / TICKS;
  } catch {
    return 0;
  }
}
