// What the processes of a test run write down as it goes on, a line of JSON each: a limit of time or a crash loses nothing
// that was measured before.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** Path of the file; absent: nobody reads. */
export const LINES_VARIABLE = 'OPENWOP_TEST_LINES';
/** Which lane a process is of. */
export const LANE_VARIABLE = 'OPENWOP_TEST_LANE';

export type TestState = 'passed' | 'failed' | 'skipped';

export interface TestResult {
  /** Titles from the outermost `describe` to the test. */
  readonly titles: readonly string[];
  readonly state: TestState;
  readonly ms: number;
  /** `Name: message` of each error. */
  readonly errors: readonly string[];
}

export type Line =
  /** The files that a lane is going to run, from the repository's root. */
  | { readonly kind: 'queued'; readonly files: readonly string[] }
  | { readonly kind: 'file'; readonly file: string; readonly result: FileResult }
  | { readonly kind: 'spent'; readonly file: string; readonly spent: Spent }
  /** A lane came to its end, with the errors outside of every test. */
  | { readonly kind: 'end'; readonly lane?: string; readonly errors: readonly string[] };

export interface FileResult {
  readonly ms: number;
  readonly tests: readonly TestResult[];
  /** Of the file itself: it did not load, or a hook broke. */
  readonly errors: readonly string[];
}

/** What the tests of a file took of the machine. */
export interface Spent {
  /** User and system, with those of the processes that ended; 0 where that cannot be read. */
  readonly cpuMs: number;
  readonly started: Readonly<Record<Startable, number>>;
}

/** What costs seconds to start. */
export const STARTABLE = ['host', 'database', 'program'] as const;
export type Startable = (typeof STARTABLE)[number];

export function writeLine(line: Line): void {
  const path = process.env[LINES_VARIABLE];
  if (path !== undefined) appendFileSync(path, `${JSON.stringify(line)}\n`);
}

export function readLines(path: string): readonly Line[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((text) => lineOf(text) ?? []);
}

/** Nothing for one that was cut off as it was written. */
function lineOf(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}
