// What a RetentionStore notes of forks, beside retention.ts (architecture §3.7): runs that they go by, and notes that come late;
// and that a family is due once.
import { beforeEach, describe, expect, it } from 'vitest';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { newId, refTo, startedRun, type GivenStores } from './given.ts';
import { cleanAll, end, member, tablesWith, type Behind } from './retention.ts';

const DAY_MS = 24 * 3_600_000;
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

export function retentionNotesContract(given: GivenStores, behind: () => Behind): void {
  let stores: Stores;
  const expire = (run: RunRef) => stores.retention.expire(run, { keptMs: 0, restMs: 0 });

  describe('RetentionStore: notes of forks, and families that are due', () => {
    beforeEach(() => {
      stores = given();
    });

    it('none whose record a fork goes by that is under way, however many forks lie between', async () => {
      const [first, between] = [await member(stores), await member(stores)];
      const fork = newId('run');
      const { retention } = stores;
      const elsewhere = stores.runs.ref('elsewhere', first.runId);
      expect(await retention.noteFork(between, fork, [elsewhere])).toBe(false);
      expect(await retention.noteFork(between, fork, [first])).toBe(true);
      expect(await retention.noteFork(between, fork, [first])).toBe(true);
      for (const run of [first, between])
        expect(await expire(run)).toEqual({ kind: 'kept', why: 'forked' });
      await startedRun(stores, { runId: fork });
      expect(await expire(first)).toEqual({ kind: 'kept', why: 'forked' });
      await end(stores, refTo(fork));
      for (const run of [first, between]) expect((await expire(run)).kind).toBe('expired');
      const third = await member(stores);
      expect(await retention.noteFork(third, newId('run'), [first])).toBe(false);
      await expire(refTo(fork));
      await cleanAll(stores, refTo(fork));
      expect(await tablesWith(behind(), refTo(fork))).toEqual([]);
    });

    it('a family is due once, by its root, however many runs it has', async () => {
      const root = await member(stores, { open: true });
      const children = [
        await member(stores, { parent: root }),
        await member(stores, { parent: root }),
      ];
      await end(stores, root);
      const family = [root, ...children].map(({ runId }) => runId);
      const old =
        'UPDATE ended_runs SET ended_at_ms = 1, look_at_ms = 0 WHERE run_id = ANY($1::text[])';
      await behind().query(old, [family]);
      const due = await stores.retention.due(DAY_MS, 1_000, 60_000);
      expect(due.map(({ runId }) => runId).filter((runId) => family.includes(runId))).toEqual([
        root.runId,
      ]);
    });

    it('a note of a fork that is made after all, late, stays, and what the fork needs with it', async () => {
      for (let round = 0; round < 10; round++) {
        const source = await member(stores);
        await stores.content.put(source, bytesOf(newId('value')));
        const fork = newId('run');
        await stores.retention.noteFork(source, fork);
        await behind().query('UPDATE run_forks SET noted_at_ms = 0 WHERE run_id = $1', [fork]);
        await Promise.all([
          stores.retention.forget(DAY_MS, 100),
          stores.retention.noteFork(source, fork),
        ]);
        expect(await tablesWith(behind(), stores.runs.ref('default', fork))).toEqual([
          ...['content_refs', 'run_forks'],
        ]);
      }
    });
  });
}
