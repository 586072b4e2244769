// Where the stream of a session goes on after an event that a failover of the database has lost (seed 003 §4.2). [I118]
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Head } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { NO_WAITS } from '../contract/given.ts';
import { emitted, HistoryBuilder, schedule } from '../support/histories.ts';
import { newLogRun, openAnyStores } from '../support/log-parts.ts';

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
  const session = { tenant: run.tenant, sessionId: runId };
  const [row] = await stores.log.read(run, { after: -1, limit: 1 });
  const eventId = row?.eventId ?? '';
  expect(await log.resumeSession(session, eventId)).toMatchObject({ eventId, runId });
  // The database has what it had before.
  const caughtUp = await stores.log.head(run);
  const told = { head: before, rows: [], summary: NO_WAITS };
  expect(await stores.log.restore(run, told, caughtUp)).toBe(true);
  expect(await log.resumeSession(session, eventId)).toBe('first');
  expect(await log.resumeSession(session, 'evt-of-nobody')).toBeUndefined();
  expect(await log.resumeSession({ ...session, sessionId: 'another' }, eventId)).toBeUndefined();
  log.close();
});
