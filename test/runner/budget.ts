// What the tests may start, in counts: seconds are the machine's, counts are ours. What is over it is a failure of the run: it
// starts less, moves to a lower rung or to the campaign, or has a row here with its reason.
import { STARTABLE, type Line, type Startable } from './lines.ts';
import { spentOf } from './outcome.ts';

type Counts = Readonly<Record<Startable, number>>;

/** Of one file. */
const FILE: Counts = { host: 3, database: 4, program: 4 };

/** Files that start more, each because every start is a case. */
export const EXCEPTIONS: Readonly<Record<string, Partial<Counts>>> = {
  // Each build of the worker is a host.
  'test/acceptance/builds.test.ts': { host: 4 },
  'test/acceptance/builds-life.test.ts': { host: 13 },
  'test/acceptance/cohort-builds.test.ts': { host: 5 },
  // Each ends keys for all that is in the database.
  'test/adapters/subjects.test.ts': { database: 6 },
  'test/runs/erasure-keeper.test.ts': { database: 8 },
  // What was killed is started again, and so is one that found its database away: a few more by chance.
  'test/faults/sigkill-rounds.test.ts': { program: 8 },
  'test/faults/processes.test.ts': { program: 10 },
  'test/faults/opensentience.test.ts': { program: 8 },
  // Each command is a program.
  'test/app/commands.test.ts': { program: 11 },
};

/** Of all files of `npm test`. */
const ALL: Counts = { host: 105, database: 198, program: 69 };

/** A sentence for each count that is over: the files alone, or all of them where the run was whole. */
export function overBudget(
  lines: readonly Line[],
  isWhole: boolean,
  { file: perFile, all, exceptions }: Budget = { file: FILE, all: ALL, exceptions: EXCEPTIONS },
): readonly string[] {
  const found: string[] = [];
  const sums: Record<Startable, number> = { host: 0, database: 0, program: 0 };
  for (const [file, { started }] of spentOf(lines)) {
    for (const what of STARTABLE) {
      sums[what] += started[what];
      const most = exceptions[file]?.[what] ?? perFile[what];
      if (started[what] > most) found.push(sentence(file, what, [started[what], most]));
    }
  }
  for (const what of STARTABLE)
    if (isWhole && sums[what] > all[what])
      found.push(sentence('npm test', what, [sums[what], all[what]]));
  return found;
}

interface Budget {
  readonly file: Counts;
  readonly all: Counts;
  readonly exceptions: Readonly<Record<string, Partial<Counts>>>;
}

function sentence(who: string, what: Startable, [count, most]: readonly [number, number]): string {
  return `${who} starts ${count} ${what}s; the budget is ${most} (test/runner/budget.ts).`;
}
