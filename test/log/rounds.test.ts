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

const LOST = new HostError('history_undecodable', { reason: 'No such key.' });

describe('a turn', () => {
  // [I97]
  it('that fails is named, with its code and its reason, once while it fails so', async () => {
    const { rounds, warned, failing } = given();
    const told = { message: 'a run waits', runId: 'a' };
    expect(await rounds.turn(turn('a'), failing(LOST))).toEqual({ kind: 'failed', error: LOST });
    await rounds.turn(turn('a'), failing(LOST));
    expect(warned).toEqual([{ ...told, code: LOST.code, reason: 'HostError: No such key.' }]);
    await rounds.turn(turn('b'), failing(new Error('odd')));
    expect(warned[1]).toMatchObject({ runId: 'b', code: 'internal_error' });
    while ((await rounds.turn(turn('a'), failing(new Error('other')))).kind === 'passed');
    expect(warned[2]).toMatchObject({ ...told, code: 'internal_error' });
    while ((await rounds.turn(turn('a'), async () => undefined)).kind === 'passed');
    await rounds.turn(turn('a'), failing(LOST));
    expect(warned).toHaveLength(4);
  });

  // [I97]
  it('of what fails again and again comes less often, and always again', async () => {
    const { rounds, failing } = given();
    let passed = 0;
    const between: number[] = [];
    while (between.length < 7)
      if ((await rounds.turn(turn('a'), failing(LOST))).kind === 'passed') passed++;
      else {
        between.push(passed);
        passed = 0;
      }
    expect(between).toEqual([0, 0, 1, 3, 7, 15, 15]);
    // Another one is not passed over for it.
    expect(await rounds.turn(turn('b'), async () => undefined)).toEqual({ kind: 'done' });
  });

  // [I97]
  it('ends the round only where one who is needed answers nobody, which is told once', async () => {
    let isAway = false;
    const { rounds, warned, failing } = given(() => isAway);
    expect(await rounds.turn(turn('a'), failing(AWAY))).toEqual({ kind: 'failed', error: AWAY });
    isAway = true;
    for (const runId of ['b', 'c'])
      expect(await rounds.turn(turn(runId), failing(AWAY))).toEqual({ kind: 'away' });
    expect(warned).toMatchObject([{ runId: 'a' }, { message: 'a run waits' }]);
    const own = new HostError('internal_error');
    expect(await rounds.turn(turn('c'), failing(own))).toEqual({ kind: 'failed', error: own });
    await rounds.turn(turn('d'), async () => undefined);
    await rounds.turn(turn('b'), failing(AWAY));
    expect(warned).toHaveLength(4);
  });

  it('in which another one ended so tells no outage again', async () => {
    const { rounds, warned, failing } = given(() => true);
    for (let round = 0; round < 3; round++)
      await rounds.turn(turn('all'), () => rounds.turn(turn('a'), failing(AWAY)));
    expect(warned).toHaveLength(1);
  });

  it('of what is given out less often is never passed over', async () => {
    const warned: string[] = [];
    const warn = (message: string) => void warned.push(message);
    const logger = { ...silentLogger, warn };
    const rounds = createRounds({ logger, answers: async () => undefined, isPaced: true });
    const failing = () => Promise.reject(LOST);
    for (let round = 0; round < 4; round++)
      expect((await rounds.turn(turn('a'), failing)).kind).toBe('failed');
    expect(warned).toHaveLength(1);
  });

  it('remembers ten thousand faults, and says once that there are more', async () => {
    const { rounds, warned, failing } = given();
    for (let at = 0; at < 10_100; at++) await rounds.turn(turn(`r${at}`), failing(new Error('x')));
    expect(warned).toHaveLength(10_001);
    expect(warned.at(-1)).toEqual({ message: 'more things fail than can be named', named: 10_000 });
    // Those that came no more are gone, and others are named again.
    for (let at = 0; at < 200_000; at++) await rounds.turn(turn('well'), async () => undefined);
    await rounds.turn(turn('new'), failing(new Error('x')));
    expect(warned.at(-1)).toMatchObject({ runId: 'new' });
  });
});
