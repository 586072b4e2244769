// The clock of Core's waits and limits (architecture §1): ms since the epoch that never go back, whatever becomes of
// the system's clock meanwhile. What operators read, and what other processes compare, is dated by the system's.

export function nowMs(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}
