// The one retry of a test run (flakes.ts says of what): each failed file alone, when all else has ended.
import { filesAgain, flakesOf, type Flake } from './flakes.ts';
import { outcomeOf, resultsOf } from './outcome.ts';
import { processes } from './plan.ts';
import type { TestRun } from './test-run.ts';

/**
 * Plays failed files of the process level once more, each alone, where they are all that failed: what passes then is a flake, and
 * counts as it ended.
 */
export async function tryAgain(
  run: Pick<TestRun, 'lines' | 'outcome' | 'why' | 'play'>,
  processFiles: readonly string[],
  about: Pick<Flake, 'slow' | 'commit' | 'at'>,
): Promise<readonly Flake[]> {
  const results = resultsOf(run.lines);
  const failed = new Map(run.outcome.failures.map((file) => [file, results.get(file)]));
  const ofProcesses = new Set(processFiles);
  const files = run.why === undefined ? filesAgain(failed, (file) => ofProcesses.has(file)) : [];
  if (files.length === 0 || run.outcome.failed > failedIn(run, files)) return [];
  const flakes: Flake[] = [];
  for (const file of files) {
    console.log(`\n${file} failed; once more, alone:`);
    await run.play([[processes([file])]], []);
    const before = failed.get(file);
    if (!run.outcome.failures.includes(file) && before)
      flakes.push(...flakesOf(file, before, about));
  }
  return flakes;
}

/** Failures that these files explain. */
function failedIn({ lines }: Pick<TestRun, 'lines'>, files: readonly string[]): number {
  return outcomeOf(lines.filter((line) => line.kind === 'file' && files.includes(line.file)))
    .failed;
}
