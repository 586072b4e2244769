// The archive of closed segments on PGlite, with played histories (architecture §3.6): in groups, when nothing else is
// to be done, and none is lost whatever ends the process.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { archiveClosed } from '../../src/log/archive.ts';
import { createArchiver } from '../../src/log/archiver.ts';
import { createLog } from '../../src/log/log.ts';
import type { NewContent } from '../../src/ports/content.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { eventually } from '../contract/given.ts';
import { complete, continueAsNew, emitted, HistoryBuilder } from '../support/histories.ts';
import { openAnyStores, registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { quietFor } from '../support/waiting.ts';

type Step = 'claimUnarchived' | 'raw' | 'putAll' | 'markArchived';

let stores: Stores;
let history: ScriptedHistory;
let calls: Step[];
/** Called before and behind each step; what it throws is the step's outcome. */
let around: (step: Step, when: 'before' | 'behind', values: readonly Uint8Array[]) => void;

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

beforeEach(async () => {
  history = new ScriptedHistory();
  calls = [];
  around = () => undefined;
  // What an earlier test left behind.
  await archiveClosed(parts(), new AbortController().signal);
  calls = [];
});

async function step<T>(name: Step, work: () => Promise<T>, put: readonly NewContent[] = []) {
  const values = put.map(({ bytes }) => bytes);
  calls.push(name);
  around(name, 'before', values);
  const result = await work();
  around(name, 'behind', values);
  return result;
}

/** Claims that are over at once: as another process finds it later. */
function parts() {
  const { segments, content } = stores;
  const counted = {
    ...stores,
    segments: {
      ...segments,
      claimUnarchived: (limit: number) =>
        step('claimUnarchived', () => segments.claimUnarchived(limit, 0)),
      markArchived: (marks: Parameters<typeof segments.markArchived>[0]) =>
        step('markArchived', () => segments.markArchived(marks)),
    },
    content: {
      ...content,
      putAll: (values: readonly NewContent[]) =>
        step('putAll', () => content.putAll(values), values),
    },
  };
  const reader = Object.create(history) as ScriptedHistory;
  reader.raw = (runId, at) => step('raw', () => history.raw(runId, at));
  return { stores: counted, history: reader, logger: silentLogger };
}

const live = (): AbortSignal => new AbortController().signal;

async function closedRuns(count: number): Promise<string[]> {
  const log = createLog({ stores, history, logger: silentLogger, processId: 'p' });
  const runIds = Array.from({ length: count }, () => randomUUID());
  for (const runId of runIds) {
    await registerRun(stores, runId);
    const built = new HistoryBuilder();
    built.task(complete(built.carrier(emitted('terminal', 'run.completed', { runId }))));
    history.add(`${runId}-t1`, built);
    await log.catchUp(runRef(runId));
  }
  log.close();
  return runIds;
}

/** The archive of each run tells the history that was there. */
async function expectArchived(runIds: readonly string[]): Promise<void> {
  for (const runId of runIds) {
    const [segment] = await stores.segments.ofRun(runRef(runId));
    expect(segment?.archive).toMatch(/^sha256:/);
    const bytes = await stores.content.get('default', segment?.archive ?? '');
    const told = await history.raw(runId, `${runId}-t1`);
    expect(Buffer.from(bytes).equals(told)).toBe(true);
  }
}

const archivedOf = async (runIds: readonly string[]): Promise<number> => {
  const segments = await Promise.all(runIds.map((runId) => stores.segments.ofRun(runRef(runId))));
  return segments.filter(([segment]) => segment?.archive !== undefined).length;
};

describe('architecture §3.6: closed segments are archived in groups', () => {
  it('a group costs one claim, one statement for its values and one for its marks', async () => {
    const runIds = await closedRuns(40);
    expect(await archiveClosed(parts(), live())).toBe(40);
    await expectArchived(runIds);
    const counted = (name: Step) => calls.filter((call) => call === name).length;
    expect([counted('claimUnarchived'), counted('putAll'), counted('markArchived')]).toEqual([
      2, 2, 2,
    ]);
  });

  it('a group holds no more than 8 MiB and one segment', async () => {
    const runIds = await closedRuns(3);
    const large = parts();
    large.history.raw = () => step('raw', async () => new Uint8Array(5 * 1024 * 1024));
    large.stores.content.putAll = (values) =>
      step('putAll', async () => values.map((_bytes, at) => `sha256:${at}`));
    expect(await archiveClosed(large, live())).toBe(3);
    expect(await archivedOf(runIds)).toBe(3);
    const order = calls.filter((call) => call === 'raw' || call === 'putAll');
    expect(order).toEqual(['raw', 'raw', 'putAll', 'raw', 'putAll']);
  });

  it('one that cannot be stored holds up no other', async () => {
    const runIds = await closedRuns(3);
    const [bad = ''] = runIds;
    around = (_, when, values) => {
      if (when === 'before' && values.some((bytes) => Buffer.from(bytes).includes(bad)))
        throw new Error('cannot be stored');
    };
    expect(await archiveClosed(parts(), live())).toBe(2);
    await expectArchived(runIds.slice(1));
    expect(await archivedOf([bad])).toBe(0);
  });

  it('a stop stores what was read and leaves the rest for others', async () => {
    const runIds = await closedRuns(5);
    const stop = new AbortController();
    around = () => {
      if (calls.filter((call) => call === 'raw').length === 2) stop.abort();
    };
    expect(await archiveClosed(parts(), stop.signal)).toBe(2);
    expect(await archivedOf(runIds)).toBe(2);
    around = () => undefined;
    await archiveClosed(parts(), live());
    await expectArchived(runIds);
  });

  const STEPS: readonly Step[] = ['claimUnarchived', 'raw', 'putAll', 'markArchived'];
  it.each(STEPS.flatMap((name) => [['before', name] as const, ['behind', name] as const]))(
    'a process that dies %s %s loses none, and what it stored is not stored twice',
    async (when, name) => {
      const runIds = await closedRuns(3);
      let dead = false;
      around = (at, now) => {
        // Nothing that a dead process would do next has an effect.
        dead ||= at === name && now === when;
        if (dead) throw new Error('the process is gone');
      };
      await archiveClosed(parts(), live()).catch(() => 0);
      expect(dead).toBe(true);
      expect(await archivedOf(runIds)).toBe(when === 'behind' && name === 'markArchived' ? 3 : 0);
      around = () => undefined;
      await archiveClosed(parts(), live());
      await expectArchived(runIds);
      calls = [];
      await archiveClosed(parts(), live());
      expect(calls).toEqual(['claimUnarchived']);
    },
  );
});

describe('architecture §3.6: closed segments are archived when the process is idle', () => {
  async function archiving(
    over: Partial<Parameters<typeof createArchiver>[0]>,
    work: (archiver: ReturnType<typeof createArchiver>) => Promise<void>,
  ): Promise<void> {
    const archiver = createArchiver({ ...parts(), quietMs: () => Infinity, ...over });
    archiver.start();
    try {
      await work(archiver);
    } finally {
      await archiver.stop();
    }
  }

  it('not while it has logs to write, then those that closed meanwhile together', async () => {
    let idle = false;
    await archiving({ quietMs: () => (idle ? Infinity : 0) }, async (archiver) => {
      const runIds = await closedRuns(3);
      archiver.note();
      await quietFor(300);
      expect(calls).toEqual([]);
      idle = true;
      await eventually(async () => (await archivedOf(runIds)) === 3, 'the archive');
      expect(calls.filter((call) => call === 'putAll')).toHaveLength(1);
    });
  });

  it('in a process that is never idle after a bounded time', async () => {
    const runIds = await closedRuns(2);
    await archiving({ quietMs: () => 0, waitLimitMs: 100 }, async () => {
      await eventually(async () => (await archivedOf(runIds)) === 2, 'the archive');
    });
  });

  it('also when the wall clock goes back meanwhile', async () => {
    const runIds = await closedRuns(2);
    let nowMs = Date.now();
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => (nowMs -= 60_000));
    try {
      await archiving({ quietMs: () => 0, waitLimitMs: 100 }, async () => {
        await expect.poll(() => archivedOf(runIds)).toBe(2);
      });
    } finally {
      clock.mockRestore();
    }
  });

  it('as it starts, whoever left them, and again when one closes; nothing is asked between', async () => {
    const left = await closedRuns(2);
    await archiving({}, async (archiver) => {
      await eventually(async () => (await archivedOf(left)) === 2, 'what was left');
      const before = calls.length;
      await quietFor(300);
      expect(calls).toHaveLength(before);
      const own = await closedRuns(1);
      archiver.note();
      await eventually(async () => (await archivedOf(own)) === 1, 'what closed');
    });
  });

  it('also when a look failed and one closes', async () => {
    const runIds = await closedRuns(1);
    let away = true;
    around = () => {
      if (away) throw new Error('the database is away');
    };
    await archiving({}, async (archiver) => {
      await eventually(() => calls.length > 0, 'the first look');
      away = false;
      archiver.note();
      await eventually(async () => (await archivedOf(runIds)) === 1, 'the archive');
    });
  });
});

it('architecture §3.6 a run is rebuilt from Temporal while it is not archived, and from the archive once Temporal forgot it', async () => {
  const [runId = ''] = await closedRuns(1);
  const log = createLog({ stores, history, logger: silentLogger, processId: 'p' });
  const before = await stores.log.read(runRef(runId), { after: -1, limit: 10 });
  expect((await log.rebuild(runRef(runId))).rows).toEqual(before);
  await archiveClosed(parts(), live());
  history.forget(`${runId}-t1`);
  expect((await log.rebuild(runRef(runId))).rows).toEqual(before);
  log.close();
});

it('architecture §3.6 a rebuild leaves no segment closed that goes on, wherever the head was', async () => {
  const runId = randomUUID();
  await registerRun(stores, runId);
  const first = new HistoryBuilder();
  first.task(continueAsNew(`${runId}-t2`, first.carrier(emitted('a', 'x.y', {}))));
  history.add(`${runId}-t1`, first);
  const second = new HistoryBuilder(5_000);
  history.add(`${runId}-t2`, second);
  const log = createLog({ stores, history, logger: silentLogger, processId: 'p' });
  // The head stands in the first segment.
  await log.rebuild(runRef(runId));
  const closed = async () =>
    (await stores.segments.claimUnarchived(1_000, 0))
      .filter((segment) => segment.runId === runId)
      .map(({ index }) => index);
  expect(await closed()).toEqual([0]);
  second.task(complete(second.carrier(emitted('terminal', 'run.completed', { runId }))));
  await log.rebuild(runRef(runId));
  expect((await closed()).toSorted()).toEqual([0, 1]);
  log.close();
});

/** Stores of a process that dies before, or behind, the step of that number: recordings of segments, and the log's return. */
function dyingStores(dies: { readonly nth: number; readonly when: 'before' | 'behind' }): {
  readonly stores: Stores;
  readonly steps: () => number;
} {
  let steps = 0;
  const counted = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const isLast = ++steps === dies.nth;
    if (isLast && dies.when === 'before') throw new Error('died');
    const result = await work();
    if (isLast) throw new Error('died');
    return result;
  };
  const { segments, log } = stores;
  const record: typeof segments.record = (...given) => counted(() => segments.record(...given));
  const restore: typeof log.restore = (...given) => counted(() => log.restore(...given));
  const own = { ...stores, segments: { ...segments, record }, log: { ...log, restore } };
  return { stores: own, steps: () => steps };
}

it.each(['before', 'behind'] as const)(
  'architecture §3.6 no closed log lacks segments, whichever step of its rebuild the process dies %s',
  async (when) => {
    for (let nth = 1; ; nth++) {
      const runId = randomUUID();
      await registerRun(stores, runId);
      const first = new HistoryBuilder();
      first.task(continueAsNew(`${runId}-t2`, first.carrier(emitted('a', 'x.y', {}))));
      const second = new HistoryBuilder(5_000);
      second.task(complete(second.carrier(emitted('terminal', 'run.completed', { runId }))));
      history.add(`${runId}-t1`, first);
      history.add(`${runId}-t2`, second);
      const { stores: own, steps } = dyingStores({ nth, when });
      const log = createLog({ stores: own, history, logger: silentLogger, processId: 'p' });
      const outcome = await log.rebuild(runRef(runId)).then(() => 'rebuilt', String);
      const head = await stores.log.head(runRef(runId));
      if (head?.closed) {
        await archiveClosed(parts(), live());
        const archives = (await stores.segments.ofRun(runRef(runId))).map(({ archive }) => archive);
        const archived: unknown = expect.stringMatching(/^sha256:/);
        expect([nth, archives]).toEqual([nth, [archived, archived]]);
      }
      log.close();
      if (outcome === 'rebuilt') {
        expect(steps()).toBe(3);
        break;
      }
      expect(outcome).toBe('Error: died');
    }
  },
);
