// The table of an agent's life, whole, and the verdict on an exit.
import { describe, expect, it } from 'vitest';
import {
  AGENT_LIFE,
  Restarts,
  type LifeAction,
  type LifeEvent,
  type LifeState,
} from '../../../src/opensentience/process/agent-life.ts';
import { DEFAULT_PROCESS_LIMITS } from '../../../src/opensentience/process/limits.ts';

const EXPECTED: Record<LifeState, Record<LifeEvent, LifeAction>> = {
  starting: { opened: 'connect', closed: 'nothing', exited: 'judge', late: 'kill', stop: 'end' },
  connected: { opened: 'connect', closed: 'leave', exited: 'judge', late: 'settle', stop: 'end' },
  'backing-off': {
    opened: 'connect',
    closed: 'nothing',
    exited: 'nothing',
    late: 'launch',
    stop: 'rest',
  },
  'crash-loop': {
    opened: 'connect',
    closed: 'nothing',
    exited: 'nothing',
    late: 'nothing',
    stop: 'rest',
  },
  waiting: {
    opened: 'connect',
    closed: 'nothing',
    exited: 'nothing',
    late: 'nothing',
    stop: 'rest',
  },
  draining: { opened: 'connect', closed: 'leave', exited: 'judge', late: 'press', stop: 'nothing' },
  stopped: {
    opened: 'connect',
    closed: 'nothing',
    exited: 'nothing',
    late: 'nothing',
    stop: 'rest',
  },
};

describe('life of an agent', () => {
  it('is the table', () => expect(AGENT_LIFE).toEqual(EXPECTED));
});

describe('restart policy with back-off and a crash-loop stop', () => {
  const failed = { clean: false, hadTool: true };
  const clean = { clean: true, hadTool: true };
  const useless = { clean: false, hadTool: false };
  const restartsOf = (restart: ConstructorParameters<typeof Restarts>[0]) =>
    new Restarts(restart, DEFAULT_PROCESS_LIMITS);

  it.each([
    [undefined, clean, 'again'],
    [{ policy: 'always' }, clean, 'again'],
    [{ policy: 'on-failure' }, clean, 'stay'],
    [{ policy: 'on-failure' }, failed, 'again'],
    [{ policy: 'never' }, failed, 'stay'],
  ] as const)('%j after %j: %s', (restart, exit, kind) =>
    expect(restartsOf(restart).judge(exit, 1_000_000).kind).toBe(kind),
  );
  it('delays double up to the longest, without chance', () => {
    const restarts = restartsOf({ maxDelayMs: 4_000 });
    const delays = () =>
      Array.from({ length: 9 }, (_, n) => restarts.judge(failed, n * 100_000)).map((verdict) =>
        verdict.kind === 'again' ? verdict.delayMs : verdict.kind,
      );
    expect(delays()).toEqual([500, 1000, 2000, 4000, 4000, 4000, 4000, 4000, 4000]);
    restarts.forget();
    expect(delays().slice(0, 3)).toEqual([500, 1000, 2000]);
  });
  it('a first delay that is longer than the longest stands', () => {
    const restarts = restartsOf({ firstDelayMs: 5_000, maxDelayMs: 4_000 });
    for (const atMs of [0, 100_000])
      expect(restarts.judge(failed, atMs)).toEqual({ kind: 'again', delayMs: 5_000 });
  });
  it('five exits within a minute stop it, four do not, nor five over a longer time', () => {
    const after = (apartMs: number, count: number) => {
      const restarts = restartsOf(undefined);
      let kind = '';
      for (let n = 0; n < count; n++) ({ kind } = restarts.judge(failed, 1_000_000 + n * apartMs));
      return kind;
    };
    expect(after(10_000, 4)).toBe('again');
    expect(after(10_000, 5)).toBe('crash-loop');
    expect(after(16_000, 50)).toBe('again');
  });
  it('five starts in a row without an accepted tool stop it, however far apart', () => {
    const [hourMs, exits] = [3_600_000, DEFAULT_PROCESS_LIMITS.startsWithoutTool];
    const restarts = restartsOf({ firstDelayMs: 300_000 });
    const judge = (exit: typeof useless, n: number) => restarts.judge(exit, n * hourMs).kind;
    for (let n = 1; n < exits; n++) expect(judge(useless, n)).toBe('again');
    expect(judge(failed, exits)).toBe('again');
    for (let n = 1; n < exits; n++) expect(judge(useless, exits + n)).toBe('again');
    expect(restarts.judge(useless, 2 * exits * hourMs)).toEqual({ kind: 'crash-loop', exits });
    restarts.forget();
    expect(judge(useless, 2 * exits + 1)).toBe('again');
  });
  it('the manifest says otherwise', () => {
    const crashLoop = { exits: 2, withinMs: 1_000 };
    const restarts = restartsOf({ crashLoop, firstDelayMs: 20 });
    expect(restarts.judge(failed, 1_000)).toEqual({ kind: 'again', delayMs: 20 });
    expect(restarts.judge(failed, 1_500)).toEqual({
      ...{ kind: 'crash-loop', exits: 2, withinMs: 1_000 },
    });
    restarts.forget();
    expect(restarts.judge(failed, 1_600)).toEqual({ kind: 'again', delayMs: 20 });
    for (let n = 1; n <= 10; n++) expect(restarts.judge(useless, n * 10_000).kind).toBe('again');
  });
});
