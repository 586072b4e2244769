// The commit at which a check passed the last time, kept in the user's cache: what was touched since is what a quick run of the
// tests checks, and of the mutants.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/root.ts';

/** All tests, or what the mutants of a commit are. */
export type Check = 'test' | 'mutants';

/** What git's objects call a tree with nothing in it. */
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';

/** Of one checkout, with one cache. */
export class Greens {
  readonly #cacheDir: string;
  readonly #check: Check;
  readonly #root: string;
  /** The commit that is checked; absent: no repository, or changes that are in no commit. */
  readonly begun: string | undefined;

  constructor(cacheDir: string, check: Check, root: string = ROOT) {
    this.#cacheDir = cacheDir;
    this.#check = check;
    this.#root = root;
    this.begun = this.#commit();
  }

  /** All has passed. Nothing is kept where the tree is not what it was at the beginning. */
  keep(): void {
    if (this.begun === undefined || this.#commit() !== this.begun) return;
    mkdirSync(this.#cacheDir, { recursive: true });
    writeFileSync(this.#path, this.begun);
  }

  /**
   * What is new in this tree is what differs from that commit, or from where this tree left its line. Where nothing is kept: from
   * where it left the main line, else the commit before the head; for mutants, of which a bounded number is tried, everything.
   */
  since(): string {
    const kept = existsSync(this.#path) ? readFileSync(this.#path, 'utf8').trim() : '';
    const head = this.#ask('rev-parse', 'HEAD');
    const left = kept === '' ? undefined : this.#ask('merge-base', kept, 'HEAD');
    if (left !== undefined) return left;
    const main = ['origin/main', 'main'].map((name) => this.#ask('merge-base', name, 'HEAD'));
    const before = this.#check === 'mutants' ? undefined : this.#ask('rev-parse', 'HEAD~1');
    return main.find((commit) => commit !== undefined && commit !== head) ?? before ?? EMPTY_TREE;
  }

  /** Files that differ from a commit, those that are gone and those that are in no commit yet among them; from the root. */
  changedSince(commit: string): readonly string[] {
    const tracked = this.#ask('diff', '-z', '--name-only', '--no-renames', commit) ?? '';
    const added = this.#ask('ls-files', '-z', '--others', '--exclude-standard') ?? '';
    return `${tracked}\0${added}`.split('\0').filter((path) => path !== '');
  }

  /** The lines that came since a commit, of these files. */
  addedSince(commit: string, ...paths: readonly string[]): string {
    const diff = this.#ask('diff', '--unified=0', commit, '--', ...paths) ?? '';
    return diff
      .split('\n')
      .filter((line) => line.startsWith('+') && !line.startsWith('+++'))
      .map((line) => line.slice(1))
      .join('\n');
  }

  get #path(): string {
    return join(this.#cacheDir, `${this.#check}-green`);
  }

  #commit(): string | undefined {
    return this.#ask('status', '--porcelain') === '' ? this.#ask('rev-parse', 'HEAD') : undefined;
  }

  /** Undefined: git says no. */
  #ask(...args: readonly string[]): string | undefined {
    try {
      return execFileSync('git', args, {
        cwd: this.#root,
        encoding: 'utf8',
        maxBuffer: 2 ** 28,
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    } catch {
      return undefined;
    }
  }
}
