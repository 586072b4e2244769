// `npm run mutants`: applies each chosen mutant in a copy of the tree and runs the tests that must fail. Without a word those whose
// file or test has changed since all of such a run were killed, and five others, chosen by the commit; OPENWOP_MUTANTS=all tries
// all, OPENWOP_MUTANTS=<words> those whose file, test or number (`I12`) holds one of the words, OPENWOP_MUTANTS_SEED=<n> five
// others. Exit code 1 when one survives.
import { execFile, execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { prepareDatabase } from '../support/prepare.ts';
import { ROOT } from '../support/root.ts';
import { repositoryFiles } from '../support/source-tree.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { changedSince, keepGreen, lastGreen } from '../runner/green.ts';
import { sweepPlaces, takePlace } from '../runner/place.ts';
import { concerned, named, type Choice } from './choice.ts';
import { MUTANTS, type Mutant } from './mutants.ts';
import { mutate } from './mutate.ts';
import { patient, shareSlowness } from '../support/machine.ts';

const run = promisify(execFile);
/** Longest time for one mutant, in ms. */
const LIMIT_MS = patient(180_000);

type Verdict = 'killed' | 'survived' | 'skipped' | 'broken';

function choose(): Choice {
  const words = process.env.OPENWOP_MUTANTS?.trim();
  if (words === 'all') return { chosen: MUTANTS, left: 0 };
  if (words) return { chosen: named(MUTANTS, words.split(/[\s,]+/)), left: 0 };
  const seed = process.env.OPENWOP_MUTANTS_SEED ?? seedOfCommit();
  const since = lastGreen(CACHE_DIR, 'mutants');
  const choice = concerned(MUTANTS, changedSince(since), Number(seed));
  const left = choice.left > 0 ? `, less ${choice.left} of them` : '';
  console.log(
    `mutants: of what has changed since ${since.slice(0, 12)}${left}, and others; OPENWOP_MUTANTS_SEED=${seed} chooses the same again`,
  );
  return choice;
}

/** Nobody chose: the next such run need not try what this one did. */
function isForWhatChanged(): boolean {
  return ['', 'all'].includes(process.env.OPENWOP_MUTANTS?.trim() ?? '');
}

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
    readonly message?: string;
    readonly assertionResults: readonly { readonly status: string; readonly title: string }[];
  }[];
}

/** What the killer says of the tree as it is now. Without a failed test nothing is killed, whatever broke. */
async function ask(folder: string, { killer, test }: Mutant): Promise<[Verdict, string]> {
  const outputFile = join(folder, 'mutant-report.json');
  await rm(outputFile, { force: true });
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = ['run', killer, '-t', test, '--config', 'test/mutants/vitest.config.ts'];
  args.push('--reporter=json', `--outputFile=${outputFile}`);
  const output = await run(process.execPath, [vitest, ...args], {
    cwd: folder,
    timeout: LIMIT_MS,
    maxBuffer: 2 ** 26,
  }).catch((error: unknown) => error as { stdout: string; stderr: string });
  const text = await readFile(outputFile, 'utf8').catch(() => undefined);
  if (text === undefined) return ['broken', `${output.stdout}${output.stderr}`.slice(-600)];
  const { testResults } = JSON.parse(text) as Report;
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

async function main(): Promise<void> {
  // A test that is cut off leaves its servers.
  await sweepPlaces();
  const place = takePlace();
  const folder = await mkdtemp(join(tmpdir(), 'openwop-mutants-'));
  const isRequired = (process.env.OPENWOP_TEST_REQUIRE ?? '') !== '';
  const { chosen, left } = choose();
  const counts = { killed: 0, survived: 0, skipped: 0, broken: 0 };
  try {
    await shareSlowness();
    await copyTree(folder);
    await prepareDatabase(CACHE_DIR);
    for (const mutant of chosen) {
      const startedMs = Date.now();
      const [verdict, why] = await attempt(folder, mutant);
      counts[verdict]++;
      const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
      const [line = ''] = mutant.before.trim().split('\n');
      console.log(
        `${verdict.padEnd(8)} I${mutant.invariant} ${seconds} s  ${mutant.file}: ${line}`,
      );
      if (why !== '') console.log(`         ${why.replaceAll('\n', '\n         ')}`);
    }
  } finally {
    await place.clear();
  }
  console.log(
    `mutants: ${Object.entries(counts)
      .map(([word, n]) => `${n} ${word}`)
      .join(', ')}`,
  );
  if (counts.survived + counts.broken + (isRequired ? counts.skipped : 0) > 0) process.exitCode = 1;
  else if (left + counts.skipped === 0 && isForWhatChanged()) keepGreen(CACHE_DIR, 'mutants');
}

await main();
