// The children of a fork (src/runs/fork-children.ts): what they read stays as long as they may read it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { childRunIdOf, childSeriesOf } from '../../src/rules/ids.ts';
import type { ForkOf, RunInput } from '../../src/rules/run-input.ts';
import type { Recording } from '../../src/rules/recording.ts';
import { readRows } from '../../src/log/rows.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { ChildrenDeps } from '../../src/runs/deps.ts';
import { createChildren } from '../../src/runs/children.ts';
import type { EffectsBelow, NoteEffects } from '../../src/runs/fork-children.ts';
import { appendRows, newRun } from '../contract/given.ts';
import { end } from '../contract/retention.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';

const CALL = 'call-1';
const STARTED_BY = 'node.started|n/1/0/node';
const AN_HOUR_MS = 3_600_000;
const NOW = { keptMs: 0, restMs: 0 };
const RECORDING: Recording = {
  entries: [{ key: STARTED_BY, type: 'node.started', payload: '{}', timestampMs: 1 }],
  batches: [],
};

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const forkOf = (sourceRunId: string, mode: ForkOf['mode'] = 'replay'): ForkOf => ({
  ...{ sourceRunId, fromSeq: 1, length: 1, mode, generation: 1 },
  clocks: [{ recordEndsMs: 1, madeAtMs: 1 }],
});

async function openRun(of: Partial<RunInput> = {}): Promise<RunRef> {
  const run = newRun();
  const input = { ...run.input, ...of, runId: run.runId };
  if (input.header.parentRunId === undefined) await stores.runs.accept({ ...run, input });
  else await stores.families.acceptChild({ ...run, input }, 100);
  const ref = stores.runs.ref(run.tenant, run.runId);
  await stores.runs.markStarted(ref, `t-${run.runId}`);
  await appendRows(stores, run.runId, ['one']);
  return ref;
}

/** A run with a child. */
async function familyOf(child: Partial<RunInput> = {}) {
  const source = await openRun();
  return { source, child: await openRun({ ...child, header: below(source, 'here') }) };
}

/** With a child of that child, which both go on. */
async function generations() {
  const { source, child } = await familyOf();
  await appendRows(stores, child.runId, [STARTED_BY]);
  return { source, child, grandchild: await openRun({ header: below(child, 'there') }) };
}

function below({ runId }: RunRef, place: string): RunInput['header'] {
  return {
    ...{ sessionId: runId, correlationId: runId, parentRunId: runId },
    ...{ place, series: childSeriesOf(runId, place) },
    ...{ causationId: CALL, startedBy: { runId, key: STARTED_BY }, depth: 1 },
  };
}

async function keysOf(rows: AsyncIterable<LogRow>): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of rows) keys.push(key);
  return keys;
}

async function forked({ runId }: RunRef, mode: ForkOf['mode']): Promise<RunRef> {
  const fork = await openRun({ fork: forkOf(runId, mode) });
  const source = stores.runs.ref(fork.tenant, runId);
  expect(await stores.retention.noteFork(source, fork.runId)).toBe(true);
  return fork;
}

/** `started`: whom the forks start. */
function children(more: object = {}, started: string[] = []) {
  const log = {
    head: (run: RunRef) => stores.log.head(run),
    fresh: async (run: RunRef) => ({ head: await stores.log.head(run), stale: false }),
    rows: (run: RunRef, query: object) => readRows(stores.log, run, query),
    ...more,
  };
  const start = async ({ runId }: RunInput) => {
    started.push(runId);
    return { temporalRunId: `t-${runId}` };
  };
  const engine = { start };
  return createChildren({ stores, log, engine, logger: silentLogger } as unknown as ChildrenDeps);
}

describe('a child of a fork', () => {
  it('[I99] is of the series of its place in the fork, and not of that in the source', async () => {
    const { source, child } = await familyOf();
    for (const run of [child, source]) await end(stores, run);
    const fork = await forked(source, 'replay');
    await children().fork(fork, RECORDING);
    const row = await stores.runs.find(fork.tenant, childRunIdOf(fork.runId, CALL, 0));
    expect(row?.input.header).toMatchObject({
      ...{ place: 'here', series: childSeriesOf(fork.runId, 'here') },
    });
  });

  // [I91]
  it.each([
    ['branch', ['one', 'terminal']],
    ['replay', undefined],
  ] as const)(
    'notes what its source performed before it starts, where runs may come in its place (%s)',
    async (mode, expected) => {
      const { source, child } = await familyOf();
      for (const run of [child, source]) await end(stores, run);
      const fork = await forked(source, mode);
      const own = childRunIdOf(fork.runId, CALL, 0);
      const noted: object[] = [];
      await children().fork(fork, RECORDING, {
        effects: {
          recordingOf: () => Promise.reject(new Error('it has none below')),
          note: async ({ tenant, runId }, rows, keeper) => {
            const { temporalRunId } = (await stores.runs.find(tenant, runId)) ?? {};
            noted.push({ keys: await keysOf(rows), keeper: keeper.runId, temporalRunId });
          },
        },
      });
      const rest = { keys: expected, temporalRunId: undefined };
      // With the branch while it is not accepted, and then as its own.
      const keepers = expected ? [fork.runId, own] : [];
      expect(noted).toEqual(keepers.map((keeper) => ({ keeper, ...rest })));
    },
  );

  // [I91]
  it.each(['ended', 'open'] as const)(
    'has what all generations below performed noted before any of the family is accepted (%s)',
    async (kind) => {
      const { source, child, grandchild } = await generations();
      if (kind === 'ended') for (const run of [grandchild, child, source]) await end(stores, run);
      const fork = await forked(source, 'branch');
      const own = childRunIdOf(fork.runId, CALL, 0);
      const noted: object[] = [];
      const started: string[] = [];
      await children({}, started).fork(fork, RECORDING, {
        effects: {
          recordingOf: async ({ sourceRunId }) => {
            expect([kind, sourceRunId]).toEqual(['open', child.runId]);
            return RECORDING;
          },
          note: async ({ runId, input }, rows, keeper) => {
            // The reaper starts what it finds accepted.
            for (const left of await stores.runs.unstarted(-AN_HOUR_MS, 1_000))
              if (left.runId === own) started.push('by the reaper');
            const { series } = input.header;
            const keys = (await keysOf(rows)).length > 0;
            noted.push({ runId, series, keeper: keeper.runId, keys, started: [...started] });
          },
        },
      });
      const series = childSeriesOf(fork.runId, 'here');
      const first = { runId: own, series, keys: true };
      const second = { runId: childRunIdOf(own, CALL, 0), series: childSeriesOf(series, 'there') };
      const before = { keeper: fork.runId, started: [] };
      expect(noted).toEqual([
        { ...first, ...before },
        { ...second, keys: true, ...before },
        // By then all are noted. It may end before it has what was below it: that is not the branch's either.
        { ...first, keeper: own, started: ['by the reaper'] },
        { ...second, keys: true, keeper: own, started: ['by the reaper', 'by the reaper'] },
      ]);
      expect(started.at(-1)).toBe(own);
    },
  );

  // [I91]
  it('leaves to the fork of a run below, when it is tried again, what that one has noted as its own', async () => {
    const { source } = await generations();
    const fork = await forked(source, 'branch');
    const effects: EffectsBelow = {
      recordingOf: async () => RECORDING,
      note: async ({ input: { header } }, _rows, { tenant, runId }) => {
        const place = {
          tenant,
          runId,
          rootRunId: header.correlationId,
          series: header.series ?? '',
        };
        const call = { nodeId: 'n', visit: 1, toolId: 't', argsHash: 'h', occurrence: 0 };
        await stores.effects.inherit([
          { identity: { ...place, ...call }, attempt: 0, state: 'in-doubt' },
        ]);
      },
    };
    const forks = async (runId: string) => {
      await children().fork(stores.runs.ref(fork.tenant, runId), RECORDING, { effects });
      const own = childRunIdOf(fork.runId, CALL, 0);
      const runs = [fork.runId, own, childRunIdOf(own, CALL, 0)];
      const rows = runs.map((run) => stores.effects.ofRun(stores.runs.ref(fork.tenant, run)));
      return (await Promise.all(rows)).map(({ length }) => length);
    };
    expect(await forks(fork.runId)).toEqual([0, 2, 0]);
    expect(await forks(childRunIdOf(fork.runId, CALL, 0))).toEqual([0, 1, 1]);
    expect(await forks(fork.runId)).toEqual([0, 1, 1]);
  });

  // [I91]
  it('is not made, nor any beside it, where what is below it cannot be read', async () => {
    const { source, grandchild } = await generations();
    const fork = await forked(source, 'branch');
    const rows = (run: RunRef, query: object) => {
      if (run.runId === grandchild.runId) throw new HostError('history_undecodable');
      return readRows(stores.log, run, query);
    };
    const noted: string[] = [];
    const note: NoteEffects = async ({ runId }) => void noted.push(runId);
    const effects = { recordingOf: async () => RECORDING, note };
    await expect(children({ rows }).fork(fork, RECORDING, { effects })).rejects.toMatchObject({
      code: 'history_undecodable',
    });
    const { runs } = await stores.families.children(fork, { limit: 1 });
    expect([runs, noted]).toEqual([[], []]);
  });

  // [I70]
  it('holds its source, and what that needs, also once the fork that it is a child of has ended', async () => {
    const { source, child } = await familyOf();
    for (const run of [child, source]) await end(stores, run);
    const bytes = new TextEncoder().encode(`needed by ${child.runId}`);
    const hash = await stores.content.put(child, bytes);
    const fork = await forked(source, 'replay');
    await children().fork(fork, RECORDING);
    const own = stores.runs.ref(fork.tenant, childRunIdOf(fork.runId, CALL, 0));
    expect((await stores.runs.find(own.tenant, own.runId))?.input.fork).toMatchObject({
      sourceRunId: child.runId,
    });
    // Its fork ends first, as it does where the child was set free.
    await end(stores, fork);
    expect(await stores.retention.expire(source, NOW)).toEqual({ kind: 'kept', why: 'forked' });
    await end(stores, own);
    expect((await stores.retention.expire(source, NOW)).kind).toBe('expired');
    for (const run of [source, child]) while (!(await stores.retention.clean(run, 100)));
    while ((await stores.content.sweep(100)) > 0);
    expect(new Uint8Array(await stores.content.get(own.tenant, hash))).toEqual(bytes);
  });

  it('[I98] waits for the log of its source while that is made again', async () => {
    const { source } = await familyOf();
    const fresh = () => Promise.reject(new HostError('run_not_found'));
    const fork = await forked(source, 'replay');
    await expect(children({ fresh }).fork(fork, RECORDING)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
  });

  // [I70]
  it('is not made where a run that it would go by is gone, and none beside it', async () => {
    const record = await openRun();
    await end(stores, record);
    const recordedTools = { runId: record.runId, length: 1 };
    const { source } = await familyOf({
      fork: { ...forkOf(record.runId, 'branch'), overlay: { recordedTools } },
    });
    expect((await stores.retention.expire(record, NOW)).kind).toBe('expired');
    const fork = await forked(source, 'branch');
    await expect(children().fork(fork, RECORDING)).rejects.toMatchObject({
      code: 'replay_source_missing',
    });
    expect((await stores.families.children(fork, { limit: 1 })).runs).toEqual([]);
  });
});
