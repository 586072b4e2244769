// What counts as changed is never less than what was not tested.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { Greens } from './green.ts';

let root = '';
let cache = '';

function git(...args: string[]): string {
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.com'];
  return execFileSync('git', [...who, ...args], { cwd: root, encoding: 'utf8' }).trim();
}

/** A commit that adds a file; its hash. */
function add(name: string): string {
  writeFileSync(join(root, name), name);
  git('add', '.');
  git('commit', '--quiet', '-m', name);
  return git('rev-parse', 'HEAD');
}

const greens = (check: 'test' | 'mutants' = 'test') => new Greens(cache, check, root);
const changed = (check?: 'test' | 'mutants') => {
  const all = greens(check);
  return [...all.changedSince(all.since())].sort();
};

beforeEach(async () => {
  const folder = await temporaryFolder('green');
  root = join(folder, 'tree');
  cache = join(folder, 'cache');
  mkdirSync(root);
  git('init', '--quiet', '--initial-branch=main');
  add('a.ts');
});

describe('a commit is kept as green', () => {
  it('when nothing has changed since it was begun', () => {
    const green = greens();
    green.keep();
    add('b.ts');
    expect(changed()).toEqual(['b.ts']);
  });
  it.each<[string, () => void]>([
    ['not when another was made meanwhile', () => void add('c.ts')],
    ['not when a file was changed meanwhile', () => writeFileSync(join(root, 'a.ts'), 'x')],
  ])('%s', (_, meanwhile) => {
    add('b.ts');
    const green = greens();
    meanwhile();
    green.keep();
    git('add', '.');
    git('commit', '--quiet', '--allow-empty', '-m', 'last');
    add('d.ts');
    expect(greens().since()).toBe(git('rev-parse', 'HEAD~1'));
  });
});

describe('what has changed', () => {
  it('is all that a branch brings, where it left what was green', () => {
    greens().keep();
    git('checkout', '--quiet', '-b', 'other');
    for (const name of ['b.ts', 'c.ts', 'd.ts']) add(name);
    expect(changed()).toEqual(['b.ts', 'c.ts', 'd.ts']);
    git('checkout', '--quiet', 'main');
    add('e.ts');
    git('checkout', '--quiet', 'other');
    git('rebase', '--quiet', 'main');
    expect(changed()).toEqual(['b.ts', 'c.ts', 'd.ts', 'e.ts']);
  });
  it('is all since the main line, where nothing is kept', () => {
    git('checkout', '--quiet', '-b', 'other');
    for (const name of ['b.ts', 'c.ts']) add(name);
    expect(changed()).toEqual(['b.ts', 'c.ts']);
  });
  it('is the last commit on the main line, where nothing is kept; for mutants everything', () => {
    for (const name of ['b.ts', 'c.ts']) add(name);
    expect(changed()).toEqual(['c.ts']);
    expect(changed('mutants')).toEqual(['a.ts', 'b.ts', 'c.ts']);
  });
  it('has files that are gone, that git does not know yet, and names of any letters', () => {
    greens().keep();
    rmSync(join(root, 'a.ts'));
    writeFileSync(join(root, 'ü b.ts'), '');
    expect(changed()).toEqual(['a.ts', 'ü b.ts']);
  });
});
