// How many wrong keys are counted, by the table's own clock.
import { describe, expect, it } from 'vitest';
import { createWrongKeys, WRONG_AS_BEARER, type WrongKeys } from '../../src/facade/wrong-keys.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const A = '192.0.2.1';
const B = '2001:db8::1';
const MINUTE_MS = 60_000;
const LIMIT = 10;
const IN_ALL = 10_000;

const sent = (keys: WrongKeys, times: number, address: string, atMs: number) =>
  Array.from({ length: times }, () => keys.count(address, LIMIT, atMs));
const counted = (times: number) => Array.from({ length: times }, () => undefined);

describe('architecture §10 wrong keys', () => {
  it('of one address as many as the limit count, the next is refused until the first has faded', () => {
    const keys = createWrongKeys(quietLogger);
    expect(sent(keys, 1, A, 0)).toEqual(counted(1));
    expect(sent(keys, LIMIT - 1, A, MINUTE_MS)).toEqual(counted(LIMIT - 1));
    expect(keys.count(A, LIMIT, MINUTE_MS)).toBe(14 * MINUTE_MS);
    // A refused one does not count: it puts nothing off.
    expect(sent(keys, 2, A, 15 * MINUTE_MS)).toEqual([undefined, MINUTE_MS]);
    expect(sent(keys, 1, B, 15 * MINUTE_MS)).toEqual(counted(1));
  });

  it('beyond the limit of the form those of a bearer still count, and put the form off', () => {
    const keys = createWrongKeys(quietLogger);
    sent(keys, LIMIT, A, 0);
    expect(keys.count(A, WRONG_AS_BEARER, MINUTE_MS)).toBe(undefined);
    expect(keys.count(A, LIMIT, 15 * MINUTE_MS)).toBe(undefined);
    sent(keys, LIMIT - 2, A, 15 * MINUTE_MS);
    expect(keys.count(A, LIMIT, 15 * MINUTE_MS)).toBe(MINUTE_MS);
  });

  it('from however many addresses a limit in all counts', () => {
    const keys = createWrongKeys(quietLogger);
    const waits = Array.from({ length: IN_ALL }, (_, at) =>
      keys.count(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`, LIMIT, at),
    );
    expect(waits).toEqual(counted(IN_ALL));
    expect(keys.count(B, LIMIT, IN_ALL)).toBe(15 * MINUTE_MS - IN_ALL);
    expect(keys.count(B, LIMIT, 15 * MINUTE_MS)).toBe(undefined);
  });

  it('says so once in a window for an address, and once in all', () => {
    const lines: unknown[] = [];
    const keys = createWrongKeys({ ...quietLogger, warn: (...line) => void lines.push(line) });
    sent(keys, LIMIT - 1, A, 0);
    expect(lines).toEqual([]);
    // Ten in a minute, for an hour: one is refused, the others count.
    for (let at = 0; at < 60 * MINUTE_MS; at += MINUTE_MS / 10) sent(keys, 1, A, at);
    expect(lines).toHaveLength(4);
    expect(lines[0]).toEqual(['many wrong keys', { address: A, count: LIMIT, inAll: LIMIT }]);
    lines.length = 0;
    for (let at = 0; at < 2 * IN_ALL; at += 1)
      keys.count(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`, LIMIT, 60 * MINUTE_MS + at);
    expect(lines).toHaveLength(1);
    // Refused in the form for those of a bearer, none of which was too many for it.
    lines.length = 0;
    const others = createWrongKeys({ ...quietLogger, warn: (...line) => void lines.push(line) });
    for (let time = 0; time < LIMIT; time += 1) others.count(B, WRONG_AS_BEARER, 0);
    expect(lines).toHaveLength(0);
    expect([others.count(B, LIMIT, 0), lines.length]).toEqual([15 * MINUTE_MS, 1]);
  });

  it('what is no address counts as one, whatever it says', () => {
    const keys = createWrongKeys(quietLogger);
    for (let at = 0; at < LIMIT; at += 1) keys.count('x'.repeat(at), LIMIT, 0);
    expect([keys.count(undefined, LIMIT, 0), keys.count('y', LIMIT, 0)]).toEqual([
      15 * MINUTE_MS,
      15 * MINUTE_MS,
    ]);
  });
});
