// Places for steps behind a watch (architecture §4.1), as the SDK asks for them.
import { expect, test } from 'vitest';
import type { SlotReserveContext, SlotReleaseContext, ActivitySlotInfo } from '@temporalio/worker';
import { gatedSlots } from '../../src/adapters/temporal/gated-slots.ts';

const CONTEXT = {} as SlotReserveContext;
const RELEASED = { permit: {} } as SlotReleaseContext<ActivitySlotInfo>;

function gated(places: number) {
  let isThere = true;
  const waiting = new Set<() => void>();
  const slots = gatedSlots(places, {
    isThere: () => isThere,
    whenThere: (signal) =>
      new Promise((resolve) => {
        if (isThere || signal.aborted) return resolve();
        waiting.add(resolve);
        signal.addEventListener('abort', () => resolve());
      }),
  });
  return {
    reserve: (signal = new AbortController().signal) => slots.reserveSlot(CONTEXT, signal),
    tryReserve: () => slots.tryReserveSlot(CONTEXT),
    release: () => slots.releaseSlot(RELEASED),
    set: (there: boolean) => {
      isThere = there;
      if (there) for (const wake of waiting) wake();
    },
  };
}

/** Whether it is settled by now, and how. */
async function now(promise: Promise<unknown>): Promise<string> {
  const settled = promise.then(
    () => 'taken',
    (error: Error) => error.name,
  );
  return Promise.race([settled, new Promise<string>((resolve) => setImmediate(resolve, 'waits'))]);
}

test('no place is given while the store is away, and all are again when it is back [I98]', async () => {
  const { reserve, tryReserve, set } = gated(2);
  set(false);
  const asked = reserve();
  expect([await now(asked), tryReserve()]).toEqual(['waits', null]);
  set(true);
  expect(await now(asked)).toBe('taken');
  expect(tryReserve()).toEqual({});
});

test('no more places are given than there are; one that is given back goes to who waits', async () => {
  const { reserve, tryReserve, release } = gated(1);
  await reserve();
  const next = reserve();
  expect([await now(next), tryReserve()]).toEqual(['waits', null]);
  release();
  expect(await now(next)).toBe('taken');
});

test('who waits for the store when a place is given back still waits for the store', async () => {
  const { reserve, release, set } = gated(1);
  await reserve();
  const next = reserve();
  set(false);
  release();
  expect(await now(next)).toBe('waits');
  set(true);
  expect(await now(next)).toBe('taken');
});

test.each([true, false])(
  'a question that the SDK takes back is answered with its own reason (store there: %s)',
  async (there) => {
    const { reserve, set } = gated(1);
    await reserve();
    set(there);
    const leaving = new AbortController();
    const asked = reserve(leaving.signal);
    expect(await now(asked)).toBe('waits');
    leaving.abort();
    await expect(asked).rejects.toBe(leaving.signal.reason);
  },
);

test('who is woken for a place and leaves in the same breath wakes the next', async () => {
  const { reserve, release } = gated(1);
  await reserve();
  const leaving = new AbortController();
  const first = reserve(leaving.signal);
  const second = reserve();
  expect(await now(second)).toBe('waits');
  release();
  leaving.abort();
  await expect(first).rejects.toBe(leaving.signal.reason);
  expect(await now(second)).toBe('taken');
});
