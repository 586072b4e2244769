// A stream of a log that was made again without the places of lost text (architecture §3.6): who goes on by a sequence that may
// have meant another event gets all from there on. [I118]
import { describe, expect, it } from 'vitest';
import type { Head } from '../../src/ports/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import { isLost, resumePoint } from '../../src/facade/event-query.ts';
import { runRow } from '../support/log-parts.ts';

const KNOWN = 'evt-000000000000000000000000007';
const UNKNOWN = 'evt-000000000000000000000000008';
const whole: RunRow = runRow('run-a');
const retold: RunRow = { ...whole, retoldFrom: 5 };
const log = {
  sequenceOf: (_: unknown, eventId: string) => Promise.resolve(eventId === KNOWN ? 7 : undefined),
};
/** `now`: what the run's row has become. */
const at = (now: RunRow, isAway = false) => ({
  ...{ log, isAway },
  runs: { find: () => Promise.resolve(now) },
});

describe('stream-modes.md: a stream goes on', () => {
  it.each([
    ['3', 3, 3],
    ['7', 7, 4],
    [KNOWN, 7, 4],
    [undefined, -1, -1],
  ])(
    'after %s: after %i, of a log that was made again from 5 on after %i',
    async (asked, after, again) => {
      expect(await resumePoint(asked, whole, at(whole))).toBe(after);
      expect(await resumePoint(asked, retold, at(retold))).toBe(again);
    },
  );

  it('after an event that is not there it is refused; where it may have been lost it begins where the log was made again', async () => {
    const unknown = { code: 'validation_error' };
    await expect(resumePoint(UNKNOWN, whole, at(whole))).rejects.toMatchObject(unknown);
    expect(await resumePoint(UNKNOWN, retold, at(retold))).toBe(4);
    // It was made again while it was read for this.
    for (const asked of [UNKNOWN, KNOWN, '7'])
      expect(await resumePoint(asked, whole, at(retold))).toBe(4);
  });

  it('after an event that history may have it is refused for now while that cannot be read', async () => {
    const away = { code: 'service_unavailable' };
    await expect(resumePoint(UNKNOWN, whole, at(whole, true))).rejects.toMatchObject(away);
    await expect(resumePoint('abc', whole, at(whole, true))).rejects.toMatchObject({
      code: 'validation_error',
    });
    expect(await resumePoint(KNOWN, whole, at(whole, true))).toBe(7);
  });

  it.each([
    [true, 'after the end of an open log', 10, 10],
    [false, 'after the end of a head that is older than what the client has', 10, 16],
    [false, 'before the end', 16, 16],
  ])('%s: all of it again, %s', async (expected, _where, read, stored) => {
    const headAt = (nextSequence: number) => ({ nextSequence, closed: false }) as Head;
    const stands = { log: { head: async () => headAt(stored) } };
    expect(await isLost(stands, whole, { head: headAt(read), asked: 15 })).toBe(expected);
    const closed = { ...headAt(read), closed: true };
    expect(await isLost(stands, whole, { head: closed, asked: 15 })).toBe(false);
  });
});
