// A process whose wall clock is off, while it does something: what others decide about goes by a clock that all share.
import { vi } from 'vitest';

export async function withClockOff<Value>(
  byMs: number,
  work: () => Promise<Value>,
): Promise<Value> {
  const { now } = Date;
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + byMs);
  try {
    return await work();
  } finally {
    clock.mockRestore();
  }
}
