// A flake is loud, rare and remembered; what guards data is never tried again.
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { filesAgain, flakesOf, keepFlakes, readFlakes, tooOften, type Flake } from './flakes.ts';
import type { FileResult } from './lines.ts';

const failed = (error = 'Error: late'): FileResult => ({
  ms: 1,
  tests: [
    { titles: ['a host', 'starts'], state: 'failed', ms: 1, errors: [error] },
    { titles: ['a host', 'stops'], state: 'passed', ms: 1, errors: [] },
  ],
  errors: [],
});
const flake = (at: string, test = 'starts'): Flake => ({
  ...{ file: 'test/faults/x.test.ts', message: 'late', slow: '1', commit: 'abc' },
  at,
  test,
});

describe('is run again', () => {
  const one = 'test/app/host.test.ts';
  const two = 'test/faults/processes.test.ts';
  const isProcessLevel = (file: string) => !file.includes('/rules/');
  it.each<[string, Record<string, FileResult | undefined>, readonly string[]]>([
    ['one file of the process level', { [one]: failed() }, [one]],
    ['two of them', { [one]: failed(), [two]: failed() }, [one, two]],
    ['none of three', { [one]: failed(), [two]: failed(), 'test/app/c.test.ts': failed() }, []],
    [
      'none beside a file of another level',
      { [one]: failed(), 'test/rules/a.test.ts': failed() },
      [],
    ],
    ['none where an invariant is broken', { [one]: failed('Broken: one ending') }, []],
    ['none that holds an invariant', { 'test/faults/cohorts.test.ts': failed() }, []],
    [
      'none that holds what was appended',
      { 'test/adapters/postgres-faults.test.ts': failed() },
      [],
    ],
    ['none that holds erasure', { 'test/acceptance/erasure.test.ts': failed() }, []],
    ['none that did not end', { [one]: undefined }, []],
    ['none where nothing failed', {}, []],
  ])('%s', (_, files, expected) => {
    expect(filesAgain(new Map(Object.entries(files)), isProcessLevel)).toEqual(expected);
  });
});

it('has a row for each failed test, with what it said', () => {
  const about = { slow: '1.5', commit: 'abc', at: '2026-01-01T00:00:00Z' };
  expect(flakesOf('test/app/host.test.ts', failed(), about)).toEqual([
    { file: 'test/app/host.test.ts', test: 'a host › starts', message: 'Error: late', ...about },
  ]);
  expect(flakesOf('f', { ms: 1, tests: [], errors: ['Error: hook'] }, about)).toEqual([
    { file: 'f', test: '', message: 'Error: hook', ...about },
  ]);
});

describe('stops everybody', () => {
  const name = 'test/faults/x.test.ts › starts';
  it.each([
    ['not with its second row', [flake('1'), flake('2')], []],
    ['with its third', [flake('1'), flake('2'), flake('3')], [name]],
    ['not with rows of three tests', [flake('1', 'a'), flake('2', 'b'), flake('3', 'c')], []],
    ['not when a row is kept in two places', [flake('1'), flake('2'), flake('2')], []],
    [
      'not when it was mended since',
      [flake('1'), flake('2'), flake('3'), { mended: name, at: '3' }],
      [],
    ],
    [
      'when it has three since it was mended',
      [flake('1'), { mended: name, at: '1' }, flake('2'), flake('3'), flake('4')],
      [name],
    ],
  ])('%s', (_, rows, expected) => {
    expect(tooOften(rows)).toEqual(expected);
  });
});

it('is kept in the cache, behind those that are there', async () => {
  const cache = await temporaryFolder('flakes');
  const committed = readFlakes(cache).length;
  keepFlakes(cache, [flake('1')]);
  keepFlakes(cache, [flake('2')]);
  expect(readFlakes(cache).slice(committed)).toEqual([flake('1'), flake('2')]);
});
