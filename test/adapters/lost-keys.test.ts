// Rows whose key a process does not have, beside rows that have nothing to do with it, on both twins (architecture §10.1):
// a list tells all of them, and what it cannot tell it names. So it is during a rotation of the operator's keys, too, for
// the process that does not know the new one yet.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import { conversationPage } from '../../src/log/conversation.ts';
import type { NewRun, RunSummary } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { batchAfter, entry, headOf, newId, newRun, refTo } from '../contract/given.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const KEY = { id: 'here', key: new Uint8Array(randomBytes(32)) };
const OTHER = { id: 'elsewhere', key: new Uint8Array(randomBytes(32)) };
const TENANT = 'default';
const LATE_MS = 9_000_000_000_000;
const UNREADABLE = {
  code: 'key_unavailable',
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

interface Asking {
  readonly key?: string | undefined;
  readonly talk?: string;
  readonly createdAtMs?: number;
  /** It is a child of a run that names nobody: such a one enters the session of somebody, too. */
  readonly isChild?: true;
}

const isChild = true;
const saying = () => ({ messageId: newId('said'), from: 'user', content: 'hello', ts: 1 });

// [I97]
describe.each(await databaseTwins())('rows without their key on %s', (_name, database) => {
  let db: Db;
  let close: () => Promise<void>;
  let stores: Stores;
  let elsewhere: Stores;
  const sessionId = newId('talk');
  let [before, lost, behind] = ['', '', ''];

  /** Accepted where the key is known. */
  async function accepted(
    tags: readonly string[],
    { key, talk = sessionId, createdAtMs = Date.now(), isChild }: Asking = {},
  ): Promise<string> {
    const named = key === undefined ? {} : { subjectKey: key };
    const run = newRun({ ...named, sessionTitle: 'T', createdAtMs });
    const parent = isChild ? { parentRunId: newId('run') } : {};
    const header = { ...run.input.header, sessionId: talk, ...parent };
    const told: NewRun = { ...run, input: { ...run.input, header, tags } };
    expect(await elsewhere.runs.accept(told)).toMatchObject({ kind: 'claimed' });
    await elsewhere.runs.markStarted(refTo(run.runId), 'T1');
    return run.runId;
  }

  /** It waits for a person then. */
  async function say(runId: string, value: object = saying()): Promise<void> {
    const said = { reducer: 'message', channel: 'c', value };
    await elsewhere.log.append({
      ...batchAfter(await headOf(elsewhere, runId), [
        entry(runId, 'first', { type: 'channel.written', payload: JSON.stringify(said) }),
      ]),
      ...{ status: 'waiting-approval' as const, summary: () => WAITS },
    });
  }

  async function asking(
    tags: readonly string[],
    { said, ...asked }: Asking & { readonly said?: object } = {},
  ): Promise<string> {
    const runId = await accepted(tags, asked);
    await say(runId, said);
    return runId;
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
    const key = await elsewhere.subjects.keyFor(TENANT, { subject: 'anna' });
    // Whoever names nobody comes before the first that names somebody.
    behind = await accepted(['behind'], { createdAtMs: Date.now() + 1_000 });
    lost = await asking(['lost'], { key });
    await say(behind);
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

  it('sessions are told with all that opens, and their runs', async () => {
    const { sessions } = await stores.sessions.list(TENANT, { limit: 50 });
    const opens = { title: 'T', tags: ['before', 'behind'] };
    expect(sessions).toMatchObject([{ sessionId, unreadable: UNREADABLE, ...opens }]);
    expect(await stores.sessions.find(TENANT, sessionId)).toMatchObject({ sessionId });
    expect(told((await stores.sessions.runs(TENANT, sessionId, { limit: 50 })).runs)).toEqual(
      ALL(),
    );
  });

  it('the run itself says which key it lacks; the others are read, and their logs go on', async () => {
    await expect(stores.runs.find(TENANT, lost)).rejects.toMatchObject({
      code: 'key_unavailable',
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
    const unstarted = await stores.runs.unstarted(0, 50);
    expect(unstarted.map(({ runId }) => runId)).toEqual(expect.arrayContaining(ids));
  });

  it('a session’s stream tells its event in its place, without what it says', async () => {
    const query = { tenant: TENANT, sessionId, after: 0, limit: 100 };
    const of = async (on: Stores) =>
      (await on.feed.events(query)).rows
        .filter(({ row }) => row.type === 'channel.written')
        .map(({ row }) => [row.runId, row.payload.includes('hello'), row.unreadable]);
    expect(await of(stores)).toEqual([
      [before, true, undefined],
      [lost, false, UNREADABLE],
      [behind, true, undefined],
    ]);
    expect(await of(elsewhere)).toEqual([before, lost, behind].map((id) => [id, true, undefined]));
  });

  it('a conversation tells the others, and what was hidden when its key is there', async () => {
    const query = { tenant: TENANT, sessionId, after: 0, limit: 10 };
    const runsOf = async (on: Stores) => {
      const { messages, unreadable } = await conversationPage(on, query);
      return { runs: messages.map(({ runId }) => runId), unreadable };
    };
    const hidden = { runs: [before, behind], unreadable: UNREADABLE };
    const all = { runs: [before, lost, behind], unreadable: undefined };
    expect(await runsOf(stores)).toEqual(hidden);
    expect(await runsOf(elsewhere)).toEqual(all);
    expect(await runsOf(elsewhere)).toEqual(all);
    expect(await runsOf(stores)).toEqual(hidden);
  });

  it('a message whose first place was hidden stands there, and nowhere else', async () => {
    const talk = newId('talk');
    const key = await elsewhere.subjects.keyFor(TENANT, { subject: 'anna' });
    const said = { messageId: 'same', from: 'user', content: 'hello', ts: 1 };
    const runs = [await asking([], { key, talk, said }), await asking([], { talk, said, isChild })];
    const query = { tenant: TENANT, sessionId: talk, after: 0, limit: 10 };
    const placesOf = async (on: Stores) =>
      (await conversationPage(on, query)).messages.map(({ runId }) => runId);
    expect(await placesOf(stores)).toEqual([runs[1]]);
    expect(await placesOf(elsewhere)).toEqual([runs[0]]);
  });

  it('a row that is damaged is named, and no cohort has it', async () => {
    await db.query("UPDATE runs SET tags = '[', input = '{' WHERE run_id = $1", [behind]);
    await db.query('UPDATE run_heads SET closed = true WHERE run_id = ANY($1::text[])', [
      [before, behind],
    ]);
    const { runs } = await stores.runs.list(TENANT, { limit: 50 });
    expect(runs.find(({ runId }) => runId === behind)?.unreadable?.message).toBe(
      `What stands at tags ${behind} is damaged.`,
    );
    const candidates = await stores.cohorts.candidates(TENANT, { limit: 50 });
    expect(candidates.unreadable).toMatchObject([{ runId: behind }]);
    expect(candidates.runs.map(({ runId }) => runId)).toEqual([before]);
  });

  it('JSON of another kind is damaged, too', async () => {
    const [tags, summary] = [await asking(['t'], { isChild }), await asking(['s'], { isChild })];
    await db.query("UPDATE runs SET tags = 'null' WHERE run_id = $1", [tags]);
    await db.query("UPDATE run_heads SET summary = '{}' WHERE run_id = $1", [summary]);
    const { runs } = await stores.runs.overview(TENANT, { limit: 50 }, 1);
    const of = (runId: string) => runs.find((run) => run.runId === runId);
    expect(of(tags)).toMatchObject({ tags: [], unreadable: { code: 'history_undecodable' } });
    expect(of(summary)).toMatchObject({ tags: ['s'], summary: { waits: [] } });
    expect(of(summary)?.unreadable?.message).toBe(`What stands at summary ${summary} is damaged.`);
  });

  it('what is damaged of a session’s rows is told in its place, and nothing of what is sealed', async () => {
    const talk = newId('talk');
    const key = await elsewhere.subjects.keyFor(TENANT, { subject: 'anna' });
    const cut = await asking([], { key, talk });
    const [broken, well] = [
      await asking([], { talk, isChild }),
      await asking([], { talk, isChild }),
    ];
    await db.query('UPDATE run_events SET payload = left(payload, 60) WHERE run_id = $1', [cut]);
    await db.query("UPDATE run_events SET payload = '{' WHERE run_id = $1", [broken]);
    await db.query("UPDATE runs SET input = '{' WHERE run_id = $1", [well]);
    const query = { tenant: TENANT, sessionId: talk, after: 0, limit: 10 };
    const { rows } = await elsewhere.feed.events(query);
    expect(rows.map(({ row }) => [row.runId, row.payload.slice(0, 3), !row.unreadable])).toEqual([
      [cut, '{}', false],
      [broken, '{}', false],
      [well, '{"r', true],
    ]);
    const { messages, unreadable } = await conversationPage(elsewhere, query);
    expect(messages.map(({ runId }) => runId)).toEqual([well]);
    expect(unreadable).toMatchObject({ code: 'history_undecodable' });
  });

  it('what a page brings behind a hidden place is looked at as well: each message once', async () => {
    const talk = newId('talk');
    const key = await elsewhere.subjects.keyFor(TENANT, { subject: 'anna' });
    const said = { messageId: 'once', from: 'user', content: 'hello', ts: 1 };
    for (let count = 0; count < 2; count++) await asking([], { key, talk, said: {} });
    const first = await asking([], { key, talk, said });
    await asking([], { talk, said, isChild });
    const query = { tenant: TENANT, sessionId: talk, limit: 1 };
    await conversationPage(stores, { ...query, after: 0 });
    const told: string[] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const page: Awaited<ReturnType<typeof conversationPage>> = await conversationPage(elsewhere, {
        ...query,
        after,
      });
      told.push(...page.messages.map(({ runId }) => runId));
      after = page.next;
    }
    expect(told).toEqual([first]);
  });
});
