// Rests, limits and the pace of trying again.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BackOff, Bell, Deadline, rest, within } from '../../src/system/time.ts';

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

describe('Deadline', () => {
  afterEach(() => void vi.restoreAllMocks());
  const HOUR_MS = 3_600_000;

  it('tells what is left, and that nothing is', async () => {
    const far = new Deadline(HOUR_MS);
    expect(far.isOver()).toBe(false);
    expect(far.leftMs()).toBeGreaterThan(0);
    const over = new Deadline(0);
    expect([over.isOver(), over.leftMs()]).toEqual([true, 0]);
  });

  it('a wall clock that is set moves nothing', () => {
    const deadline = new Deadline(HOUR_MS);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 2 * HOUR_MS);
    expect(deadline.isOver()).toBe(false);
    vi.spyOn(Date, 'now').mockReturnValue(0);
    expect(deadline.leftMs()).toBeLessThanOrEqual(HOUR_MS);
  });
});

describe('Bell', () => {
  const never = new AbortController().signal;

  it('rings for who waits, and for who asks only afterwards, once', async () => {
    const bell = new Bell();
    const waiting = bell.rung(never);
    bell.ring();
    await waiting;
    bell.ring();
    await bell.rung(never);
    let rang = false;
    const next = bell.rung(never).then(() => (rang = true));
    await rest(1);
    expect(rang).toBe(false);
    bell.ring();
    await next;
  });

  it('keeps nobody behind the limit, nor behind an abort', async () => {
    const bell = new Bell();
    await bell.rung(never, 1);
    const abort = new AbortController();
    const waiting = bell.rung(abort.signal, 3_600_000);
    abort.abort();
    await waiting;
    await bell.rung(abort.signal);
  });
});
