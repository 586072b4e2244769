// Long test files start first.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { heaviestFirst, SECONDS } from './order.ts';

const TESTS = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'openwop-order-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('by the table; what is not in it goes by its size', () => {
  const [longest, next] = Object.entries(SECONDS).sort(([, a], [, b]) => b - a);
  const known = [next, longest].map((row) => join(TESTS, row?.[0] ?? ''));
  const unknown = ['small', 'large'].map((name, index) => {
    const path = join(folder, `${name}.test.ts`);
    writeFileSync(path, ' '.repeat(index * 30_000));
    return path;
  });
  expect(heaviestFirst([...unknown, ...known])).toEqual([...known.reverse(), ...unknown.reverse()]);
});

it('the table names files that are there', () => {
  expect(Object.keys(SECONDS).filter((name) => !existsSync(join(TESTS, name)))).toEqual([]);
});
