// `npm run mutants`: applies each chosen mutant in a copy of the tree and runs the tests that must fail. Without a word
// those whose file or test has changed since all of such a run were killed, 30 at most, and four or five others, chosen by the
// commit; OPENWOP_MUTANTS=all tries all, OPENWOP_MUTANTS=<words> those of such a number (`I12`) or whose file or test has one of the
// words in its name, OPENWOP_MUTANTS_SEED=<n> chooses others. Exit code 1 when one survives, 2 when a word means no mutant.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { faultOfNumber, refuse } from '../support/arguments.ts';
import { prepareDatabase } from '../support/prepare.ts';
import { ROOT } from '../support/root.ts';
import { repositoryFiles } from '../support/source-tree.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { Greens } from '../runner/green.ts';
import { inPlace } from '../runner/place.ts';
import { brokenBefore, concerned, faultOfWords, named, wordsOf, type Choice } from './choice.ts';
import { MUTANTS, type Mutant } from './mutants.ts';
import { mutate } from './mutate.ts';
import { patient, shareSlowness } from '../support/machine.ts';

const run = promisify(execFile);
/** Longest time for one mutant, in ms. */
const LIMIT_MS = 180_000;
/** Of all tests that kill the chosen ones, before any line is changed, in ms. */
const CONTROL_LIMIT_MS = 20 * 60_000;
/** No further mutant of a change is begun so long after the first, in ms: what is left is named. */
const BEGIN_LIMIT_MS = 10 * 60_000;

type Verdict = 'killed' | 'survived' | 'skipped' | 'broken';

const greens = new Greens(CACHE_DIR, 'mutants');
const WORDS = wordsOf(process.env.OPENWOP_MUTANTS);
const ARE_ALL = WORDS.length === 1 && WORDS[0] === 'all';

function choose(): Choice {
  const [word] = process.argv.slice(2);
  if (word !== undefined)
    return refuse(`takes no argument (${word}): OPENWOP_MUTANTS=${word} names mutants`);
  if (ARE_ALL) return { chosen: MUTANTS, left: 0 };
  if (WORDS.length > 0) {
    const fault = faultOfWords(MUTANTS, WORDS);
    return fault === undefined ? { chosen: named(MUTANTS, WORDS), left: 0 } : refuse(fault);
  }
  const seed = process.env.OPENWOP_MUTANTS_SEED || seedOfCommit();
  const fault = faultOfNumber(seed, { isWhole: true });
  if (fault !== undefined) return refuse(`OPENWOP_MUTANTS_SEED is ${fault}`);
  const since = greens.since();
  const change = {
    files: greens.changedSince(since),
    rows: greens.addedSince(since, 'test/mutants'),
    textOf: (path: string) => readFileSync(join(ROOT, path), 'utf8'),
  };
  const choice = concerned(MUTANTS, change, Number(seed));
  const left = choice.left > 0 ? `, less ${choice.left} of them` : '';
  console.log(
    `mutants: of what has changed since ${since.slice(0, 12)}${left}, and others; OPENWOP_MUTANTS_SEED=${seed} chooses the same again`,
  );
  return choice;
}

const IS_BOUNDED = WORDS.length === 0;
/** Nobody chose: the next such run need not try what this one did. */
const IS_FOR_WHAT_CHANGED = WORDS.length === 0 || ARE_ALL;

function seedOfCommit(): string {
  const head = execFileSync('git', ['rev-parse', '--short=6', 'HEAD'], { cwd: ROOT });
  return String(Number.parseInt(head.toString(), 16));
}

/** The files that git knows or would take in; node_modules is linked. A repository, since some tests ask git. */
async function copyTree(to: string): Promise<void> {
  for (const path of repositoryFiles('.')) {
    await mkdir(join(to, dirname(path)), { recursive: true });
    await cp(join(ROOT, path), join(to, path));
  }
  await symlink(join(ROOT, 'node_modules'), join(to, 'node_modules'));
  await run('git', ['init', '--quiet'], { cwd: to });
}

interface Report {
  readonly testResults: readonly {
    /** Absolute path of the test file. */
    readonly name: string;
    readonly message?: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

/** What the tests of such a name say of the tree as it is now; without a report, the last that was printed. */
async function play(
  folder: string,
  files: readonly string[],
  { test, limitMs }: { test: string; limitMs: number },
): Promise<Report | string> {
  const outputFile = join(folder, 'mutant-report.json');
  await rm(outputFile, { force: true });
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = ['run', ...files, '-t', test, '--config', 'test/mutants/vitest.config.ts'];
  args.push('--reporter=json', `--outputFile=${outputFile}`);
  const output = await run(process.execPath, [vitest, ...args], {
    cwd: folder,
    timeout: patient(limitMs),
    maxBuffer: 2 ** 26,
  }).catch((error: unknown) => error as { stdout: string; stderr: string });
  const text = await readFile(outputFile, 'utf8').catch(() => undefined);
  return text === undefined
    ? `${output.stdout}${output.stderr}`.slice(-600)
    : (JSON.parse(text) as Report);
}

/** Mutants whose tests fail while no line is changed, and what those say. The tests of all run at once. */
async function failingAnyway(
  folder: string,
  chosen: readonly Mutant[],
): Promise<ReadonlyMap<Mutant, string>> {
  const files = [...new Set(chosen.map(({ killer }) => killer))];
  if (files.length === 0) return new Map();
  const test = [...new Set(chosen.map((one) => `(?:${one.test})`))].join('|');
  const report = await play(folder, files, { test, limitMs: CONTROL_LIMIT_MS });
  if (typeof report === 'string') throw new Error(`The tests said nothing at first: ${report}`);
  const failed = report.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map((one) => ({ ...one, file: relative(realpathSync(folder), realpathSync(name)) })),
  );
  return brokenBefore(chosen, failed);
}

/** What the killer says. Without a failed test nothing is killed, whatever broke. */
async function ask(folder: string, { killer, test }: Mutant): Promise<[Verdict, string]> {
  const report = await play(folder, [killer], { test, limitMs: LIMIT_MS });
  if (typeof report === 'string') return ['broken', report];
  const { testResults } = report;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  if (tests.some(({ status }) => status === 'failed')) return ['killed', ''];
  if (tests.some(({ status }) => status === 'passed')) return ['survived', ''];
  const message = testResults.map(({ message: said }) => said ?? '').join('');
  if (message !== '') return ['broken', message.slice(0, 600)];
  return tests.length > 0
    ? ['skipped', 'no such test, or its twin is missing']
    : ['broken', 'no tests'];
}

async function attempt(folder: string, mutant: Mutant): Promise<[Verdict, string]> {
  const path = join(folder, mutant.file);
  // Of the copy: the tree may go on meanwhile.
  const original = await readFile(path, 'utf8');
  const mutated = mutate(mutant, original);
  if ('fault' in mutated) return ['broken', mutated.fault];
  await unlink(path);
  await writeFile(path, mutated.text);
  try {
    return await ask(folder, mutant);
  } finally {
    await writeFile(path, original);
  }
}

/** Tries them in order. `late`: how many there was no time for. */
async function tryAll(
  chosen: readonly Mutant[],
): Promise<{ readonly counts: Record<Verdict, number>; readonly late: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'openwop-mutants-'));
  const counts = { killed: 0, survived: 0, skipped: 0, broken: 0 };
  let late = 0;
  await shareSlowness();
  await copyTree(folder);
  await prepareDatabase(CACHE_DIR);
  const failing = await failingAnyway(folder, chosen);
  const until = IS_BOUNDED ? Date.now() + BEGIN_LIMIT_MS : Infinity;
  for (const mutant of chosen) {
    const startedMs = Date.now();
    if (startedMs > until) {
      console.log(`not tried, the time was over: I${mutant.invariant} ${mutant.file}`);
      late++;
      continue;
    }
    const failure = failing.get(mutant);
    const [verdict, why] =
      failure === undefined ? await attempt(folder, mutant) : (['broken', failure] as const);
    counts[verdict]++;
    const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
    const [line = ''] = mutant.before.trim().split('\n');
    console.log(`${verdict.padEnd(8)} I${mutant.invariant} ${seconds} s  ${mutant.file}: ${line}`);
    if (why !== '') console.log(`         ${why.replaceAll('\n', '\n         ')}`);
  }
  return { counts, late };
}

async function main(): Promise<void> {
  const { chosen, left } = choose();
  const isRequired = (process.env.OPENWOP_TEST_REQUIRE ?? '') !== '';
  // A test that is cut off leaves its servers.
  const { counts, late } = await inPlace(() => tryAll(chosen));
  console.log(
    `mutants: ${Object.entries(counts)
      .map(([word, n]) => `${n} ${word}`)
      .join(', ')}`,
  );
  if (counts.survived + counts.broken + (isRequired ? counts.skipped : 0) > 0) process.exitCode = 1;
  else if (left + late + counts.skipped === 0 && IS_FOR_WHAT_CHANGED) greens.keep();
}

await main();
