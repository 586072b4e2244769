// The retry of a test run: of little, alone, and never where something else failed as well.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Line } from './lines.ts';
import { outcomeOf } from './outcome.ts';
import type { Track } from './plan.ts';
import { tryAgain } from './second-try.ts';
import { isLost } from './test-run.ts';

const FILE = 'test/app/host.test.ts';
const ABOUT = { slow: '1', commit: 'abc', at: '2026-01-01T00:00:00Z' };
const result = (state: 'passed' | 'failed', file = FILE): Line => ({
  kind: 'file',
  file,
  result: { ms: 1, tests: [{ titles: ['starts'], state, ms: 1, errors: [] }], errors: [] },
});

/** A run that came to these lines; played again, a file comes to `second`. */
function runOf(first: readonly Line[], second: 'passed' | 'failed', lost = 0) {
  const lines = [...first];
  const played: string[][] = [];
  return {
    played,
    lines,
    why: undefined,
    get outcome() {
      return outcomeOf(lines, lost);
    },
    play: (tracks: readonly Track[]): Promise<void> => {
      const files = tracks.flat().flatMap((lane) => lane.files ?? []);
      played.push(files);
      lines.push(...files.map((file) => result(second, file)));
      return Promise.resolve();
    },
  };
}

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
});

describe('a file of the process level that failed', () => {
  it('and passes alone is a flake, and counts as passed', async () => {
    const run = runOf([result('failed')], 'passed');
    expect(await tryAgain(run, [FILE], ABOUT)).toMatchObject([{ file: FILE, test: 'starts' }]);
    expect([run.played, run.outcome.failed]).toEqual([[[FILE]], 0]);
  });
  it('and fails alone is a failure', async () => {
    const run = runOf([result('failed')], 'failed');
    expect(await tryAgain(run, [FILE], ABOUT)).toEqual([]);
    expect(run.outcome.failed).toBe(1);
  });
  it.each<[string, readonly Line[], number]>([
    ['an error outside of all tests', [{ kind: 'end', errors: ['Error: x'] }], 0],
    ['a vitest that ended without a word', [], 1],
    ['a failed file in process', [result('failed', 'test/rules/a.test.ts')], 0],
  ])('is not played again beside %s', async (_, more, lost) => {
    const run = runOf([result('failed'), ...more], 'passed', lost);
    expect(await tryAgain(run, [FILE], ABOUT)).toEqual([]);
    expect(run.played).toEqual([]);
  });
});

describe('a lane that failed', () => {
  it.each<[string, readonly Line[], boolean]>([
    ['is lost when it did not come to its end', [result('failed')], true],
    ['is lost when another did', [result('failed'), { kind: 'end', lane: 'b', errors: [] }], true],
    [
      'is lost when nothing is known to have failed',
      [{ kind: 'end', lane: 'a', errors: [] }],
      true,
    ],
    ['has said why', [result('failed'), { kind: 'end', lane: 'a', errors: [] }], false],
  ])('%s', (_, lines, lost) => {
    expect(isLost(lines, 'a')).toBe(lost);
  });
});
