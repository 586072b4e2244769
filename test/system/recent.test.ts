// A map of bounded size (src/system/recent.ts).
import { expect, it } from 'vitest';
import { Recent } from '../../src/system/recent.ts';

it('above its limit drops what was used longest ago', () => {
  const recent = new Recent<string, number | undefined>(2);
  recent.set('a', 1);
  recent.set('b', undefined);
  expect(recent.get('a')).toBe(1);
  recent.set('c', 3);
  expect([recent.has('a'), recent.has('b'), recent.has('c')]).toEqual([true, false, true]);
  recent.set('b', undefined);
  expect([recent.has('a'), recent.get('b'), recent.has('b')]).toEqual([false, undefined, true]);
});

it('changes each of its entries in its place', () => {
  const recent = new Recent<string, string>(2);
  recent.set('a', 'x');
  recent.set('b', 'y');
  recent.update((key, value) => key + value);
  recent.set('c', 'z');
  expect([recent.get('a'), recent.get('b')]).toEqual([undefined, 'by']);
  recent.delete('b');
  expect(recent.has('b')).toBe(false);
});
