// What each part of the campaign runs is there and names the variables that the part sets; that it still works, the campaign
// shows. And which arguments are refused.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { faultOfNumber, readArguments } from '../support/arguments.ts';
import { ROOT } from '../support/root.ts';
import { PART_NAMES, PARTS, type Part } from './parts.ts';

const SCRIPTS = { mutants: 'test/mutants/run.ts', bench: 'bench/run.ts' } as const;
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

/** The files that a part's command names. */
function filesOf(part: Part): readonly string[] {
  const { command } = part.round(1, 0);
  if (command[0] === 'npm') {
    const [, , , script = ''] = command;
    const file = SCRIPTS[script as keyof typeof SCRIPTS];
    expect(scripts[script]).toContain(file);
    return [file];
  }
  return command.filter((word) => word.includes('/'));
}

/** Variables that are read by what a file starts. */
const READ_BY_MORE: Readonly<Record<string, string>> = {
  OPENWOP_TEST_NODES: 'test/support/nodes.ts',
  OPENWOP_FUZZ_SEED: 'test/support/openapi-fuzz.ts',
  OPENWOP_FUZZ_EXAMPLES: 'test/support/openapi-fuzz.ts',
};

describe.each(PART_NAMES)('the part %s of the campaign', (name) => {
  const part: Part = PARTS[name];

  it('runs files that are there', () => {
    expect(filesOf(part)).not.toEqual([]);
    for (const file of filesOf(part))
      expect([file, existsSync(join(ROOT, file))]).toEqual([file, true]);
  });

  it('asks for tests by titles that are there', () => {
    const { command } = part.round(1, 0);
    const at = command.indexOf('-t');
    const text = filesOf(part)
      .map((file) => readFileSync(join(ROOT, file), 'utf8'))
      .join('\n');
    if (at >= 0) expect(text).toContain(command[at + 1]);
  });

  it('sets variables that these files read', () => {
    for (const variable of Object.keys(part.round(1, 0).env)) {
      const files = [...filesOf(part), READ_BY_MORE[variable] ?? []].flat();
      const texts = files.map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n');
      expect(texts).toContain(variable);
    }
  });

  it('has rounds that differ by seed and number, or one alone', () => {
    const rounds = [part.round(1, 0), part.round(1, 1), part.round(1_000, 0)];
    const different = new Set(rounds.map(({ env }) => JSON.stringify(env))).size;
    expect(different).toBe(part.isOnce ? 1 : 3);
  });
});

describe('arguments', () => {
  const options = { minutes: { type: 'string' }, seed: { type: 'string' } } as const;

  it.each([
    [['--bogus'], /^Unknown option '--bogus'\. --help shows the usage\.$/],
    [['--minutes'], /^Option '--minutes <value>' argument missing\. --help shows/],
    [
      ['--seed', '-1'],
      /^Option '--seed' argument is ambiguous\. [^\n]*\? --help shows the usage\.$/,
    ],
    [['extra'], /^Unexpected argument 'extra'\. [^\n]* --help shows the usage\.$/],
  ])('%j are refused with one line', (args, fault) => {
    const read = readArguments({ args, options });
    expect('fault' in read && read.fault).toMatch(fault);
  });

  it('others are read', () => {
    const args = ['--minutes', '2', '--seed=7'];
    expect(readArguments({ args, options })).toMatchObject({ values: { minutes: '2', seed: '7' } });
  });

  it.each(['', '-1', 'abc', '1e3', 'NaN', 'Infinity'])('"%s" is no number of 0 or more', (text) => {
    expect(faultOfNumber(text, { isWhole: false })).toContain(`not "${text}"`);
  });

  it('a seed is whole, minutes need not be', () => {
    expect(faultOfNumber('0', { isWhole: true })).toBeUndefined();
    expect(faultOfNumber('1.5', { isWhole: true })).toContain('whole');
    expect(faultOfNumber('1.5', { isWhole: false })).toBeUndefined();
  });
});
