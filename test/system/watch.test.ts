// A watch of somebody whom all of a process needs (architecture §4.1): asked at a pace, and at once where somebody doubts.
import { expect, test, vi } from 'vitest';
import { startWatch } from '../../src/system/watch.ts';

function watched() {
  const changes: boolean[] = [];
  let isThere = true;
  let asked = 0;
  const watch = startWatch({
    ask: async () => {
      asked++;
      if (!isThere) throw new Error('away');
    },
    onChange: (there) => void changes.push(there),
  });
  return { watch, changes, asked: () => asked, set: (there: boolean) => void (isThere = there) };
}

test('it is asked at once where somebody had no answer, and tells each change once', async () => {
  const { watch, changes, set } = watched();
  expect(watch.isThere()).toBe(true);
  set(false);
  watch.doubt();
  await expect.poll(() => watch.isThere()).toBe(false);
  set(true);
  await expect.poll(() => watch.isThere()).toBe(true);
  expect(changes).toEqual([false, true]);
  await watch.stop();
});

test('a doubt that is unfounded changes nothing', async () => {
  const { watch, changes, asked } = watched();
  watch.doubt();
  await expect.poll(asked).toBe(1);
  expect([watch.isThere(), changes]).toEqual([true, []]);
  await watch.stop();
});

test('one who misses a question and answers the next was busy, not away', async () => {
  const changes: boolean[] = [];
  let asked = 0;
  const watch = startWatch({
    ask: async () => {
      if (++asked % 2 === 1) throw new Error('late');
    },
    onChange: (there) => void changes.push(there),
  });
  watch.doubt();
  await expect.poll(() => asked).toBe(2);
  watch.doubt();
  await expect.poll(() => asked).toBe(4);
  expect([watch.isThere(), changes]).toEqual([true, []]);
  await watch.stop();
});

test('by itself it is asked once a second, while it is away more often', async () => {
  vi.useFakeTimers();
  const { watch, asked, set } = watched();
  await vi.advanceTimersByTimeAsync(3_000);
  expect(asked()).toBe(3);
  set(false);
  // One who does not answer is asked once more at once.
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked()).toBe(5);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked()).toBe(9);
  vi.useRealTimers();
  await watch.stop();
});

test('who waits goes on when it is back, or when told to stop waiting', async () => {
  const { watch, set } = watched();
  await watch.whenThere(new AbortController().signal);
  set(false);
  watch.doubt();
  await expect.poll(() => watch.isThere()).toBe(false);
  const leaving = new AbortController();
  const left = watch.whenThere(leaving.signal);
  leaving.abort();
  await left;
  expect(watch.isThere()).toBe(false);
  const waited = watch.whenThere(new AbortController().signal);
  set(true);
  await waited;
  expect(watch.isThere()).toBe(true);
  await watch.stop();
});
