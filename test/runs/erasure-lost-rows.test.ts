// An erasure where rows of one run are lost or damaged (architecture §10.1), on both twins: the key is destroyed, the log of
// the run has one ending, and the receipt says of which runs the logs are not kept. It is signed last.
import proto from '@temporalio/proto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import { createLog } from '../../src/log/log.ts';
import type { RunEngine } from '../../src/ports/engine.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { ErasureRow, ErasureWait } from '../../src/ports/subjects.ts';
import { HostError } from '../../src/rules/errors.ts';
import { advanceErasure, type EraseDeps } from '../../src/runs/erase.ts';
import { startNew } from '../../src/runs/start.ts';
import { batchAfter, entry, headOf, newId, newRun, refTo } from '../contract/given.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { HistoryBuilder } from '../support/histories.ts';
import { ScriptedHistory } from '../support/log-parts.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { takes } from '../support/waiting.ts';

const TENANT = 'default';
const KEY = { id: 'k', key: new Uint8Array(32).fill(7) };
/** Looks at one step of an erasure before it is taken for one that does not come to its end. */
const MAX_LOOKS = 40;
const { EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: TERMINATED } =
  proto.temporal.api.enums.v1.EventType;

interface Receipt {
  readonly logs: { readonly runs: number; readonly events: number; readonly notKept?: number };
  readonly runs: readonly { readonly runId: string; readonly isKept?: false }[];
}

// [I97]
describe.each(await databaseTwins())('an erasure on %s', (_name, database) => {
  let db: Db;
  let close: () => Promise<void>;
  let stores: Stores;
  let history: ScriptedHistory;
  let log: ReturnType<typeof createLog>;
  const terminated: string[] = [];
  const warned: unknown[] = [];
  const logger = { ...quietLogger, warn: (...line: unknown[]) => void warned.push(line) };
  beforeAll(async () => {
    const options = await database();
    ({ db, close } = await openDatabase(options, quietLogger));
    // No key is used without asking, and so none has to be forgotten.
    const given = { database: options, logger: quietLogger, masterKeys: [KEY], keyHeldMs: 0 };
    stores = await storesOn({ db, close: async () => undefined }, given);
    history = new ScriptedHistory();
    log = createLog({ stores, history, logger: quietLogger, processId: 'p1' });
  });
  afterAll(async () => {
    log.close();
    await close();
  });

  /** A run with one entry; its segment is named by it, and Temporal has forgotten it. */
  async function begunRun(subject: string, how: { readonly ends?: boolean } = {}): Promise<RunRef> {
    const subjectKey = (await stores.subjects.keyFor(TENANT, { subject })) ?? '';
    const { runId } = newRun();
    await stores.runs.accept(newRun({ runId, subjectKey }));
    const run = refTo(runId);
    const temporalRunId = `${runId}-t1`;
    await stores.runs.markStarted(run, temporalRunId);
    const cursor = { temporalRunId, historyEventId: 1, token: '' };
    const rows = [entry(runId, 'said')];
    await stores.log.append(
      batchAfter(await headOf(stores, runId), rows, { cursor, translateState: null }),
    );
    if (how.ends) await endRun(run);
    return run;
  }

  async function endRun({ runId }: RunRef): Promise<void> {
    const rows = [entry(runId, 'terminal', { type: 'run.completed' })];
    const over = { status: 'completed', closed: true } as const;
    await stores.log.append(batchAfter(await headOf(stores, runId), rows, over));
  }

  async function begin(subject: string, cancelsOpen = true): Promise<ErasureRow> {
    const asked = { asked: { by: 'tester' }, cancelsOpen };
    const begun = await stores.subjects.beginErasure(TENANT, subject, asked);
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    return begun.erasure;
  }

  async function lose({ runId }: RunRef, ...tables: readonly string[]): Promise<void> {
    for (const table of tables) await db.query(`DELETE FROM ${table} WHERE run_id = $1`, [runId]);
  }

  /** Temporal ends a run, if it has it. */
  function end(runId: string): void {
    terminated.push(runId);
    const segment = `${runId}-t1`;
    if (!history.segments.has(segment)) return;
    const ended = { workflowExecutionTerminatedEventAttributes: {} };
    history.add(segment, new HistoryBuilder().task().lone(TERMINATED, ended));
  }

  /** Of a Temporal in which no worker does anything. */
  function depsOf(over: Partial<EraseDeps>): EraseDeps {
    const send: RunEngine['send'] = async (_runId, _updateId, { bodyDigest }) => ({
      ...{ bodyDigest, status: 'cancelling' },
    });
    const terminate = async (runId: string) => end(runId);
    const engine = { send, terminate, ping: async () => undefined };
    const deps = { stores, log, logger, engine, unreadMs: 0, redactor: { text: String }, ...over };
    return deps as unknown as EraseDeps;
  }

  async function advance(
    begun: ErasureRow,
    over: Partial<EraseDeps> = {},
    maxLooks = MAX_LOOKS,
  ): Promise<ErasureRow> {
    const { erasureId } = begun;
    const erasure = (await stores.subjects.erasure(TENANT, erasureId)) ?? begun;
    let looks = 0;
    const isOver = () => looks++ > maxLooks;
    const patience = { isOver, isLate: () => false, rest: () => takes(20) };
    return advanceErasure(depsOf(over), erasure, patience);
  }

  async function receiptOf(begun: ErasureRow, over: Partial<EraseDeps> = {}): Promise<Receipt> {
    const { state, receipt, waitsFor } = await advance(begun, over);
    expect([state, waitsFor]).toEqual(['erased', undefined]);
    return (JSON.parse(receipt ?? '{}') as { receipt: Receipt }).receipt;
  }

  /** Each key of its log and, of those that are readable as they are, the type. */
  async function shownLog(run: RunRef): Promise<string[]> {
    const rows = await stores.log.read(run, { after: -1, limit: 100 });
    expect(rows.map(({ sequence }) => sequence)).toEqual([...rows.keys()]);
    return rows.map(({ key, type }) => (key === 'terminal' ? type : key));
  }

  async function expectDestroyed({ keyId }: ErasureRow): Promise<void> {
    const [key] = await db.query('SELECT state, wrapped FROM subject_keys WHERE key_id = $1', [
      keyId,
    ]);
    expect(key).toEqual({ state: 'destroyed', wrapped: null });
  }

  /** Of a subject with one run more, which is whole. */
  async function expectKept(begun: ErasureRow, run: RunRef, events: number): Promise<void> {
    const { logs, runs } = await receiptOf(begun);
    expect(logs).toEqual({ runs: 2, events: events + 2, root: expect.any(String) as unknown });
    expect(runs.map(({ runId, isKept }) => [runId, isKept])).toContainEqual([run.runId, undefined]);
    await expectDestroyed(begun);
    const before = await shownLog(run);
    // It comes back from what is kept.
    await log.rebuild(run);
    expect(await shownLog(run)).toEqual(before);
    expect((await stores.log.head(run))?.closed).toBe(true);
  }

  it.each([
    ['that had ended', true, ['said', 'run.completed'], 'completed'],
    [
      'that had not ended, and of which Temporal knows nothing',
      false,
      ['said', 'run.failed'],
      'failed',
    ],
  ])('of a run without its head %s has one ending of its log', async (...given) => {
    const [what, ends, keys, status] = given;
    await begunRun(what, { ends: true });
    const run = await begunRun(what, { ends });
    const erasure = await begin(what);
    await lose(run, 'run_heads');
    await expectKept(erasure, run, 2);
    expect(await shownLog(run)).toEqual(keys);
    expect(await stores.log.head(run)).toMatchObject({ status, nextSequence: 2 });
  });

  it('ends a run by whose stored state nobody can read its history', async () => {
    await begunRun('state', { ends: true });
    const run = await begunRun('state');
    history.add(`${run.runId}-t1`, new HistoryBuilder());
    const erasure = await begin('state');
    await db.query(`UPDATE run_heads SET translate_state = '{"a":1}' WHERE run_id = $1`, [
      run.runId,
    ]);
    await expectKept(erasure, run, 2);
    expect(await shownLog(run)).toEqual(['said', 'run.failed']);
  });

  it('makes the head of a run from history, which says how it ended', async () => {
    await begunRun('told', { ends: true });
    const run = await begunRun('told');
    history.add(`${run.runId}-t1`, new HistoryBuilder().task());
    const erasure = await begin('told');
    await lose(run, 'run_heads', 'run_events');
    const send: RunEngine['send'] = async (runId, _updateId, { bodyDigest }) => {
      end(runId);
      return { bodyDigest, status: 'cancelling' };
    };
    // It is asked to end in order, and is never taken for lost.
    const engine = { ...depsOf({}).engine, send };
    const { logs } = await receiptOf(erasure, { engine, unreadMs: 3_600_000 });
    expect(logs.notKept).toBeUndefined();
    expect(await shownLog(run)).toEqual(['run.failed']);
  });

  it('waits where what a head is made from may be had later', async () => {
    const run = await begunRun('away');
    const erasure = await begin('away');
    await lose(run, 'run_heads');
    history.failure = new HostError('service_unavailable');
    const { state, waitsFor } = await advance(erasure);
    history.failure = undefined;
    expect([state, waitsFor?.kind]).toEqual(['closing', 'open-runs']);
    expect(waitsFor?.reason).toContain(`${run.runId} cannot be ended now (service_unavailable)`);
    expect(await shownLog(run)).toEqual(['said']);
  });

  it('ends a run with a damaged row of which Temporal knows nothing', async () => {
    await begunRun('damaged', { ends: true });
    const run = await begunRun('damaged');
    const erasure = await begin('damaged');
    await db.query("UPDATE runs SET input = '{' WHERE run_id = $1", [run.runId]);
    await expectKept(erasure, run, 2);
    expect(await shownLog(run)).toEqual(['said', 'run.failed']);
  });

  it('waits for a whole run of which Temporal knows nothing, by its name', async () => {
    const run = await begunRun('forgotten');
    const send = () => Promise.reject(new HostError('service_unavailable'));
    const engine = { ...depsOf({}).engine, send };
    const { state, waitsFor } = await advance(await begin('forgotten'), { engine });
    expect([state, waitsFor?.kind]).toEqual(['closing', 'open-runs']);
    expect(waitsFor?.reason).toContain(`${run.runId} cannot be ended now (service_unavailable)`);
    expect(await shownLog(run)).toEqual(['said']);
  });

  // [I115]
  it('one failed read ends no run that may end in order, however long ago the erasure was asked for', async () => {
    const run = await begunRun('once');
    history.add(`${run.runId}-t1`, new HistoryBuilder());
    const erasure = await begin('once');
    await db.query('UPDATE subject_erasures SET asked_at_ms = 1 WHERE erasure_id = $1', [
      erasure.erasureId,
    ]);
    let reads = 0;
    const fresh: typeof log.fresh = async (of) => {
      if (reads++ > 0) return log.fresh(of);
      return { head: await headOf(stores, of.runId), stale: true };
    };
    const terminatedWhile: (string | undefined)[] = [];
    const terminate = async (): Promise<void> => {
      terminatedWhile.push((await stores.subjects.erasure(TENANT, erasure.erasureId))?.state);
    };
    const send: RunEngine['send'] = async (runId, _updateId, { bodyDigest }) => {
      if (reads > 0) end(runId);
      return { bodyDigest, status: 'cancelling' };
    };
    const engine = { ...depsOf({}).engine, send, terminate };
    const given = { engine, log: { ...log, fresh }, unreadMs: 3_600_000 };
    await receiptOf(erasure, given);
    expect(terminatedWhile).toEqual(['destroyed']);
    expect(reads).toBeGreaterThan(1);
  });

  it('that was to end no run waits for none whose head was lost since', async () => {
    const run = await begunRun('ended', { ends: true });
    await begunRun('ended', { ends: true });
    const erasure = await begin('ended', false);
    await lose(run, 'run_heads');
    await expectKept(erasure, run, 2);
  });

  it('keeps the log also where the head was lost after the key', async () => {
    const run = await begunRun('late', { ends: true });
    await begunRun('late', { ends: true });
    const erasure = await begin('late');
    expect(await stores.subjects.destroy(erasure)).toBe(true);
    await lose(run, 'run_heads');
    await expectKept(erasure, run, 2);
  });

  it.each<[string, boolean, boolean, string[], string[], boolean?]>([
    ['that had ended', true, true, ['runs'], ['said', 'run.completed']],
    ['that had not ended', false, true, ['runs'], ['said', 'run.failed']],
    ['and its history, that had not ended', false, true, ['runs'], ['said', 'run.failed'], true],
    ['whose start was half done', false, false, ['runs'], ['run.failed']],
    ['nor its head', false, true, ['runs', 'run_heads'], ['said']],
  ])('names the run without its row %s, and says that its log is not kept', async (...given) => {
    const [what, ends, starts, tables, keys, isForgotten = false] = given;
    const subject = `rowless ${what}`;
    await begunRun(subject, { ends: true });
    const run = starts ? await begunRun(subject, { ends }) : await acceptedRun(subject);
    const erasure = await begin(subject);
    await lose(run, ...tables);
    // Temporal says nothing of an end before it is asked for one.
    if (!isForgotten) history.add(`${run.runId}-t1`, new HistoryBuilder());
    const { logs, runs } = await receiptOf(erasure);
    expect(logs).toMatchObject({ runs: 2, events: 2 + keys.length, notKept: 1 });
    expect(runs.filter(({ isKept }) => isKept === false)).toMatchObject([{ runId: run.runId }]);
    await expectDestroyed(erasure);
    expect(terminated).toContain(run.runId);
    expect(await shownLog(run)).toEqual(keys);
    const fields = { runId: run.runId, erasureId: erasure.erasureId };
    expect(warned).toContainEqual([
      ...['the log of an erased run is not kept: the run has no row', fields],
    ]);
  });

  it.each([
    ['that had ended', true, ['said', 'run.completed']],
    ['that had not ended', false, ['said', 'run.failed']],
  ])(
    'finds a run %s by its own row, where it is not in the list of its subject',
    async (...given) => {
      const [what, ends, keys] = given;
      const subject = `unlisted ${what}`;
      await begunRun(subject, { ends: true });
      const run = await begunRun(subject, { ends });
      history.add(`${run.runId}-t1`, new HistoryBuilder());
      await lose(run, 'subject_runs');
      const erasure = await begin(subject);
      // Of this one nobody reads its history either.
      await db.query('UPDATE run_heads SET translate_state = \'{"a":1}\' WHERE run_id = $1', [
        run.runId,
      ]);
      await expectKept(erasure, run, 2);
      expect(await shownLog(run)).toEqual(keys);
    },
  );

  async function acceptedRun(subject: string): Promise<RunRef> {
    const subjectKey = (await stores.subjects.keyFor(TENANT, { subject })) ?? '';
    const run = newRun({ subjectKey });
    await stores.runs.accept(run);
    return refTo(run.runId);
  }

  it('without a request to end open runs is refused for one whose head is not there, by its name', async () => {
    const run = await begunRun('refused', { ends: true });
    await lose(run, 'run_heads');
    const asked = { asked: { by: 'tester' }, cancelsOpen: false };
    const begun = await stores.subjects.beginErasure(TENANT, 'refused', asked);
    expect(begun).toEqual({ kind: 'open', runIds: [run.runId] });
  });

  it.each([
    ['pages', "'{'"],
    ['pages', `'{"a":"b"}'`],
    ['root', "'?'"],
    ['events', '-1'],
    ['erasure_id', "'another'"],
  ])('notes a log again of which %s are %s', async (column, value) => {
    const subject = newId('noted');
    const run = await begunRun(subject, { ends: true });
    await begunRun(subject, { ends: true });
    const erasure = await begin(subject);
    const sign = () => Promise.reject(new HostError('key_unavailable'));
    const unsigned = { ...stores, subjects: { ...stores.subjects, sign } };
    expect((await advance(erasure, { stores: unsigned })).waitsFor?.kind).toBe('failed');
    const noted = await stores.subjects.erasedRun(run);
    await db.query(`UPDATE erased_runs SET ${column} = ${value} WHERE run_id = $1`, [run.runId]);
    await expectKept(erasure, run, 2);
    expect(await stores.subjects.erasedRun(run)).toEqual(noted);
  });

  // [I102]
  it('signs nothing while the database may still give out its old version of the key, and names why', async () => {
    await begunRun('old version', { ends: true });
    const erasure = await begin('old version');
    const wait: ErasureWait = { kind: 'database', reason: 'A standby has not followed yet.' };
    const answers: (ErasureWait | undefined)[] = [];
    const signed: string[] = [];
    const held: EraseDeps['stores']['subjects'] = {
      ...stores.subjects,
      overwrite: async () => answers.shift(),
      sign: (text) => (signed.push(text), stores.subjects.sign(text)),
    };
    const asked = { stores: { ...stores, subjects: held } };
    answers.push(wait, wait, wait);
    const { state, receipt, waitsFor } = await advance(erasure, asked, answers.length - 2);
    expect({ state, receipt, waitsFor }).toEqual({ state: 'destroyed', waitsFor: wait });
    expect([signed, answers]).toEqual([[], []]);
    // Once the database has nothing more to say, the same step lets it through.
    answers.push(wait, undefined);
    await receiptOf(erasure, asked);
    expect([signed.length, answers]).toEqual([1, []]);
  });

  it('keeps its digests where the pages of a log are damaged later, and names them where they are read', async () => {
    const run = await begunRun('later', { ends: true });
    await receiptOf(await begin('later'));
    await db.query("UPDATE erased_runs SET pages = '[5]' WHERE run_id = $1", [run.runId]);
    const reason = `What stands at pages ${run.runId} is damaged.`;
    const unreadable = { code: 'history_undecodable', message: reason };
    expect(await stores.subjects.erasedRun(run)).toMatchObject({
      events: 2,
      pages: [],
      unreadable,
    });
    await expect(log.rebuild(run)).rejects.toMatchObject(unreadable);
    expect(await shownLog(run)).toEqual(['said', 'run.completed']);
  });

  // [I115]
  it('leaves nothing of a run in Temporal whose start arrives after its log was ended', async () => {
    const subjectKey = (await stores.subjects.keyFor(TENANT, { subject: 'slow' })) ?? '';
    const run = newRun({ subjectKey });
    const accepted = await stores.runs.accept(run);
    if (accepted.kind !== 'claimed' || !accepted.inserted) throw new Error(accepted.kind);
    await db.query("UPDATE runs SET input = '{' WHERE run_id = $1", [run.runId]);
    const start = async () => {
      await receiptOf(await begin('slow'));
      terminated.length = 0;
      return { temporalRunId: 'T1' };
    };
    const terminate = async (runId: string) => void terminated.push(runId);
    const deps = { stores, log, logger, engine: { start, terminate } as unknown as RunEngine };
    const { inTemporal, status } = await startNew(deps, accepted.inserted);
    expect([inTemporal, status]).toEqual([false, 'failed']);
    expect(terminated).toEqual([run.runId]);
    expect(await shownLog(refTo(run.runId))).toEqual(['run.failed']);
  });

  /** A run that somebody else starts as T1, and that ends, while this start of it, as `temporalRunId`, is under way. */
  async function startedLate(temporalRunId: string) {
    const run = newRun();
    const accepted = await stores.runs.accept(run);
    if (accepted.kind !== 'claimed' || !accepted.inserted) throw new Error(accepted.kind);
    const start = async () => {
      await stores.runs.markStarted(refTo(run.runId), 'T1');
      await endRun(refTo(run.runId));
      return { temporalRunId };
    };
    terminated.length = 0;
    return { run, inserted: accepted.inserted, start };
  }

  // [I115]
  it('a start that arrives late takes back nothing of a run that somebody else started, and that has ended', async () => {
    const { inserted, start } = await startedLate('T1');
    const engine = { start, terminate: async (runId: string) => end(runId) };
    const deps = { stores, log, logger, engine: engine as unknown as RunEngine };
    const { inTemporal, status } = await startNew(deps, inserted);
    expect([inTemporal, status, terminated]).toEqual([true, 'completed', []]);
  });

  // [I115]
  it('a start that arrives late is taken back where Temporal, which had lost the run, began it again', async () => {
    const { run, inserted, start } = await startedLate('T2');
    const terminate = async (runId: string) => void terminated.push(runId);
    const engine = { start, terminate } as unknown as RunEngine;
    const { inTemporal } = await startNew({ stores, log, logger, engine }, inserted);
    expect([inTemporal, terminated]).toEqual([false, [run.runId]]);
  });
});
