// Rests, limits and the pace of trying again.
import { describe, expect, it } from 'vitest';
import { BackOff, rest, within } from '../../src/system/time.ts';

const never = new Promise<never>(() => undefined);
const fail = (message: string) => () => {
  throw new Error(message);
};

describe('within', () => {
  it('gives what the work gives', async () => {
    expect(await within(60_000, Promise.resolve('done'), () => 'late')).toBe('done');
  });

  it('gives or throws what is late', async () => {
    expect(await within(1, never, () => 'late')).toBe('late');
    await expect(within(1, never, fail('too late'))).rejects.toThrow('too late');
  });

  it('throws what the work throws, and is deaf to it afterwards', async () => {
    await expect(within(60_000, Promise.reject(new Error('no')), () => 'late')).rejects.toThrow(
      'no',
    );
    let reject: (error: Error) => void = () => undefined;
    const work = new Promise<never>((_, no) => (reject = no));
    expect(await within(1, work, () => 'late')).toBe('late');
    // Unhandled, this would end the test.
    reject(new Error('afterwards'));
    await rest(1);
  });
});

describe('rest', () => {
  it('ends at once on abort, also when it was aborted before', async () => {
    const abort = new AbortController();
    const resting = rest(3_600_000, abort.signal);
    abort.abort();
    await resting;
    await rest(3_600_000, abort.signal);
  });
});

describe('BackOff', () => {
  it('doubles up to its longest pause, and begins anew', () => {
    const backOff = new BackOff(100, 350);
    expect([backOff.next(), backOff.next(), backOff.next(), backOff.next()]).toEqual([
      100, 200, 350, 350,
    ]);
    backOff.reset();
    expect(backOff.next()).toBe(100);
  });
});
