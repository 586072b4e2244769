// Rows whose key a process does not have, beside rows that have nothing to do with it, on both twins (architecture §10.1):
// a list tells all of them, and what it cannot tell it names. So it is during a rotation of the operator's keys, too, for
// the process that does not know the new one yet.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import { pagesBehind } from '../../src/log/feed.ts';
import { conversationPage } from '../../src/log/conversation.ts';
import type { NewRun, RunSummary } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { Bell } from '../../src/system/time.ts';
import { batchAfter, entry, headOf, newId, newRun, refTo } from '../contract/given.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const KEY = { id: 'here', key: new Uint8Array(randomBytes(32)) };
const OTHER = { id: 'elsewhere', key: new Uint8Array(randomBytes(32)) };
const TENANT = 'default';
const LATE_MS = 9_000_000_000_000;
const UNREADABLE = {
  code: 'history_undecodable',
  message: expect.stringContaining('the encryption key "elsewhere" is not among') as string,
};
const WAITS: RunSummary = {
  waits: [
    {
      ...{ nodeId: 'n', nodeName: 'N', interruptId: 'i', kind: 'approval', requestedAtMs: 1 },
      ...{ deadlineMs: LATE_MS, data: {} },
    },
  ],
};

// [I97]
describe.each(await databaseTwins())('rows without their key on %s', (_name, database) => {
  let db: Db;
  let close: () => Promise<void>;
  let stores: Stores;
  let elsewhere: Stores;
  const sessionId = newId('talk');
  let [before, lost, behind] = ['', '', ''];

  /** Accepted where the key is known, waits for a person, and has said something. */
  async function asking(tags: readonly string[], subjectKey?: string): Promise<string> {
    const run = newRun({ ...(subjectKey === undefined ? {} : { subjectKey }), sessionTitle: 'T' });
    const header = { ...run.input.header, sessionId };
    const told: NewRun = { ...run, input: { ...run.input, header, tags } };
    await elsewhere.runs.accept(told);
    await elsewhere.runs.markStarted(refTo(run.runId), 'T1');
    const value = { messageId: newId('said'), from: 'user', content: 'hello', ts: 1 };
    const said = { reducer: 'message', channel: 'c', value };
    await elsewhere.log.append({
      ...batchAfter(await headOf(elsewhere, run.runId), [
        entry(run.runId, 'first', { type: 'channel.written', payload: JSON.stringify(said) }),
      ]),
      ...{ status: 'waiting-approval' as const, summary: () => WAITS },
    });
    return run.runId;
  }

  beforeAll(async () => {
    const options = await database();
    ({ db, close } = await openDatabase(options, quietLogger));
    const of = (masterKeys: readonly (typeof KEY)[]) =>
      storesOn(
        { db, close: async () => undefined },
        { database: options, logger: quietLogger, masterKeys },
      );
    elsewhere = await of([OTHER, KEY]);
    stores = await of([KEY]);
    before = await asking(['before']);
    lost = await asking(['lost'], await elsewhere.subjects.keyFor(TENANT, { subject: 'anna' }));
    behind = await asking(['behind']);
  });
  afterAll(() => close());

  const told = <Row extends { readonly runId: string; readonly tags: readonly string[] }>(
    rows: readonly Row[],
  ) =>
    rows
      .filter(({ runId }) => [before, lost, behind].includes(runId))
      .map(({ runId, tags, ...row }) => [
        runId,
        tags,
        (row as { unreadable?: unknown }).unreadable,
      ]);
  const ALL = () =>
    expect.arrayContaining([
      [before, ['before'], undefined],
      [lost, [], UNREADABLE],
      [behind, ['behind'], undefined],
    ]) as unknown;

  it('lists of runs tell the others, and name the one', async () => {
    expect(told((await stores.runs.list(TENANT, { limit: 50 })).runs)).toEqual(ALL());
    for (const waiting of [false, true]) {
      const { runs } = await stores.runs.overview(TENANT, { limit: 50, waiting }, 1);
      expect(told(runs)).toEqual(ALL());
      expect(runs.map(({ runId, summary }) => [runId, summary.waits.length])).toEqual(
        expect.arrayContaining([
          [before, 1],
          [lost, 0],
          [behind, 1],
        ]),
      );
    }
  });

  it('sessions are told, and their runs', async () => {
    const { sessions } = await stores.sessions.list(TENANT, { limit: 50 });
    expect(sessions).toMatchObject([{ sessionId, unreadable: UNREADABLE, tags: [] }]);
    expect(await stores.sessions.find(TENANT, sessionId)).toMatchObject({ sessionId });
    expect(told((await stores.sessions.runs(TENANT, sessionId, { limit: 50 })).runs)).toEqual(
      ALL(),
    );
  });

  it('the run itself says which key it lacks; the others are read, and their logs go on', async () => {
    await expect(stores.runs.find(TENANT, lost)).rejects.toMatchObject({
      code: 'history_undecodable',
    });
    await expect(stores.log.head(refTo(lost))).rejects.toMatchObject(UNREADABLE);
    expect((await stores.runs.find(TENANT, before))?.runId).toBe(before);
    const heads = await Promise.all(
      [before, lost, behind].map((runId) => headOf(elsewhere, runId)),
    );
    const appended = await Promise.allSettled(
      heads.map((head) => stores.log.append(batchAfter(head, [entry(head.runId, 'second')]))),
    );
    expect(appended.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('runs of a family are told, and those that are not started', async () => {
    const parent = newRun();
    await stores.runs.accept(parent);
    const sealed = await elsewhere.subjects.keyFor(TENANT, { subject: 'anna' });
    const children = [newRun(), newRun({ subjectKey: sealed ?? '' })].map((run) => {
      const { header } = run.input;
      const of = { parentRunId: parent.runId, correlationId: parent.runId, causationId: run.runId };
      return { ...run, input: { ...run.input, header: { ...header, ...of } } };
    });
    for (const child of children) await elsewhere.families.acceptChild(child, 10);
    const family = await stores.families.descendants(TENANT, parent.runId, 10);
    const page = await stores.families.children(refTo(parent.runId), { limit: 10 });
    const ids = children.map(({ runId }) => runId).toSorted();
    for (const members of [family, page.runs]) {
      expect(members.map(({ runId }) => runId).toSorted()).toEqual(ids);
      expect(members.filter(({ unreadable }) => unreadable)).toMatchObject([
        { runId: children[1]?.runId, unreadable: UNREADABLE },
      ]);
    }
    const unstarted = await stores.runs.unstarted(LATE_MS, 50);
    expect(unstarted.map(({ runId }) => runId)).toEqual(expect.arrayContaining(ids));
  });

  it('what is told in order is told up to it, and says why it ends', async () => {
    const told: string[] = [];
    const signal = new AbortController().signal;
    const read = (after: number) =>
      stores.feed.events({ tenant: TENANT, sessionId, after, limit: 100 });
    const reading = (async () => {
      const source = { read, pageRows: 100, changed: new Bell() };
      for await (const rows of pagesBehind(source, { after: 0, signal })) {
        told.push(...rows.map(({ run }) => run.runId));
        if (told.length > 1) return;
      }
    })();
    await expect(reading).rejects.toMatchObject({ ...UNREADABLE, details: { runId: lost } });
    expect(told).toEqual([before]);
  });

  it('a conversation is told as far as it can be, also what was noted before the key was lost', async () => {
    const query = { tenant: TENANT, sessionId, after: 0, limit: 10 };
    const runsOf = async (on: Stores) => {
      const { messages, unreadable } = await conversationPage(on, query);
      return { runs: messages.map(({ runId }) => runId), unreadable };
    };
    expect(await runsOf(stores)).toEqual({ runs: [before], unreadable: UNREADABLE });
    expect(await runsOf(elsewhere)).toEqual({
      runs: [before, lost, behind],
      unreadable: undefined,
    });
    expect(await runsOf(stores)).toEqual({ runs: [before, behind], unreadable: UNREADABLE });
  });

  it('a row that is damaged is named, and no cohort has it', async () => {
    await db.query("UPDATE runs SET tags = '[', input = '{' WHERE run_id = $1", [behind]);
    await db.query('UPDATE run_heads SET closed = true WHERE run_id = ANY($1::text[])', [
      [before, behind],
    ]);
    const { runs } = await stores.runs.list(TENANT, { limit: 50 });
    expect(runs.find(({ runId }) => runId === behind)?.unreadable?.message).toBe(
      `What stands at tags ${behind} is no JSON.`,
    );
    const candidates = await stores.cohorts.candidates(TENANT, { limit: 50 });
    expect(candidates.unreadable).toEqual([behind]);
    expect(candidates.runs.map(({ runId }) => runId)).toEqual([before]);
  });
});
