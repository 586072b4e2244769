// What every SessionStore does (seed 003 §3.1): sessions are made and kept by what happens to their runs.
import { describe, expect, it } from 'vitest';
import type { RunHeader } from '../../src/rules/run-input.ts';
import type { NewRun } from '../../src/ports/runs.ts';
import {
  appendRows,
  batchAfter,
  entry,
  headOf,
  newId,
  newRun,
  refTo,
  startedRun,
} from './given.ts';
import type { GivenStores } from './given.ts';

export function sessionStoreContract(stores: GivenStores): void {
  const inSession = (
    header: Partial<RunHeader> & { readonly sessionId: string },
    { tags, ...over }: Partial<NewRun> & { readonly tags?: readonly string[] } = {},
  ): NewRun => {
    const run = newRun(over);
    const input = { ...run.input, header: { ...run.input.header, ...header }, tags };
    return { ...run, input };
  };
  const find = (tenant: string, sessionId: string) => stores().sessions.find(tenant, sessionId);

  describe('SessionStore', () => {
    it('seed 003 §3.1 a session is made by the first run that names it, and the first title stays', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const over = { tenant, createdAtMs: 5_000 };
      expect(await find(tenant, sessionId)).toBeUndefined();
      await stores().runs.accept(inSession({ sessionId }, { ...over, tags: ['b', 'a', 'b'] }));
      expect(await find(tenant, sessionId)).toEqual({
        ...{ sessionId, tags: ['b', 'a'], createdAtMs: 5_000, lastActivityMs: 5_000 },
      });
      const titled = { ...over, createdAtMs: 7_000, tags: ['c', 'a\u0000', '\ud800'] };
      await stores().runs.accept(
        inSession({ sessionId }, { ...titled, sessionTitle: 'Ref\u0000und "ü"' }),
      );
      await stores().runs.accept(
        inSession({ sessionId }, { ...over, createdAtMs: 6_000, sessionTitle: 'another' }),
      );
      expect(await find(tenant, sessionId)).toEqual({
        ...{ sessionId, title: 'Ref\u0000und "ü"', tags: ['b', 'a', 'c', 'a\u0000', '\ud800'] },
        ...{ createdAtMs: 5_000, lastActivityMs: 7_000 },
      });
    });

    // [I97]
    it('a title and tags may begin as what is sealed begins', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const tags = ['~urgent', '~', '~a.b.c', '~..', '"~'];
      const sessionTitle = '~key.c2VhbGVk.kept';
      await stores().runs.accept(inSession({ sessionId }, { tenant, tags, sessionTitle }));
      expect(await find(tenant, sessionId)).toMatchObject({ title: sessionTitle, tags });
      const { sessions } = await stores().sessions.list(tenant, { limit: 10 });
      expect(sessions).toMatchObject([{ sessionId, title: sessionTitle, tags }]);
      const { runs } = await stores().sessions.runs(tenant, sessionId, { limit: 10 });
      expect(runs.map((run) => run.tags)).toEqual([tags]);
    });

    it('seed 003 §3.1 a session holds at most 100 tags', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const many = (prefix: string) => Array.from({ length: 70 }, (_, n) => `${prefix}${n}`);
      for (const prefix of ['a', 'b'])
        await stores().runs.accept(inSession({ sessionId }, { tenant, tags: many(prefix) }));
      expect((await find(tenant, sessionId))?.tags).toEqual(
        [...many('a'), ...many('b')].slice(0, 100),
      );
    });

    it('says of which session a run is, to its own tenant', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const run = inSession({ sessionId }, { tenant });
      await stores().runs.accept(run);
      expect(await stores().sessions.sessionOf(tenant, run.runId)).toBe(sessionId);
      expect(await stores().sessions.sessionOf(newId('tenant'), run.runId)).toBeUndefined();
      expect(await stores().sessions.sessionOf(tenant, newId('run'))).toBeUndefined();
    });

    it('seed 003 §3.1 of one name every tenant has a session of its own', async () => {
      const [a, b, sessionId] = [newId('tenant'), newId('tenant'), newId('session')];
      const mine = inSession({ sessionId }, { tenant: a, sessionTitle: 'mine', createdAtMs: 1 });
      await stores().runs.accept(mine);
      expect(await find(b, sessionId)).toBeUndefined();
      await stores().runs.accept(inSession({ sessionId }, { tenant: b, createdAtMs: 2 }));
      expect(await find(b, sessionId)).toMatchObject({ createdAtMs: 2 });
      expect(await find(b, sessionId)).not.toHaveProperty('title');
      const { runs } = await stores().sessions.runs(a, sessionId, { limit: 10 });
      expect(runs.map(({ runId }) => runId)).toEqual([mine.runId]);
    });

    it('seed 003 §3.1 what its runs write is its activity, to the second; a row of the past is none', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const run = inSession({ sessionId }, { tenant, createdAtMs: 10_000 });
      const runId = await startedRun(stores(), run);
      const at = async (timestampMs: number, key: string) => {
        const rows = [entry(runId, key, { timestampMs })];
        await stores().log.append(batchAfter(await headOf(stores(), runId), rows));
        return (await find(tenant, sessionId))?.lastActivityMs;
      };
      expect(await at(9_000, '1')).toBe(10_000);
      expect(await at(10_900, '2')).toBe(10_000);
      expect(await at(12_000, '3')).toBe(12_000);
    });

    it('seed 003 §3.1 sessions are listed by their last activity, page by page', async () => {
      const tenant = newId('tenant');
      const ids = ['one', 'two', 'three', 'four'].map(newId);
      const [first = ''] = ids;
      for (const [at, sessionId] of ids.entries())
        await startedRun(stores(), inSession({ sessionId }, { tenant, createdAtMs: 1_000 * at }));
      const again = inSession({ sessionId: first }, { tenant, createdAtMs: 9_000 });
      await stores().runs.accept(again);
      const seen: string[] = [];
      for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
        const page = await stores().sessions.list(tenant, { limit: 2, cursor });
        expect(page.sessions.length).toBeLessThanOrEqual(2);
        seen.push(...page.sessions.map(({ sessionId }) => sessionId));
        cursor = page.nextCursor;
      }
      expect(seen).toEqual([first, ...ids.slice(1).reverse()]);
      const limit = 2;
      await expect(stores().sessions.list(tenant, { limit, cursor: 'x' })).rejects.toMatchObject({
        code: 'validation_error',
      });
    });

    it('seed 003 §3.1 the runs of a session, newest first, with parent and call', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const parent = inSession({ sessionId }, { tenant, createdAtMs: 1_000 });
      const spawned = { parentRunId: parent.runId, correlationId: parent.runId, causationId: 'c1' };
      const child = inSession(
        { sessionId, ...spawned },
        { tenant, createdAtMs: 2_000, tags: ['t'] },
      );
      for (const run of [parent, child]) await startedRun(stores(), run);
      await appendRows(stores(), child.runId, ['1']);
      const { runs, nextCursor } = await stores().sessions.runs(tenant, sessionId, { limit: 1 });
      expect(runs).toEqual([
        {
          ...{ runId: child.runId, workflowId: 'w', status: 'running', createdAtMs: 2_000 },
          ...{ tags: ['t'], parentRunId: parent.runId, causationId: 'c1' },
        },
      ]);
      const rest = await stores().sessions.runs(tenant, sessionId, {
        limit: 1,
        cursor: nextCursor,
      });
      expect(rest.runs.map(({ runId }) => runId)).toEqual([parent.runId]);
      expect(rest).not.toHaveProperty('nextCursor');
    });

    it('seed 000 §G messages stand where the first of an id was said, and are read behind a place; no other tenant has them', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const runId = await startedRun(stores(), inSession({ sessionId }, { tenant }));
      const types = ['x', 'channel.written', 'y', 'channel.written'];
      const rows = types.map((type, at) => entry(runId, `${at}`, { type }));
      await stores().log.append(batchAfter(await headOf(stores(), runId), rows));
      const read = (after: number, limit: number) =>
        stores().feed.eventsOf({ tenant, sessionId, after, limit, types: ['channel.written'] });
      const first = await read(0, 3);
      expect(first.rows.map(({ row }) => row.sequence)).toEqual([1]);
      const rest = await read(first.readTo ?? 0, 3);
      expect(rest.rows.map(({ row }) => row.sequence)).toEqual([3]);
      expect(await read(rest.readTo ?? 0, 3)).toEqual({ rows: [] });
      expect(await read(0, 1)).toEqual({ rows: [], readTo: (first.readTo ?? 0) - 2 });
      const [one = 0, two = 0] = [...first.rows, ...rest.rows].map(({ position }) => position);
      const note = (...said: readonly (readonly [string, number])[]) => {
        const places = said.map(([messageId, position]) => ({ messageId, position }));
        return stores().sessions.noteMessages(tenant, sessionId, places);
      };
      await note();
      await note(['a\u0000', one], ['a\u0000', two]);
      await note(['a\u0000', two], ['b', two]);
      const shown = async (after: number, of = tenant) =>
        (await stores().sessions.messages(of, sessionId, { after, limit: 5 })).map(
          ({ position }) => position,
        );
      expect([await shown(0), await shown(one), await shown(0, 'other')]).toEqual([
        ...[[one, two], [two], []],
      ]);
    });

    it('seed 003 §3.1 runs that are accepted into one session at once are all in it', async () => {
      const [tenant, sessionId] = [newId('tenant'), newId('session')];
      const runs = Array.from({ length: 12 }, (_, n) =>
        inSession({ sessionId }, { tenant, tags: [`t${n}`] }),
      );
      await Promise.all(runs.map((run) => startedRun(stores(), run)));
      await Promise.all(runs.map(({ runId }) => appendRows(stores(), runId, ['1'])));
      expect((await find(tenant, sessionId))?.tags).toHaveLength(12);
      const page = await stores().sessions.runs(tenant, sessionId, { limit: 50 });
      expect(page.runs).toHaveLength(12);
      expect(refTo(runs[0]?.runId ?? '').tenant).toBe(tenant);
    });
  });
}
