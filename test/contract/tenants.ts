// A run under the ref of another tenant (architecture §10): every store finds nothing, and changes nothing. [I43]
import { describe, expect, it } from 'vitest';
import type { HostError } from '../../src/rules/errors.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { runRef } from '../support/run-ref.ts';
import {
  NO_WAITS,
  appendRows,
  batchAfter,
  delta,
  entry,
  headOf,
  newRun,
  refTo,
  startedRun,
  type GivenStores,
} from './given.ts';

const ACTIVITY = 'agent/1/0/i0.t0.infer';
const SEGMENT = { index: 0, temporalRunId: 'T1' };
const TTL_MS = 60_000;

/** All that is stored of a run. */
async function dump({ log, segments, projection, runs }: Stores, run: RunRef) {
  return {
    row: await runs.find(run.tenant, run.runId),
    head: await log.head(run),
    tail: await log.tail(run),
    rows: await log.read(run, { after: -1, limit: 100 }),
    sequence: await log.sequenceOf(run, entry(run.runId, 'a').eventId),
    deltas: await log.storedDeltas(run, ACTIVITY),
    blocks: await log.openBlocks(run),
    segments: await segments.ofRun(run),
    watched: [...(await projection.watched([run]))],
  };
}

const NOTHING: Awaited<ReturnType<typeof dump>> = {
  row: undefined,
  head: undefined,
  tail: undefined,
  rows: [],
  sequence: undefined,
  deltas: [],
  blocks: [],
  segments: [],
  watched: [],
};

/** What is tried under the wrong ref, and what comes of it: a value, or an error's code. */
const ATTEMPTS: Record<string, [(stores: Stores, wrong: RunRef) => Promise<unknown>, unknown]> = {
  append: [
    async (stores, run) => {
      const rows = [entry(run.runId, 'smuggled')];
      return stores.log.append(batchAfter(await headOf(stores, run.runId), rows, { run }));
    },
    'run_not_found',
  ],
  appendDeltas: [
    ({ log }, run) => log.appendDeltas(run, ACTIVITY, 1, [delta(run.runId, ACTIVITY, 1)]),
    { kind: 'refused', reason: 'no-head' },
  ],
  closeBlock: [({ log }, run) => log.closeBlock(run, ACTIVITY), []],
  restore: [
    async (stores, run) => {
      const head = await headOf(stores, run.runId);
      return stores.log.restore(
        run,
        { summary: NO_WAITS, head: { ...head, nextSequence: 0 }, rows: [] },
        head,
      );
    },
    'run_not_found',
  ],
  setProblem: [({ log }, run) => log.setProblem(run, 'history_undecodable'), undefined],
  'record a segment': [
    ({ segments }, run) => segments.record(run, { ...SEGMENT, index: 1 }),
    'run_not_found',
  ],
  'mark a segment as archived': [
    ({ segments }, run) => segments.markArchived([{ run, index: 0, archive: 'sha256:other' }]),
    undefined,
  ],
  watch: [({ projection }, run) => projection.watch(run, 'other', TTL_MS), undefined],
  unwatch: [({ projection }, run) => projection.unwatch(run, 'own'), undefined],
  markStarted: [({ runs }, run) => runs.markStarted(run, 'T2'), undefined],
  markStartFailed: [
    ({ runs }, run) => runs.markStartFailed(run, { cause: 'x', atMs: 1 }),
    undefined,
  ],
};

export function tenantsContract(stores: GivenStores): void {
  const streaming = async (): Promise<string> => {
    const runId = await startedRun(stores());
    await appendRows(stores(), runId, ['a', 'b']);
    await stores().log.appendDeltas(refTo(runId), ACTIVITY, 1, [delta(runId, ACTIVITY, 0)]);
    await stores().segments.record(refTo(runId), SEGMENT);
    await stores().projection.watch(refTo(runId), 'own', TTL_MS);
    return runId;
  };

  describe('architecture §10 under the ref of another tenant', () => {
    it('nothing is read of a run', async () => {
      const runId = await streaming();
      const own = await dump(stores(), refTo(runId));
      for (const [name, nothing] of Object.entries(NOTHING))
        expect(own[name as keyof typeof own], name).not.toEqual(nothing);
      expect(await dump(stores(), runRef(runId, 'other'))).toEqual(NOTHING);
    });

    it.each(Object.entries(ATTEMPTS))(
      'nothing is changed of it: %s',
      async (_, [attempt, told]) => {
        const runId = await streaming();
        const before = await dump(stores(), refTo(runId));
        const outcome = await attempt(stores(), runRef(runId, 'other')).catch(
          (error: unknown) => (error as HostError).code,
        );
        expect(outcome).toEqual(told);
        expect(await dump(stores(), refTo(runId))).toEqual(before);
        expect(await dump(stores(), runRef(runId, 'other'))).toEqual(NOTHING);
      },
    );

    it('a run that waits for its start is neither started nor given up', async () => {
      const run = newRun();
      const { runs } = stores();
      await runs.accept(run);
      const wrong = runs.ref('other', run.runId);
      expect(await runs.markStarted(wrong, 'T1')).toBeUndefined();
      expect(await runs.markStartFailed(wrong, { cause: 'x', atMs: 1 })).toBeUndefined();
      expect(await runs.find(run.tenant, run.runId)).toEqual(run);
    });
  });
}
