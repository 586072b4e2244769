// The machine factor: limits that end a wait grow on a slow machine, and never shrink.
import { describe, expect, it } from 'vitest';
import { factorFrom, measureSlowness } from './machine.ts';

describe('the machine factor', () => {
  it.each([
    ['two free cores', [{ workMs: 1_000, lateMs: 4 }], 1],
    ['a faster machine', [{ workMs: 300, lateMs: 1 }], 1],
    ['other work beside it: the slowest process counts', [1_100, 1_740, 900], 1.7],
    ['timers that come late', [{ workMs: 900, lateMs: 130 }], 2.6],
    ['a machine that stands still', [{ workMs: 60_000, lateMs: 9_000 }], 6],
  ] as const)('%s', (_what, measured, factor) => {
    const all = measured.map((one) => (typeof one === 'number' ? { workMs: one, lateMs: 4 } : one));
    expect(factorFrom(all)).toBe(factor);
  });

  it('is measured on this machine', async () => {
    const factor = await measureSlowness();
    expect(factor).toBeGreaterThanOrEqual(1);
    expect(factor).toBeLessThanOrEqual(6);
  });
});
