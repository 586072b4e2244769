// When calls of an agent that its Core does not start any more fail, and when they are left to other Cores (architecture §5).
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { GivenUpAgents } from '../../src/opensentience/given-up.ts';
import type { AgentInstance } from '../../src/ports/agents.ts';

const ID = 'com.example.a';
const EVERY_MS = 5_000;
const REASON = 'It ended again and again.';

/** What the registry holds of the other Core. */
let other: AgentInstance['status'] | 'nothing' | 'away';
let reason: string | undefined;
let reports: (string | undefined)[];
let agents: GivenUpAgents;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  [other, reason, reports] = ['nothing', REASON, []];
  agents = new GivenUpAgents({
    registry: {
      instances: async () => {
        if (other === 'away') throw new Error('away');
        return other === 'nothing'
          ? []
          : [{ agentId: ID, instanceId: 'other', status: other } as unknown as AgentInstance];
      },
    },
    ...{ tenant: 'default', instanceId: 'here', everyMs: EVERY_MS },
    reasonOf: () => reason,
    report: (_, given) => {
      if (given !== reports.at(-1)) reports.push(given);
    },
  });
});
afterEach(() => {
  reason = undefined;
  agents.changed(ID);
  vi.useRealTimers();
});

/** Looks as a call does that comes now. */
async function looks(found: typeof other): Promise<boolean> {
  other = found;
  return agents.look(ID);
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

it('one look that finds nobody says nothing, however many calls look', async () => {
  await expect(looks('connected')).resolves.toBe(false);
  for (let n = 0; n < 10; n++) await expect(looks('nothing')).resolves.toBe(true);
  await expect(looks('connected')).resolves.toBe(false);
  expect(reports).toEqual([]);
});
it('a call waits here where it is started again while the registry is asked', async () => {
  for (const found of ['connected', 'away'] as const) {
    const mayWait = looks(found);
    reason = undefined;
    await expect(mayWait).resolves.toBe(true);
    reason = REASON;
  }
});
it('two in a row do, an interval apart, without a call', async () => {
  agents.changed(ID);
  await pass(EVERY_MS - 1);
  expect(reports).toEqual([]);
  await pass(2);
  expect(reports).toEqual([REASON]);
});
it('calls that look meanwhile put that off no longer', async () => {
  agents.changed(ID);
  for (let n = 0; n < 9; n++) {
    await pass(EVERY_MS / 10);
    await looks('nothing');
  }
  expect(reports).toEqual([]);
  await pass(EVERY_MS / 10 + 1);
  expect(reports).toEqual([REASON]);
});
it.each(['connected', 'away'] as const)('not where one between them finds it %s', async (found) => {
  await looks('nothing');
  await pass(EVERY_MS / 2);
  await looks(found);
  await pass(EVERY_MS / 2);
  await looks('nothing');
  await pass(EVERY_MS - 1);
  expect(reports).not.toContain(REASON);
  await pass(2);
  expect(reports.at(-1)).toBe(REASON);
});
it('while the registry is away, and at one look after it, the last report holds', async () => {
  await looks('nothing');
  await pass(EVERY_MS + 1);
  for (const found of ['away', 'nothing', 'away'] as const) await looks(found);
  expect(reports).toEqual([REASON]);
  await looks('connected');
  for (const found of ['away', 'nothing', 'away'] as const) await looks(found);
  expect(reports).toEqual([REASON, undefined]);
});
it('a look of before it was started again counts for nothing', async () => {
  await looks('nothing');
  reason = undefined;
  agents.changed(ID);
  await expect(looks('nothing')).resolves.toBe(true);
  await pass(EVERY_MS);
  reason = REASON;
  await looks('nothing');
  expect(reports).toEqual([]);
});
