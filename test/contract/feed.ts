// What every FeedStore does, and its readers (architecture §3.6).
import { describe, expect, it } from 'vitest';
import { readFeed } from '../../src/log/feed.ts';
import type { FeedRow } from '../../src/ports/feed.ts';
import type { GivenStores } from './given.ts';
import {
  NO_WAITS,
  appendRows,
  batchAfter,
  delta,
  entry,
  eventually,
  headOf,
  newId,
  newRun,
  startedRun,
  refTo,
} from './given.ts';

const ACTIVITY = 'agent/1/0/i0.t0.infer';
const named = (rows: readonly FeedRow[]): string[] =>
  rows.map(({ run, sequence }) => `${run.runId} ${sequence}`);

export function feedContract(stores: GivenStores): void {
  const feed = (): ReturnType<GivenStores>['feed'] => stores().feed;
  const all = async (tenant: string, sessionId?: string): Promise<readonly FeedRow[]> =>
    (await feed().read({ tenant, sessionId, after: 0, limit: 10_000 })).rows;

  /** A tenant of the test's own. */
  const runOf = (tenant: string): Promise<string> => startedRun(stores(), { tenant });

  describe('FeedStore', () => {
    it('architecture §3.6 holds every row of appends and deltas, in order over all runs of the tenant', async () => {
      const tenant = newId('tenant');
      const [a, b] = [await runOf(tenant), await runOf(tenant)];
      await appendRows(stores(), a, ['1', '2']);
      await appendRows(stores(), b, ['1']);
      await stores().log.appendDeltas(refTo(a), ACTIVITY, 1, [
        delta(a, ACTIVITY, 0),
        delta(a, ACTIVITY, 1),
      ]);
      await appendRows(stores(), a, ['3']);
      await appendRows(stores(), await runOf(newId('tenant')), ['1']);
      const rows = await all(tenant);
      expect(named(rows)).toEqual([`${a} 0`, `${a} 1`, `${b} 0`, `${a} 2`, `${a} 3`, `${a} 4`]);
      const positions = rows.map(({ position }) => position);
      expect(positions).toEqual([...new Set(positions)].sort((x, y) => x - y));
      expect(await all(newId('tenant'))).toEqual([]);
    });

    it('architecture §3.6 is read behind a position, at most so many rows', async () => {
      const tenant = newId('tenant');
      const runId = await runOf(tenant);
      await appendRows(stores(), runId, ['1', '2', '3', '4', '5']);
      const rows = await all(tenant);
      const seen: FeedRow[] = [];
      for (let after = 0; ;) {
        const page = await feed().read({ tenant, after, limit: 2 });
        expect(page.rows.length).toBeLessThanOrEqual(2);
        seen.push(...page.rows);
        const last = page.rows.at(-1);
        if (!last) break;
        after = last.position;
      }
      expect(seen).toEqual(rows);
    });

    it('architecture §3.6 names the session of the run, and is read by it', async () => {
      const tenant = newId('tenant');
      const inSession = async (sessionId: string): Promise<string> => {
        const run = newRun({ tenant });
        const input = { ...run.input, header: { ...run.input.header, sessionId } };
        const runId = await startedRun(stores(), { ...run, input });
        await appendRows(stores(), runId, ['1']);
        return runId;
      };
      const [a, b, c] = [await inSession('s"1\\'), await inSession('s2'), await inSession('s"1\\')];
      expect(named(await all(tenant, 's"1\\'))).toEqual([`${a} 0`, `${c} 0`]);
      expect(named(await all(tenant, 's2'))).toEqual([`${b} 0`]);
      expect((await all(tenant)).map(({ sessionId }) => sessionId)).toEqual([
        's"1\\',
        's2',
        's"1\\',
      ]);
    });

    it('architecture §3.6 an append that is rolled back leaves nothing', async () => {
      const tenant = newId('tenant');
      const runId = await runOf(tenant);
      await appendRows(stores(), runId, ['1']);
      const head = await headOf(stores(), runId);
      const twice = batchAfter(head, [entry(runId, '2'), entry(runId, '1')]);
      await expect(stores().log.append(twice)).rejects.toMatchObject({ sqlState: '23505' });
      await appendRows(stores(), runId, ['3']);
      expect(named(await all(tenant))).toEqual([`${runId} 0`, `${runId} 1`]);
      await eventually(
        async () => !(await feed().read({ tenant, after: 0, limit: 10 })).heldBack,
        'the end',
      );
    });

    // [I24]
    it('architecture §3.6 a rebuild keeps the positions of rows that stay, ends those of rows that are gone, and gives new rows new ones', async () => {
      const tenant = newId('tenant');
      const [runId, other] = [await runOf(tenant), await runOf(tenant)];
      await appendRows(stores(), runId, ['1', '2', '3']);
      await appendRows(stores(), other, ['1']);
      const before = await all(tenant);
      const { log } = stores();
      const head = await headOf(stores(), runId);
      const rows = await log.read(refTo(runId), { after: -1, limit: 10 });
      expect(
        await log.restore(refTo(runId), { summary: NO_WAITS, head: head, rows: rows }, head),
      ).toBe(true);
      expect(await all(tenant)).toEqual(before);
      const fewer = { ...head, nextSequence: 2 };
      expect(
        await log.restore(
          refTo(runId),
          { summary: NO_WAITS, head: fewer, rows: rows.slice(0, 2) },
          head,
        ),
      ).toBe(true);
      const kept = before.filter((row) => row.run.runId !== runId || row.sequence < 2);
      expect(await all(tenant)).toEqual(kept);
      expect(
        await log.restore(refTo(runId), { summary: NO_WAITS, head: head, rows: rows }, fewer),
      ).toBe(true);
      const after = await all(tenant);
      expect(after.slice(0, -1)).toEqual(kept);
      expect(named(after.slice(-1))).toEqual([`${runId} 2`]);
    });

    // [I118]
    it('architecture §3.6 rows that were told again stand at new positions, from the first that may have moved', async () => {
      const tenant = newId('tenant');
      const runId = await runOf(tenant);
      await appendRows(stores(), runId, ['1', '2', '3']);
      const [first, ...moved] = await all(tenant);
      const head = { ...(await headOf(stores(), runId)), retoldFrom: 1 };
      const rows = await stores().log.read(refTo(runId), { after: -1, limit: 10 });
      const retell = () =>
        stores().log.restore(refTo(runId), { summary: NO_WAITS, head, rows }, head);
      expect(await retell()).toBe(true);
      const after = await all(tenant);
      expect(after[0]).toEqual(first);
      expect(named(after)).toEqual(named([first, ...moved].flatMap((row) => row ?? [])));
      const positions = new Set(moved.map(({ position }) => position));
      expect(after.slice(1).some(({ position }) => positions.has(position))).toBe(false);
      expect(await retell()).toBe(true);
      expect(await all(tenant)).toEqual(after);
    });

    // [I118]
    it('seed 003 §4.2 a stream goes on after the event it had, or after the last that cannot have moved', async () => {
      const tenant = newId('tenant');
      const runId = await runOf(tenant);
      await appendRows(stores(), runId, ['1', '2', '3']);
      const head = await headOf(stores(), runId);
      const rows = await stores().log.read(refTo(runId), { after: -1, limit: 10 });
      const [session = ''] = (await all(tenant)).map(({ sessionId }) => sessionId);
      const resumed = (eventId = '', of = session) => feed().resumeAfter(tenant, of, eventId);
      const places = async () => {
        const positions = (await all(tenant)).map(({ position }) => position);
        return rows.map(({ eventId }, at) => ({ position: positions[at], eventId, runId }));
      };
      const ids = rows.map(({ eventId }) => eventId);
      expect(await Promise.all(ids.map((id) => resumed(id)))).toEqual(await places());
      expect(await resumed('evt-of-nobody')).toBeUndefined();
      expect(await resumed(ids[0], 'another')).toBeUndefined();
      const retell = (retoldFrom: number) =>
        stores().log.restore(
          refTo(runId),
          { summary: NO_WAITS, head: { ...head, retoldFrom }, rows },
          head,
        );
      expect(await retell(1)).toBe(true);
      const [first] = await places();
      expect(await Promise.all(ids.map((id) => resumed(id)))).toEqual([first, first, first]);
      expect(await retell(0)).toBe(true);
      expect(await resumed(ids[2])).toBe('first');
    });

    it('architecture §3.6 behind its end comes what comes, and nothing that is there', async () => {
      const tenant = newId('tenant');
      const runId = await runOf(tenant);
      const after = await feed().end();
      expect(await feed().read({ tenant, after, limit: 10 })).toMatchObject({ rows: [] });
      await appendRows(stores(), runId, ['later']);
      const { rows } = await feed().read({ tenant, after, limit: 10 });
      expect(named(rows)).toEqual([`${runId} ${rows[0]?.sequence}`]);
    });

    // [I118]
    it('architecture §3.6 is not read after a position that nobody was given: a failover has lost it', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const after = (await feed().end()) + 1_000_000;
      const query = { tenant, sessionId, after, limit: 10 };
      const lost = { code: 'service_unavailable' };
      await expect(feed().read(query)).rejects.toMatchObject(lost);
      await expect(feed().events(query)).rejects.toMatchObject(lost);
      await expect(feed().eventsOf({ ...query, types: ['x.y'] })).rejects.toMatchObject(lost);
      const pages = readFeed(stores(), { tenant, after, signal: new AbortController().signal });
      await expect(pages.next()).rejects.toMatchObject(lost);
    });

    // [I23]
    it('architecture §3.6 a named consumer has a durable cursor that never goes back', async () => {
      const [tenant, consumer] = [newId('tenant'), newId('consumer')];
      expect(await feed().cursor(tenant, consumer)).toBe(0);
      expect(await feed().advance(tenant, consumer, 7)).toBe(7);
      expect(await feed().advance(tenant, consumer, 5)).toBe(7);
      await Promise.all([8, 12, 9, 11, 10].map((at) => feed().advance(tenant, consumer, at)));
      expect(await feed().cursor(tenant, consumer)).toBe(12);
      expect(await feed().cursor(newId('tenant'), consumer)).toBe(0);
      expect(await feed().cursor(tenant, newId('consumer'))).toBe(0);
    });
  });

  describe('readers of the feed', () => {
    const read = (tenant: string, signal: AbortSignal, after = 0) =>
      readFeed(stores(), { tenant, after, signal });

    it('architecture §3.6 get what is there in pages, then what comes, until they are aborted', async () => {
      const tenant = newId('tenant');
      const runId = await runOf(tenant);
      const keys = Array.from({ length: 700 }, (_, at) => `k${at}`);
      await appendRows(stores(), runId, keys);
      const abort = new AbortController();
      const seen: FeedRow[] = [];
      const pages: number[] = [];
      const reading = (async () => {
        for await (const rows of read(tenant, abort.signal)) {
          pages.push(rows.length);
          seen.push(...rows);
        }
      })();
      await eventually(() => seen.length === 700, 'what is there');
      expect(pages).toEqual([500, 200]);
      await appendRows(stores(), runId, ['later']);
      await eventually(() => seen.length === 701, 'what comes');
      abort.abort();
      await reading;
      expect(seen).toEqual(await all(tenant));
    });

    it('architecture §3.6 that wait ask nothing while nothing changes', async () => {
      const tenant = newId('tenant');
      const runId = await runOf(tenant);
      const abort = new AbortController();
      let reads = 0;
      let wake = (): void => undefined;
      const counting = {
        feed: {
          ...feed(),
          read: (query: Parameters<ReturnType<typeof feed>['read']>[0]) => {
            reads += 1;
            return feed().read(query);
          },
        },
        log: {
          onChange: (listener: () => void) => ((wake = listener), () => undefined),
          onReconnect: () => () => undefined,
        },
      } as unknown as Parameters<typeof readFeed>[0];
      const pages = readFeed(counting, { tenant, after: 0, signal: abort.signal });
      const first = pages.next();
      await eventually(() => reads === 1, 'the first read');
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(reads).toBe(1);
      await appendRows(stores(), runId, ['1']);
      wake();
      expect(named((await first).value ?? [])).toEqual([`${runId} 0`]);
      expect(reads).toBe(2);
      const end = pages.next();
      abort.abort();
      expect((await end).done).toBe(true);
    });

    it('architecture §3.6 behind a page that was held back ask again without a change', async () => {
      let reads = 0;
      const row = { position: 3, sessionId: 's', runId: 'r', sequence: 0 };
      const held = {
        feed: {
          ...feed(),
          read: async () => (
            (reads += 1),
            reads < 3 ? { rows: [], heldBack: true } : { rows: [row], heldBack: false }
          ),
        },
        log: { onChange: () => () => undefined, onReconnect: () => () => undefined },
      } as unknown as Parameters<typeof readFeed>[0];
      const abort = new AbortController();
      const pages = readFeed(held, { tenant: 't', after: 0, signal: abort.signal });
      expect((await pages.next()).value).toEqual([row]);
      await pages.return();
    });
  });
}
