// The commit at which a check passed the last time, kept in the user's cache: what was touched since is what a quick run of the
// tests checks, and of the mutants.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/root.ts';

/** All tests, or what the mutants of a commit are. */
export type Check = 'test' | 'mutants';

const pathOf = (cacheDir: string, check: Check) => join(cacheDir, `${check}-green`);

/** Nothing is kept of a tree with changes that are in no commit. */
export function keepGreen(cacheDir: string, check: Check): void {
  if (git('status', '--porcelain') !== '') return;
  mkdirSync(cacheDir, { recursive: true });
  writeFileSync(pathOf(cacheDir, check), git('rev-parse', 'HEAD'));
}

/** That commit where this tree descends from it; else the one before the head, where there is one. */
export function lastGreen(cacheDir: string, check: Check): string {
  const path = pathOf(cacheDir, check);
  const commit = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (isThere('merge-base', '--is-ancestor', commit, 'HEAD')) return commit;
  return git('rev-parse', isThere('rev-parse', 'HEAD~1') ? 'HEAD~1' : 'HEAD');
}

/** Files that differ from a commit, those that are in no commit yet among them; from the root. */
export function changedSince(commit: string): readonly string[] {
  const tracked = git('diff', '--name-only', '--diff-filter=d', commit);
  const added = git('ls-files', '--others', '--exclude-standard');
  return `${tracked}\n${added}`.split('\n').filter((path) => path !== '');
}

function isThere(...args: string[]): boolean {
  try {
    git(...args);
    return true;
  } catch {
    return false;
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
