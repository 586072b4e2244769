// `npm run quick`: checks what the working tree and the commits since the last green run touched, in about two minutes on a quiet
// machine: types, lint and format, and the tests in process that import it. The nearest and the shortest are chosen, and run the
// longest first. It names what it left out.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { inProcessTestFiles, testFiles } from '../support/projects.ts';
import { ROOT } from '../support/root.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { readDurations } from './durations.ts';
import { Greens } from './green.ts';
import { inProcess } from './plan.ts';
import { lastLine } from './outcome.ts';
import { choose, testsWithoutImport } from './quick-choice.ts';
import { withServers, type Closing, type Surroundings } from './servers.ts';
import type { TestRun } from './test-run.ts';

/** All of it, in ms on a machine of factor 1, and on any. */
const LIMIT_MS = 110_000;
const LONGEST_MS = 4 * 60_000;
/** Seconds of files for which there is time, in ms: two workers, beside the static checks. */
const FILES_MS = 120_000;
const KEPT = join(CACHE_DIR, 'quick');
const MAX_BYTES = 2 ** 26;
const run = promisify(execFile);
/** No compiled code in the temporary folder, which others may write. */
const WITHOUT_CACHE = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' };

type Check = readonly [name: string, command: readonly string[]];

function staticChecks(changed: readonly string[]): readonly Check[] {
  const here = changed.filter((path) => existsSync(join(ROOT, path)));
  const sources = here.filter((path) => /\.[cm]?[jt]s$/.test(path));
  const types = ['tsc', '--noEmit', '--incremental', '--tsBuildInfoFile', join(KEPT, 'types')];
  const lint = ['eslint', '--max-warnings', '0', '--no-warn-ignored', '--cache'];
  const keepLint = ['--cache-strategy', 'content', '--cache-location', join(KEPT, 'lint')];
  return [
    ['types', types],
    ...(sources.length > 0 ? [['lint', [...lint, ...keepLint, ...sources]] as const] : []),
    ...(here.length > 0
      ? [['format', ['prettier', '--check', '--ignore-unknown', ...here]] as const]
      : []),
  ];
}

/** What a failed check said, which is a failure of the run; `left` where the time was over before it ended. */
type Said = { readonly fault: string } | { readonly left: string } | undefined;

async function check([name, [program = '', ...args]]: Check, limitMs: number): Promise<Said> {
  const path = join(ROOT, 'node_modules/.bin', program);
  try {
    await run(path, args, {
      cwd: ROOT,
      env: WITHOUT_CACHE,
      maxBuffer: MAX_BYTES,
      timeout: limitMs,
    });
    return undefined;
  } catch (error) {
    const { stdout, stderr, killed } = error as { stdout: string; stderr: string; killed: boolean };
    return killed ? { left: name } : { fault: `${name}:\n${stdout}${stderr}`.trim() };
  }
}

const isCode = (path: string): boolean => /\.([cm]?[jt]s|sql|json)$/.test(path);

/** Test files in process that import, however far, what differs from the commit. */
function testsOf(commit: string, hasServer: boolean): readonly string[] {
  const path = join(KEPT, 'list.json');
  const projects = inProcess(hasServer).projects.map((name) => `--project=${name}`);
  const args = [
    'vitest',
    'list',
    ...projects,
    '--changed',
    commit,
    '--filesOnly',
    `--json=${path}`,
  ];
  execFileSync('npx', ['--no-install', ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const listed = JSON.parse(readFileSync(path, 'utf8')) as { file: string }[];
  return listed.map(({ file }) => relative(ROOT, file));
}

async function quick(tests: TestRun, { hasServer, slow }: Surroundings): Promise<Closing> {
  const limitMs = Math.min(LONGEST_MS, LIMIT_MS * Number(slow));
  mkdirSync(KEPT, { recursive: true });
  const greens = new Greens(CACHE_DIR, 'test');
  const commit = greens.since();
  const changed = greens.changedSince(commit);
  console.log(`${changed.length} files differ from ${commit.slice(0, 9)}.`);
  const checking = Promise.all(staticChecks(changed).map((one) => check(one, limitMs)));
  const names = changed.map((path) => basename(path).replace(/\..*$/, ''));
  const more = testsWithoutImport(changed, testFiles());
  const inHere = new Set(hasServer ? inProcessTestFiles() : []);
  const near = new Set([...testsOf(commit, hasServer), ...more.filter((file) => inHere.has(file))]);
  const { chosen, left } = choose([...near], {
    names,
    durations: readDurations(CACHE_DIR),
    budgetMs: FILES_MS,
  });
  if (chosen.length > 0) await tests.play([[inProcess(hasServer)]], chosen);
  const said = (await checking).filter((one) => one !== undefined);
  const faults = said.flatMap((one) => ('fault' in one ? [one.fault] : []));
  const { outcome, why } = tests;
  const lines = [...faults, ...tests.failures];
  if (why !== undefined) lines.push(why);
  const late = said.flatMap((one) => ('left' in one ? [one.left] : []));
  const elsewhere = more.filter((file) => !near.has(file));
  const unseen = [...late, ...left, ...elsewhere, ...outcome.cutOff];
  if (unseen.length > 0) lines.push(`Left out, for npm test: ${unseen.join(', ')}`);
  if (near.size === 0 && changed.some(isCode))
    lines.push('No test in process imports what has changed: npm test holds it.');
  // What the limit cut off is left out, not failed, where anything had the time to pass.
  const isHung = outcome.passed === 0 && outcome.cutOff.length > 0;
  const failed = outcome.failed - (isHung ? 0 : outcome.cutOff.length) + faults.length;
  lines.push(lastLine({ ...outcome, failed }));
  return { lines, code: failed > 0 ? 1 : 0 };
}

process.exitCode = await withServers({ limitMs: LIMIT_MS, longestMs: LONGEST_MS }, quick);
