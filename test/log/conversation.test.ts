// The conversation of a session (seed 000 §G): which rows say something, in which shape, and each message once.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { conversationPage, messageIn } from '../../src/log/conversation.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { NewRow } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  NO_WAITS,
  batchAfter,
  entry,
  headOf,
  newId,
  newRun,
  refTo,
  startedRun,
} from '../contract/given.ts';
import { openAnyStores } from '../support/log-parts.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const tenant = 'default';
const runIn = (sessionId: string): Promise<string> => {
  const run = newRun();
  const header = { ...run.input.header, sessionId };
  const nodes = [{ id: 'clerk', agent: { agentId: 'desk.clerk' } }];
  const definition = { ...run.input.definition, nodes } as unknown as typeof run.input.definition;
  return startedRun(stores, { ...run, input: { ...run.input, header, definition } });
};
const append = async (runId: string, rows: readonly NewRow[]): Promise<void> => {
  await stores.log.append(batchAfter(await headOf(stores, runId), rows));
};
const written = (runId: string, messageId: string, more: JsonObject = {}): NewRow =>
  entry(runId, `w-${newId('')}`, {
    type: 'channel.written',
    payload: JSON.stringify({
      ...{ channel: 'm', reducer: 'message', writtenAt: 'x' },
      value: { messageId, from: 'user', content: messageId, ts: 1, ...more },
    }),
  });
/** Page by page to the end. */
const ids = async (sessionId: string, limit = 100): Promise<string[]> => {
  const seen: string[] = [];
  for (let after: number | undefined = 0; after !== undefined;) {
    const page: Awaited<ReturnType<typeof conversationPage>> = await conversationPage(stores, {
      ...{ tenant, sessionId, after, limit },
    });
    expect(page.messages.length).toBeLessThanOrEqual(limit);
    seen.push(...page.messages.map(({ messageId }) => messageId));
    after = page.next;
  }
  return seen;
};

const turn = { messageId: 'c:1:user', from: 'user', content: { a: 1 }, ts: 5 };
const row = (type: string, payload: JsonObject) => ({
  ...{ eventId: 'evt-1', nodeId: 'clerk', timestampMs: 7, type, payload: JSON.stringify(payload) },
});
const agentOf = () => 'desk.clerk';

describe('seed 000 §G what a row says', () => {
  const told = { ...turn, more: { role: 'user', turnIndex: 1, speakerId: 's' } };
  const whole = { ...turn, role: 'user', turnIndex: 1, speakerId: 's' };
  const plain = { messageId: 'm', content: 'hi', more: {} };
  it.each<[string, ReturnType<typeof row>, object | undefined]>([
    ['a first turn', row('conversation.opened', { initialTurn: whole }), told],
    ['a turn', row('conversation.exchanged', { turn: whole }), told],
    ['a last turn', row('conversation.closed', { finalTurn: whole, outcome: 1 }), told],
    [
      'a message of seed 000',
      row('channel.written', {
        reducer: 'message',
        value: { messageId: 'm', from: 'a', to: 'b', groupId: 'g', content: 'hi', ts: 3 },
      }),
      { ...plain, from: 'a', ts: 3, more: { to: 'b', groupId: 'g' } },
    ],
    [
      'a message of the reducer',
      row('channel.written', {
        reducer: 'message',
        value: {
          ...{ messageId: 'm', role: 'assistant', agentId: 'a.b', content: 'hi' },
          timestamp: '1970-01-01T00:00:00.009Z',
        },
      }),
      { ...plain, from: 'a.b', ts: 9, more: { role: 'assistant' } },
    ],
    [
      'a message without a speaker and with a time that is none',
      row('channel.written', {
        reducer: 'message',
        value: { messageId: 'm', content: 'hi', ts: -1, to: 7, agent: 'x', turnIndex: 'y' },
      }),
      { ...plain, from: 'system', ts: 7 },
    ],
    [
      'a write that is no message',
      row('channel.written', { reducer: 'append', value: {} }),
      undefined,
    ],
    ['a masked message', row('channel.written', { reducer: 'message', value: '«x»' }), undefined],
    [
      "an agent's answer",
      row('output.chunk', { nodeId: 'clerk', runId: 'r', chunk: 'done', isLast: true }),
      {
        ...{ messageId: 'evt-1', from: 'desk.clerk', content: 'done', ts: 7 },
        more: { role: 'agent', speakerId: 'desk.clerk' },
      },
    ],
    ["a tool's piece", row('output.chunk', { chunk: 'x', isLast: false, callId: 'c' }), undefined],
    ['any other event', row('agent.reasoned', { reasoning: 'hm' }), undefined],
  ])('%s', (_name, said, expected) => {
    expect(messageIn(said, agentOf)).toEqual(expected);
  });
});

describe('seed 000 §G a conversation', () => {
  // [I67]
  it('is what all runs of a session say, in order, each message once: the first of an id wins, over runs and reads', async () => {
    const sessionId = newId('talk');
    const [a, b] = [await runIn(sessionId), await runIn(sessionId)];
    await append(a, [written(a, 'm1'), entry(a, 'noise')]);
    await append(b, [written(b, 'm2'), written(b, 'm1', { content: 'again' })]);
    expect(await ids(sessionId)).toEqual(['m1', 'm2']);
    const other = await runIn(newId('other'));
    await append(other, [written(other, 'm9')]);
    await append(b, [written(b, 'm1', { content: 'late' }), written(b, 'm3\u0000')]);
    expect(await ids(sessionId, 1)).toEqual(['m1', 'm2', 'm3\u0000']);
    const { messages } = await conversationPage(stores, { tenant, sessionId, after: 0, limit: 9 });
    expect(messages[0]).toMatchObject({ content: 'm1', runId: a });
    expect(await ids(newId('nobody'))).toEqual([]);
    const theirs = { tenant: newId('tenant'), sessionId, after: 0, limit: 9 };
    expect((await conversationPage(stores, theirs)).messages).toEqual([]);
  });

  it('readers at once see the same, and a row that a rebuild took away gives way to the next of its id', async () => {
    const sessionId = newId('talk');
    const [a, b] = [await runIn(sessionId), await runIn(sessionId)];
    await append(a, [entry(a, 'first'), written(a, 'm1')]);
    await append(b, [written(b, 'm1', { content: 'again' }), written(b, 'm2')]);
    const reads = await Promise.all(Array.from({ length: 8 }, () => ids(sessionId, 1)));
    expect(new Set(reads.map(String))).toEqual(new Set(['m1,m2']));
    const head = await headOf(stores, a);
    const rows = await stores.log.read(refTo(a), { after: -1, limit: 10 });
    const fewer = { ...head, nextSequence: 1 };
    expect(
      await stores.log.restore(
        refTo(a),
        { summary: NO_WAITS, head: fewer, rows: rows.slice(0, 1) },
        head,
      ),
    ).toBe(true);
    expect(await ids(sessionId)).toEqual(['m2']);
    expect(await stores.log.restore(refTo(a), { summary: NO_WAITS, head, rows }, fewer)).toBe(true);
    expect(await ids(sessionId)).toEqual(['m2', 'm1']);
  });

  it('of a session with much that says nothing a page may be empty, and names the next one', async () => {
    const sessionId = newId('talk');
    const a = await runIn(sessionId);
    for (let part = 0; part < 3; part++)
      await append(
        a,
        Array.from({ length: 4_000 }, (_, at) => entry(a, `${part}.${at}`)),
      );
    await append(a, [written(a, 'm1')]);
    const first = await conversationPage(stores, { tenant, sessionId, after: 0, limit: 5 });
    expect(first.messages).toEqual([]);
    expect(first.next).toBeGreaterThan(0);
    expect(await ids(sessionId)).toEqual(['m1']);
  });
});
