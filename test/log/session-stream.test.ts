// What wakes those who follow sessions (seed 003 §3.3): a change of a run costs one look at whose it is, however many
// follow, and a page more for the followers of its session alone.
import { expect, it } from 'vitest';
import { createSessions } from '../../src/log/session-stream.ts';

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
    const query = { tenant: TENANT, sessionId: `s${n}`, after: 0, signal: over.signal };
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
