// Rounds in which each thing has its turn by itself (src/log/rounds.ts).
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createRounds } from '../../src/log/rounds.ts';
import { silentLogger } from '../support/log-parts.ts';

const AWAY = new HostError('service_unavailable');
const turn = (runId: string) => ({ message: 'a run waits', fields: { runId } });

function given(isAway: () => boolean = () => false) {
  const warned: object[] = [];
  const rounds = createRounds({
    logger: {
      ...silentLogger,
      warn: (message, fields) => void warned.push({ message, ...fields }),
    },
    answers: async () => {
      if (isAway()) throw AWAY;
    },
  });
  const failing = (error: Error) => () => Promise.reject(error);
  return { rounds, warned, failing };
}

describe('a turn', () => {
  // [I97]
  it('that fails is named, with its code and its reason, once while it fails', async () => {
    const { rounds, warned, failing } = given();
    const lost = new HostError('history_undecodable', { reason: 'No such key.' });
    const told = { message: 'a run waits', runId: 'a', code: lost.code };
    for (let round = 0; round < 3; round++)
      expect(await rounds.turn(turn('a'), failing(lost))).toEqual({ kind: 'failed', error: lost });
    expect(warned).toEqual([{ ...told, reason: 'HostError: No such key.' }]);
    await rounds.turn(turn('b'), failing(new Error('odd')));
    expect(warned[1]).toMatchObject({ runId: 'b', code: 'internal_error' });
    expect(await rounds.turn(turn('a'), async () => undefined)).toEqual({ kind: 'done' });
    await rounds.turn(turn('a'), failing(lost));
    expect(warned).toHaveLength(3);
  });

  // [I97]
  it('ends the round only where nobody answers at all', async () => {
    let isAway = false;
    const { rounds, warned, failing } = given(() => isAway);
    expect(await rounds.turn(turn('a'), failing(AWAY))).toEqual({ kind: 'failed', error: AWAY });
    isAway = true;
    expect(await rounds.turn(turn('b'), failing(AWAY))).toEqual({ kind: 'away' });
    expect(warned).toMatchObject([{ runId: 'a' }]);
    const own = new HostError('internal_error');
    expect(await rounds.turn(turn('c'), failing(own))).toEqual({ kind: 'failed', error: own });
  });

  it('remembers a thousand faults, and not every one there ever was', async () => {
    const { rounds, warned, failing } = given();
    for (let at = 0; at <= 1_000; at++) await rounds.turn(turn(`r${at}`), failing(new Error('x')));
    await rounds.turn(turn('r1000'), failing(new Error('x')));
    expect(warned).toHaveLength(1_001);
    await rounds.turn(turn('r0'), failing(new Error('x')));
    expect(warned).toHaveLength(1_002);
  });
});
