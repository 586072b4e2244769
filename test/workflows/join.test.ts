// When a join of workers is decided, and as what (RFC 0118): each mode against each way that workers end.
import { describe, expect, test } from 'vitest';
import { joinOf, type JoinOutcome } from '../../workflows/fan-out.ts';
import type { Worker } from '../../workflows/workers.ts';

type Mode = Parameters<typeof joinOf>[0]['mode'];
type Failures = 'collect' | 'absorb' | 'fail-fast';
/** Of three workers, in the order of their ends: c completed, f failed, x cancelled. */
type Ends = '' | 'c' | 'f' | 'cf' | 'cc' | 'ff' | 'fc' | 'ccc' | 'ccf' | 'fff' | 'xcc';

const STATUSES = { c: 'completed', f: 'failed', x: 'cancelled' } as const;
const workers = (ends: string): Worker[] =>
  [...ends].map((end) => ({
    ...{ workerId: 'w', step: 'w', told: '', phase: 'ended' },
    status: STATUSES[end as keyof typeof STATUSES],
  }));

const NOT_YET = undefined;
const EXPECTED: Record<Mode, Record<Ends, JoinOutcome | undefined>> = {
  'wait-all': {
    ...{ '': NOT_YET, c: NOT_YET, f: NOT_YET, cf: NOT_YET, cc: NOT_YET, ff: NOT_YET, fc: NOT_YET },
    ...{ ccc: 'satisfied', ccf: 'partial', fff: 'partial', xcc: 'partial' },
  },
  // Two of three.
  quorum: {
    ...{ '': NOT_YET, c: NOT_YET, f: NOT_YET, cf: NOT_YET, cc: 'satisfied', ff: 'failed' },
    ...{ fc: NOT_YET, ccc: 'satisfied', ccf: 'satisfied', fff: 'failed', xcc: 'satisfied' },
  },
  first: {
    ...{ '': NOT_YET, c: 'satisfied', f: NOT_YET, cf: 'satisfied', cc: 'satisfied', ff: NOT_YET },
    ...{ fc: 'satisfied', ccc: 'satisfied', ccf: 'satisfied', fff: 'failed', xcc: 'satisfied' },
  },
  race: {
    ...{ '': NOT_YET, c: 'satisfied', f: 'failed', cf: 'satisfied', cc: 'satisfied' },
    ...{ ff: 'failed', fc: 'failed', ccc: 'satisfied', ccf: 'satisfied', fff: 'failed' },
    xcc: 'failed',
  },
};

const decidedAs = (mode: Mode, ends: string, onChildFailure?: Failures) =>
  joinOf(
    {
      mode,
      ...(mode === 'quorum' ? { quorum: 2 } : {}),
      ...(onChildFailure ? { onChildFailure } : {}),
    },
    { ended: workers(ends), total: 3 },
  );

describe.each(Object.keys(EXPECTED) as Mode[])('RFC 0118 %s', (mode) => {
  test.each(Object.keys(EXPECTED[mode]) as Ends[])('of three: %j', (ends) => {
    expect(decidedAs(mode, ends)).toBe(EXPECTED[mode][ends]);
    const failed = /[fx]/.test(ends);
    expect(decidedAs(mode, ends, 'fail-fast')).toBe(failed ? 'failed' : EXPECTED[mode][ends]);
  });
});

test('RFC 0118 absorb: failures of all that are waited for count as ends', () => {
  expect(decidedAs('wait-all', 'fff', 'absorb')).toBe('satisfied');
  expect(decidedAs('first', 'fff', 'absorb')).toBe('failed');
});

test('a quorum of more than there are fails before anybody is started', () => {
  expect(joinOf({ mode: 'quorum', quorum: 4 }, { ended: [], total: 3 })).toBe('failed');
});
