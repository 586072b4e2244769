// Maps of bounded size (src/system/recent.ts).
import { expect, it, vi } from 'vitest';
import { Brief, Recent } from '../../src/system/recent.ts';

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

it('keeps what is used, and drops by itself what nobody has used for its time', () => {
  vi.useFakeTimers();
  try {
    const brief = new Brief<string, number>({ limit: 2, keptMs: 100 });
    brief.set('a', 1);
    brief.set('b', 2);
    vi.advanceTimersByTime(60);
    expect(brief.get('a')).toBe(1);
    vi.advanceTimersByTime(60);
    // Nobody asked for it: it is gone all the same.
    expect(brief.size).toBe(1);
    expect([brief.get('a'), brief.get('b')]).toEqual([1, undefined]);
    brief.set('c', 3);
    brief.set('d', 4);
    expect([brief.get('a'), brief.get('c'), brief.get('d')]).toEqual([undefined, 3, 4]);
    brief.delete('c');
    vi.advanceTimersByTime(100);
    expect(brief.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
