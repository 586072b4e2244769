// `openwop subjects`: what an erasure waits for, what stands in its way, and that it is asked for twice.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scriptedHost, type ScriptedHost } from './scripted-host.ts';

const ERASURES = '/v1/host/openwop-temporal/erasures';
const ERASE = 'POST /v1/host/openwop-temporal/subjects:erase';
const HOSTILE = 'a\u001b[2Jb\u0007\u202ed';
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}]/u;

const erasure = {
  ...{ erasureId: 'erasure-1', subject: 'p', state: 'destroyed' },
  requestedAt: '2026-01-02T03:04:06.000Z',
  waitsFor: { kind: 'database', reason: `Transactions are open: session 7 (${HOSTILE}).` },
};

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());

it('erases nothing before it is said twice', async () => {
  const { code, err } = await host.run(['subjects', 'erase', 'anna']);
  expect([code, host.asked.length]).toEqual([2, 0]);
  expect(err).toContain('Add --yes when it is meant.');
});

it('names the runs that stand in the way, and what ends them', async () => {
  const details = { reason: 'For programs.', openRuns: ['run-1', HOSTILE] };
  const body = { error: 'run_state_conflict', message: 'Not now.', details };
  host.script({ [ERASE]: { status: 409, body } });
  const { code, err } = await host.run(['subjects', 'erase', 'anna', '--yes']);
  expect(code).toBe(1);
  expect(err).toMatch(
    /^openwop: Runs of the subject are open: run-1, .*\. Let them end, or add --cancel-open\./,
  );
  expect(err.replaceAll('\n', '')).not.toMatch(OBEYED);
});

it('shows what an erasure waits for', async () => {
  host.script({ [ERASE]: { body: erasure }, [`GET ${ERASURES}/erasure-1`]: { body: erasure } });
  const asked = await host.run(['subjects', 'erase', 'anna', '--yes']);
  const told = await host.run(['subjects', 'receipt', 'erasure-1']);
  expect(asked.out).toBe(told.out);
  expect(told.out).toMatch(
    /\nState +Key destroyed\n(.*\n)*Waits for +Transactions are open: session 7 \(a/,
  );
  expect(told.out.replaceAll('\n', '')).not.toMatch(OBEYED);
  expect(asked.err).toContain('It goes on by itself: ');
});
