// The table of an agent's life, whole, and the verdict on an exit.
import { describe, expect, it } from 'vitest';
import {
  AGENT_LIFE,
  judgeExit,
  NO_EXITS,
  type ExitRecord,
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
  const failed = { clean: false, reason: 'exit code 1' };
  const clean = { clean: true, reason: 'exit code 0' };
  const judge = (
    restart: Parameters<typeof judgeExit>[0],
    exit = failed,
    before: ExitRecord = NO_EXITS,
    nowMs = 1_000_000,
  ) => judgeExit(restart, { exit, before, nowMs }, DEFAULT_PROCESS_LIMITS);

  it.each([
    [undefined, clean, 'again'],
    [{ policy: 'always' }, clean, 'again'],
    [{ policy: 'on-failure' }, clean, 'stay'],
    [{ policy: 'on-failure' }, failed, 'again'],
    [{ policy: 'never' }, failed, 'stay'],
  ] as const)('%j after %j: %s', (restart, exit, kind) =>
    expect(judge(restart, exit).kind).toBe(kind),
  );
  it('delays double up to the longest, without chance', () => {
    const delays: number[] = [];
    let exits = NO_EXITS;
    for (let n = 0; n < 9; n++) {
      const verdict = judge({ maxDelayMs: 4_000 }, failed, exits, n * 100_000);
      exits = verdict.exits;
      if (verdict.kind === 'again') delays.push(verdict.delayMs);
    }
    expect(delays).toEqual([500, 1000, 2000, 4000, 4000, 4000, 4000, 4000, 4000]);
  });
  it('five exits within a minute stop it, four do not, nor five over a longer time', () => {
    const after = (apartMs: number, count: number) => {
      let exits = NO_EXITS;
      let kind = '';
      for (let n = 0; n < count; n++)
        ({ exits, kind } = judge(undefined, failed, exits, 1_000_000 + n * apartMs));
      return kind;
    };
    expect(after(10_000, 4)).toBe('again');
    expect(after(10_000, 5)).toBe('crash-loop');
    expect(after(16_000, 50)).toBe('again');
  });
  it('the manifest says otherwise', () => {
    const restart = { crashLoop: { exits: 2, withinMs: 1_000 }, firstDelayMs: 20 };
    const first = judge(restart);
    expect(first).toMatchObject({ kind: 'again', delayMs: 20 });
    expect(judge(restart, failed, first.exits).kind).toBe('crash-loop');
  });
});
