// Where the stream of a session goes on after an event that a failover of the database has lost (seed 003 §4.2). [I118]
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Head } from '../../src/ports/log.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { HostError, type ErrorCode } from '../../src/rules/errors.ts';
import { resumeSession, type ResumeParts } from '../../src/log/session-resume.ts';
import { NO_WAITS } from '../contract/given.ts';
import { emitted, HistoryBuilder, schedule } from '../support/histories.ts';
import { newLogRun, openAnyStores } from '../support/log-parts.ts';

const { signal: SIGNAL } = new AbortController();
let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

it('at the first event where history alone has it; an id that nobody knows is none of the session', async () => {
  const { run, runId, segment, history, log } = await newLogRun(stores);
  const built = new HistoryBuilder();
  built.task(schedule('a', built.carrier(emitted('run.started|r', 'run.started', {}))));
  history.add(segment, built);
  const before = (await stores.log.head(run)) as Head;
  await log.catchUp(run);
  const sessionId = runId;
  const [row] = await stores.log.read(run, { after: -1, limit: 1 });
  const eventId = row?.eventId ?? '';
  const resume = (id = eventId, of: string = sessionId) =>
    log.resumeSession({ tenant: run.tenant, sessionId: of, eventId: id, signal: SIGNAL });
  expect(await resume()).toMatchObject({ eventId, runId });
  // The database has what it had before.
  const caughtUp = await stores.log.head(run);
  const told = { head: before, rows: [], summary: NO_WAITS };
  expect(await stores.log.restore(run, told, caughtUp)).toBe(true);
  history.failure = new HostError('service_unavailable');
  await expect(resume()).rejects.toMatchObject({ code: 'service_unavailable' });
  history.failure = undefined;
  expect(await resume()).toBe('first');
  expect(await resume('evt-of-nobody')).toBeUndefined();
  expect(await resume(eventId, 'another')).toBeUndefined();
  log.close();
});

/** A session with five open runs, of which each read ends as `fresh` says. Counts the reads. */
function asking(
  fresh: ResumeParts['fresh'],
  { hasExpired = false, limitMs = 600_000 }: { hasExpired?: boolean; limitMs?: number } = {},
) {
  const state = { asked: 0, isThere: false, gone: new AbortController() };
  const runs = Array.from({ length: 5 }, (_, at) => ({ runId: `r${at}`, status: 'running' }));
  const parts = {
    stores: {
      feed: { resumeAfter: async () => (state.isThere ? { position: 1 } : undefined) },
      sessions: { runs: async () => ({ runs: [{ runId: 'e', status: 'completed' }, ...runs] }) },
      runs: { ref: (tenant: string, runId: string) => ({ tenant, runId }) },
      retention: { hasExpired: async () => hasExpired },
    },
    limitMs,
    fresh: (run: RunRef) => (state.asked++, fresh(run)),
  } as unknown as ResumeParts;
  const signal = state.gone.signal;
  const session = { tenant: 'default', sessionId: 's', eventId: 'e1', signal };
  return { state, resume: () => resumeSession(parts, session) };
}

const stale = (code?: ErrorCode) => async () => ({
  stale: true,
  ...(code === undefined ? {} : { code }),
});
const refused = (code: ErrorCode) => () => Promise.reject(new HostError(code));
const whole = async () => ({ stale: false });

it.each<[string, ResumeParts['fresh'], number]>([
  ['an outage of Temporal, at the first', stale('service_unavailable'), 1],
  ['an outage of the database, at the first', refused('service_unavailable'), 1],
  ['a key that another process has', stale('key_unavailable'), 5],
  ['a fault', stale(), 5],
])('an id is refused for now where runs cannot be read for %s', async (_, fresh, asked) => {
  const { state, resume } = asking(fresh);
  await expect(resume()).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(state.asked).toBe(asked);
});

it.each<[string, ResumeParts['fresh']]>([
  ['are read', whole],
  ['are lost', stale('history_missing')],
  ['are damaged', stale('history_undecodable')],
  ['are gone', refused('run_not_found')],
])('an id is none of the session where its runs %s', async (_, fresh) => {
  const { state, resume } = asking(fresh);
  expect(await resume()).toBeUndefined();
  expect(state.asked).toBe(5);
});

it('an id may be of a run that has expired: no history is read for it', async () => {
  const { state, resume } = asking(whole, { hasExpired: true });
  expect(await resume()).toBe('first');
  expect(state.asked).toBe(0);
});

it('what is found is given, also where a run could not be read', async () => {
  const { state, resume } = asking(
    async () => ((state.isThere = true), refused('key_unavailable')()),
  );
  expect(await resume()).toBe('first');
});

it('nobody is asked for a client that is gone, or longer than the limit', async () => {
  const gone = asking(async () => (gone.state.gone.abort(), { stale: false }));
  await expect(gone.resume()).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(gone.state.asked).toBe(1);
  const late = asking(() => new Promise(() => undefined), { limitMs: 1 });
  await expect(late.resume()).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(late.state.asked).toBeLessThan(2);
});
