// What wakes those who follow sessions (seed 003 §3.3): a change of a run costs one look at whose it is, however many
// follow, and a page more for the followers of its session alone. And what they are given after a failover of the database.
import { expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createSessions } from '../../src/log/session-stream.ts';
import type { FedRow, FeedPlace, FeedQuery } from '../../src/ports/feed.ts';
import { abortAfter } from '../../src/system/time.ts';
import { patient } from '../support/machine.ts';
import { runRef } from '../support/run-ref.ts';

const TENANT = 'default';
const SESSIONS = 50;

type Change = { readonly runId: string; readonly nextSequence: number };

/** A store without rows, in which run `r3` is of session `s3`. */
function counted() {
  const listeners = new Set<(change: Change) => void>();
  const asked: string[] = [];
  const reads: string[] = [];
  let isAway = false;
  const parts = {
    feed: {
      events: ({ sessionId }: { sessionId: string }) => {
        reads.push(sessionId);
        return Promise.resolve({ rows: [], heldBack: false });
      },
    },
    sessions: {
      sessionOf(_tenant: string, runId: string) {
        asked.push(runId);
        return isAway
          ? Promise.reject(new Error('away'))
          : Promise.resolve(runId.replace('r', 's'));
      },
    },
    log: {
      onChange(listener: (change: Change) => void) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      onReconnect: () => () => undefined,
    },
  };
  return {
    ...{ asked, reads },
    sessions: createSessions(parts as never),
    change: (runId: string) => listeners.forEach((tell) => tell({ runId, nextSequence: 1 })),
    away: (is: boolean) => (isAway = is),
  };
}

it('a change asks once whose run it is, and wakes the followers of its session alone', async () => {
  const { asked, reads, sessions, change, away } = counted();
  const over = new AbortController();
  const following = Array.from({ length: SESSIONS }, async (_, n) => {
    const query = { tenant: TENANT, sessionId: `s${n}`, signal: over.signal };
    for await (const rows of sessions.follow(query)) expect(rows).toEqual([]);
  });
  const more = () => reads.slice(SESSIONS);
  await expect.poll(() => reads.length).toBe(SESSIONS);
  change('r3');
  await expect.poll(more).toEqual(['s3']);
  change('r3');
  await expect.poll(more).toEqual(['s3', 's3']);
  expect(asked).toEqual(['r3']);
  // Where nobody says whose run it is, all take a look, and it is asked for again.
  away(true);
  change('r7');
  await expect.poll(() => more().length).toBe(2 + SESSIONS);
  away(false);
  change('r7');
  await expect.poll(() => more().length).toBe(3 + SESSIONS);
  expect(asked).toEqual(['r3', 'r7', 'r7']);
  over.abort();
  await Promise.all(following);
});

/** Events by their names, at positions from 1 on; `-`: of another session, or of nobody. A name tells the event's second, too. */
type Given = readonly string[];

/** A store whose database fails over: from then on it has other rows. */
function failing() {
  let given: Given = [];
  let isExpired = false;
  let changed = () => {};
  const rows = () =>
    given.flatMap((eventId, at) => {
      const timestampMs = Number(eventId.slice(1)) * 1_000;
      const row = { eventId, timestampMs };
      return eventId === '-' ? [] : [{ position: at + 1, run: runRef('r'), row } as FedRow];
    });
  const parts = {
    feed: {
      async events({ after, limit }: FeedQuery) {
        if (after > given.length) throw new HostError('service_unavailable');
        return {
          rows: rows()
            .filter(({ position }) => position > after)
            .slice(0, limit),
          heldBack: false,
        };
      },
      positionOf: async (_: string, _session: string, eventId: string) =>
        rows().find(({ row }) => row.eventId === eventId)?.position,
    },
    runs: { expiredAt: async () => (isExpired ? 1 : undefined) },
    log: {
      onChange: () => () => undefined,
      onReconnect: (listener: () => void) => ((changed = listener), () => undefined),
    },
  };
  return {
    sessions: createSessions(parts as never),
    expire: () => (isExpired = true),
    show: (rowsNow: Given) => {
      given = rowsNow;
      changed();
    },
  };
}

const SEEN = ['e1', 'e2', 'e3', 'e4'];

/** A follower that was given SEEN, a page for each, or begins after the last. */
async function follower(begun?: FeedPlace) {
  const { sessions, ...store } = failing();
  const over = abortAfter(patient(3_000));
  const session = { tenant: TENANT, sessionId: 's' };
  const pages = sessions.follow({ ...session, after: begun, signal: over.signal });
  const next = async () => ((await pages.next()).value ?? []).map(({ row }) => row.eventId);
  for (const [at, eventId] of begun ? [] : SEEN.entries()) {
    const page = next();
    store.show(SEEN.slice(0, at + 1));
    expect(await page).toEqual([eventId]);
  }
  store.show(SEEN);
  return { ...store, next, end: () => over.clear() };
}

const AFTER_E4 = { position: 4, eventId: 'e4', runId: 'r' };

// [I118]
it.each<[string, Given, Given, FeedPlace?]>([
  ['has never given their position', ['e1', 'x9'], ['x9']],
  ['gave it to another event', ['e1', 'e2', 'x9', 'e3', 'y9'], ['x9', 'e3', 'y9']],
  ['gave it to nobody that they see', ['e1', 'e2', 'x9', '-', 'e4'], ['x9', 'e4']],
  ['has their event elsewhere', ['e1', 'e2', 'e4', 'x9', 'e3'], ['e4', 'x9', 'e3']],
  ['has nothing of theirs', ['x8', 'x9'], ['x8', 'x9']],
  ['has all', [...SEEN, 'x9'], ['x9']],
  [
    'has another event where they began',
    ['e1', 'x9', 'y9', 'z9'],
    ['e1', 'x9', 'y9', 'z9'],
    AFTER_E4,
  ],
  ['has never given the position where they began', ['e1', 'x9'], ['e1', 'x9'], AFTER_E4],
])('followers go on after a failover to a server that %s', async (_, rows, news, begun) => {
  const { show, next, end } = await follower(begun);
  const page = next();
  show(rows);
  expect(await page).toEqual(news);
  end();
});

it('followers are given nothing again where what they saw last has expired', async () => {
  const { show, expire, next, end } = await follower(AFTER_E4);
  const page = next();
  expire();
  show(['e1', '-', '-', '-', 'x9']);
  expect(await page).toEqual(['x9']);
  end();
});
