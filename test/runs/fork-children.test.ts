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
import { appendRows, newRun } from '../contract/given.ts';
import { end } from '../contract/retention.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';

const CALL = 'call-1';
const STARTED_BY = 'node.started|n/1/0/node';
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

function children(more: object = {}) {
  const log = {
    head: (run: RunRef) => stores.log.head(run),
    fresh: async (run: RunRef) => ({ head: await stores.log.head(run), stale: false }),
    rows: (run: RunRef, query: object) => readRows(stores.log, run, query),
    ...more,
  };
  const engine = { start: async ({ runId }: RunInput) => ({ temporalRunId: `t-${runId}` }) };
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
      const noted: { keys: string[]; temporalRunId: string | undefined }[] = [];
      await children().fork(fork, RECORDING, {
        effects: {
          recordingOf: () => Promise.reject(new Error('it has none below')),
          note: async ({ tenant, runId }, rows) => {
            const row = await stores.runs.find(tenant, runId);
            noted.push({ keys: await keysOf(rows), temporalRunId: row?.temporalRunId });
          },
        },
      });
      expect(noted).toEqual(expected ? [{ keys: expected, temporalRunId: undefined }] : []);
    },
  );

  // [I91]
  it.each(['ended', 'open'] as const)(
    'has what runs below it performed noted before any of the family begins (%s)',
    async (kind) => {
      const { source, child } = await familyOf();
      await appendRows(stores, child.runId, [STARTED_BY]);
      const grandchild = await openRun({ header: below(child, 'there') });
      if (kind === 'ended') for (const run of [grandchild, child, source]) await end(stores, run);
      const fork = await forked(source, 'branch');
      const own = childRunIdOf(fork.runId, CALL, 0);
      const noted: object[] = [];
      await children().fork(fork, RECORDING, {
        effects: {
          recordingOf: async ({ runId }) => {
            expect([kind, runId]).toEqual(['open', own]);
            return RECORDING;
          },
          note: async ({ runId, input }, rows, keeper) => {
            const { temporalRunId } = (await stores.runs.find(fork.tenant, own)) ?? {};
            const { series } = input.header;
            const keys = (await keysOf(rows)).length > 0;
            noted.push({ runId, series, keeper: keeper.runId, keys, temporalRunId });
          },
        },
      });
      const series = childSeriesOf(fork.runId, 'here');
      const rest = { keeper: own, keys: true, temporalRunId: undefined };
      expect(noted).toEqual([
        { runId: own, series, ...rest },
        { runId: childRunIdOf(own, CALL, 0), series: childSeriesOf(series, 'there'), ...rest },
      ]);
    },
  );

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
