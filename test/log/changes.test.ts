// Who looks at many runs is told that something changed (architecture §3.6), by one reader for all who watch.
import { getEventListeners } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createChanges } from '../../src/log/changes.ts';
import { HostError } from '../../src/rules/errors.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { appendRows, eventually, newId, startedRun } from '../contract/given.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

/** Counts reads of the feed, and fails them while `broken`. */
function counted() {
  const state = { reads: 0, broken: false, ends: 0, ahead: 0, reconnect: new Set<() => void>() };
  const looked = <Value>(work: () => Promise<Value>): Promise<Value> => {
    state.reads += 1;
    if (state.broken) throw new HostError('service_unavailable');
    return work();
  };
  const { feed, log } = stores;
  const onReconnect = (listener: () => void) => {
    state.reconnect.add(listener);
    return () => void state.reconnect.delete(listener);
  };
  const parts = {
    log: { ...log, onReconnect },
    feed: {
      ...feed,
      end: async () => {
        const end = await looked(() => feed.end());
        state.ends += 1;
        return end + state.ahead;
      },
      read: (query: Parameters<typeof feed.read>[0]) => looked(() => feed.read(query)),
    },
  };
  return { state, changes: createChanges(parts, silentLogger) };
}

function watching(changes: ReturnType<typeof createChanges>, tenant: string) {
  const gone = new AbortController();
  const told = { times: 0, gone };
  const done = (async () => {
    for await (const what of changes.watch(tenant, gone.signal))
      told.times += what === 'changed' ? 1 : 0;
  })();
  return Object.assign(told, { done });
}

const times = (watcher: { times: number }, least: number) =>
  eventually(() => watcher.times >= least, `${least} times`);

describe('architecture §3.6 changes of a tenant', () => {
  it('are told at once, and again when a row was appended to one of its runs and to none of another tenant', async () => {
    const { changes, state } = counted();
    const [tenant, other] = [newId('tenant'), newId('tenant')];
    const runId = await startedRun(stores, { tenant });
    const foreign = await startedRun(stores, { tenant: other });
    const watcher = watching(changes, tenant);
    await eventually(() => state.reads >= 2, 'the reader waits');
    const before = watcher.times;
    expect(before).toBeGreaterThan(0);
    await appendRows(stores, foreign, ['a']);
    await appendRows(stores, runId, ['a']);
    await times(watcher, before + 1);
    watcher.gone.abort();
    await watcher.done;
    changes.close();
  });

  it('are told of many rows few times', async () => {
    const { changes, state } = counted();
    const tenant = newId('tenant');
    const runId = await startedRun(stores, { tenant });
    const watcher = watching(changes, tenant);
    await eventually(() => state.reads >= 2, 'the reader waits');
    const before = watcher.times;
    for (let at = 0; at < 40; at++) await appendRows(stores, runId, [`k${at}`]);
    await times(watcher, before + 1);
    expect(watcher.times - before).toBeLessThan(20);
    changes.close();
    await watcher.done;
  });

  it('cost one reader, however many watch, and none when nobody does', async () => {
    const { changes, state } = counted();
    const tenant = newId('tenant');
    const runId = await startedRun(stores, { tenant });
    const watchers = Array.from({ length: 10 }, () => watching(changes, tenant));
    await Promise.all(watchers.map((watcher) => times(watcher, 1)));
    await eventually(() => state.reads >= 2, 'the reader waits');
    expect(state.reads).toBeLessThan(10);
    for (const { gone } of watchers) gone.abort();
    await Promise.all(watchers.map(({ done }) => done));
    const reads = state.reads;
    await appendRows(stores, runId, ['a']);
    expect(state.reads).toBe(reads);
    changes.close();
  });

  it('are told again when the database was away meanwhile', async () => {
    const { changes, state } = counted();
    const tenant = newId('tenant');
    const runId = await startedRun(stores, { tenant });
    state.broken = true;
    const watcher = watching(changes, tenant);
    await eventually(() => state.reads >= 2, 'it tries again');
    state.broken = false;
    await appendRows(stores, runId, ['a']);
    await times(watcher, 2);
    changes.close();
    await watcher.done;
  });

  // [I118]
  it.each([
    ['a position that the database has lost', 1_000_000, false],
    ['one that a failover has given to others', 0, true],
  ])('are told again to who waits after %s', async (_, ahead, isBack) => {
    const { changes, state } = counted();
    const tenant = newId('tenant');
    await startedRun(stores, { tenant });
    state.ahead = ahead;
    const watcher = watching(changes, tenant);
    await eventually(() => state.reads >= 2, 'it reads after that place');
    state.ahead = 0;
    const before = watcher.times;
    if (isBack) for (const reconnected of state.reconnect) reconnected();
    // No row comes. A watcher is told now and again, whatever happened: that alone takes no place.
    await eventually(() => state.ends >= 2, 'the place is taken again');
    await times(watcher, before + 1);
    changes.close();
    await watcher.done;
    await eventually(() => state.reconnect.size === 0, 'nobody listens');
  });

  it('leave nothing with a signal that lives on, however often they are told and whoever watched', async () => {
    const { changes, state } = counted();
    const tenant = newId('tenant');
    await startedRun(stores, { tenant });
    const taken = vi.spyOn(AbortSignal, 'any');
    try {
      const watcher = watching(changes, tenant);
      const listeners = () => getEventListeners(watcher.gone.signal, 'abort').length;
      await eventually(() => state.ends >= 1, 'it waits');
      for (let pass = 2; pass < 5; pass++) {
        for (const reconnected of state.reconnect) reconnected();
        await eventually(() => state.ends >= pass, 'the next pass');
        expect(listeners()).toBe(1);
      }
      changes.close();
      await watcher.done;
      expect(listeners()).toBe(0);
      expect(taken).not.toHaveBeenCalled();
    } finally {
      taken.mockRestore();
    }
  });
});
