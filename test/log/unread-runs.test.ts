// Since when runs of an erasure cannot be read (architecture §10.1). A deadline of an hour is not over in a test, and one of
// 0 ms is over at once: which of both counts shows what is remembered.
import { expect, it } from 'vitest';
import { UnreadRuns } from '../../src/log/unread-runs.ts';

const HOUR_MS = 3_600_000;

/** In a round of its own, with the runs of the same erasure that cannot be read besides. */
function isLate(
  unread: UnreadRuns,
  { unreadMs = 0, erasureId = 'e', isWhole = true, runs = ['r'] } = {},
): boolean[] {
  const round = unread.round(erasureId);
  const late = runs.map((runId) => round.isLate(runId, unreadMs));
  if (isWhole) round.end();
  return late;
}

function begun(): UnreadRuns {
  const unread = new UnreadRuns();
  expect(isLate(unread, { unreadMs: HOUR_MS })).toEqual([false]);
  return unread;
}

it('the time counts from the first round in which a run is not read', () => {
  const unread = begun();
  expect(isLate(unread)).toEqual([false]);
  expect(isLate(unread, { runs: ['another', 'r'] })).toEqual([true, false]);
  expect(isLate(unread, { erasureId: 'another' })).toEqual([true]);
});

it('begins again once it was read, or nothing waits for it any more', () => {
  const read = begun();
  isLate(read, { runs: [] });
  expect(isLate(read)).toEqual([true]);
  const done = begun();
  done.forget('e');
  expect(isLate(done)).toEqual([true]);
});

it('counts rounds, too: time passes also where none is made', () => {
  const away = new UnreadRuns(3);
  expect([1, 2, 3].flatMap(() => isLate(away))).toEqual([false, false, true]);
});

it('a round that was cut leaves what was there', () => {
  const unread = begun();
  isLate(unread, { runs: ['another'], unreadMs: HOUR_MS, isWhole: false });
  expect(isLate(unread, { runs: ['r', 'another'] })).toEqual([false, true]);
});

it('is remembered of a thousand runs: the others have their turn after these', () => {
  const unread = new UnreadRuns();
  const runs = Array.from({ length: 1_001 }, (_, at) => `r${at}`);
  isLate(unread, { runs, unreadMs: HOUR_MS });
  expect(isLate(unread, { runs }).filter((late) => late)).toHaveLength(1);
});
