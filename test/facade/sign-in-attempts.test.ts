// How many wrong keys are taken in the sign-in form, by the table's own clock.
import { describe, expect, it } from 'vitest';
import { createSignInAttempts, type SignInAttempts } from '../../src/facade/sign-in-attempts.ts';

const MINUTE_MS = 60_000;
const PER_ADDRESS = 10;
const IN_ALL = 100;

const tried = (attempts: SignInAttempts, times: number, address: string, atMs: number) =>
  Array.from({ length: times }, () => attempts.begin(address, atMs).kind);
const counted = (times: number) => Array.from({ length: times }, () => 'counted');

describe('architecture §10 wrong keys in the form', () => {
  it('of one address ten count, the next is refused until the first has faded', () => {
    const attempts = createSignInAttempts();
    expect(tried(attempts, 1, 'a', 0)).toEqual(counted(1));
    expect(tried(attempts, PER_ADDRESS - 1, 'a', MINUTE_MS)).toEqual(counted(PER_ADDRESS - 1));
    expect(attempts.begin('a', MINUTE_MS)).toEqual({
      kind: 'refused',
      retryAfterMs: 14 * MINUTE_MS,
    });
    // A refused one does not count: it puts nothing off.
    expect(tried(attempts, 2, 'a', 15 * MINUTE_MS)).toEqual(['counted', 'refused']);
    expect(tried(attempts, 1, 'b', 15 * MINUTE_MS)).toEqual(counted(1));
  });

  it('from however many addresses a hundred count', () => {
    const attempts = createSignInAttempts();
    const kinds = Array.from({ length: IN_ALL }, (_, at) => attempts.begin(`a${at}`, at).kind);
    expect(kinds).toEqual(counted(IN_ALL));
    expect(attempts.begin('another', IN_ALL)).toMatchObject({ kind: 'refused' });
    expect(attempts.begin('another', 15 * MINUTE_MS)).toMatchObject({ kind: 'counted' });
  });

  it('a right key takes its own attempt back, and no other', () => {
    const attempts = createSignInAttempts();
    tried(attempts, PER_ADDRESS - 1, 'a', 0);
    for (let time = 0; time < IN_ALL; time += 1) {
      const attempt = attempts.begin('a', 0);
      if (attempt.kind !== 'counted') throw new Error(attempt.kind);
      attempt.takeBack();
    }
    expect(tried(attempts, 2, 'a', 0)).toEqual(['counted', 'refused']);
  });
});
