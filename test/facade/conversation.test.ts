// What was said in a session, by HTTP (seed 000 §G).
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batchAfter, entry, headOf, newId, newRun, startedRun } from '../contract/given.ts';
import { createModels } from '../../src/adapters/models/index.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { CatalogAgent } from '../../src/ports/catalog.ts';
import { CONTENT_BYTES } from '../../src/runs/mention.ts';
import { pinned } from '../support/definitions.ts';
import {
  catalogOf,
  DEFINITIONS,
  KNOWN_SECRET,
  refusals,
  startFaultHost,
  type FaultHost,
} from './fault-host.ts';

const agentOf = (name: string, taskSchema?: JsonObject): CatalogAgent => {
  const agentId = `local.test.desk.${name}`;
  return {
    manifest: { agentId, persona: 'Clerk', modelClass: 'general', systemPrompt: 'Decide.' },
    ...{ packName: 'local.test.desk', packVersion: '0.0.0', degraded: [] },
    pinned: pinned(agentId),
    ...(taskSchema ? { taskSchema } : {}),
  };
};
const AGENTS = [
  agentOf('clerk'),
  agentOf('asked', {
    type: 'object',
    required: ['question'],
    additionalProperties: false,
    properties: { question: { type: 'string' } },
  }),
  agentOf('formal', { type: 'object', required: ['orderId', 'amount'] }),
  agentOf('listed', { type: 'object', required: ['messages'] }),
  agentOf('mute'),
];
const CLERK = 'local.test.desk.clerk';
const SCRIPT = { turns: [{ final: { decision: 'done', confidence: 1 } }] };
const scripts = Object.fromEntries(
  AGENTS.slice(0, 4).map(({ pinned: { agentId } }) => [agentId, SCRIPT]),
);

interface Page {
  readonly messages: readonly { readonly messageId: string; readonly from: string }[];
  readonly nextCursor?: string;
}

let host: FaultHost;
beforeAll(async () => {
  host = await startFaultHost({}, () => ({
    catalog: catalogOf(DEFINITIONS, AGENTS),
    models: createModels({ scripts }),
  }));
});
afterAll(() => host.stop());
const refused = refusals(() => host);
const pathOf = (sessionId: string) =>
  `/v1/host/openwop-temporal/sessions/${sessionId}/conversation`;

async function saidIn(sessionId: string, { tenant = 'default', messages = 3 } = {}) {
  const run = newRun({ tenant });
  const header = { ...run.input.header, sessionId };
  const runId = await startedRun(host.stores, { ...run, input: { ...run.input, header } });
  const rows = Array.from({ length: messages }, (_, n) =>
    entry(runId, `m${n}`, {
      type: 'channel.written',
      payload: JSON.stringify({
        ...{ channel: 'm', reducer: 'message', writtenAt: 'x' },
        value: { messageId: `m${n}`, from: 'user', to: 'a.b', content: { n }, ts: n },
      }),
    }),
  );
  await host.stores.log.append(batchAfter(await headOf(host.stores, runId), rows));
  return { runId, rows };
}

describe('seed 000 §G the conversation of a session', () => {
  it('is read page by page, with the run and the event that say each message, as the document has it', async () => {
    const sessionId = newId('talk');
    const { runId, rows } = await saidIn(sessionId);
    const first = await host.api<Page>(`${pathOf(sessionId)}?limit=2`);
    expect(first.body.messages).toEqual(
      [0, 1].map((n) => ({
        ...{ messageId: `m${n}`, from: 'user', to: 'a.b', content: { n }, ts: n },
        ...{ runId, eventId: rows[n]?.eventId },
      })),
    );
    const cursor = first.body.nextCursor;
    const rest = await host.api<Page>(`${pathOf(sessionId)}?limit=2&cursor=${cursor}`);
    expect(rest.body.messages.map(({ messageId }) => messageId)).toEqual(['m2']);
    expect(rest.body).not.toHaveProperty('nextCursor');
    const { body } = await host.api<{ components: object }>('/v1/openapi.json');
    const ajv = new Ajv2020({ strict: false });
    const schema = { $ref: '#/components/schemas/Conversation', components: body.components };
    const fits = ajv.compile(schema);
    expect([first.body, rest.body].map((page) => fits(page))).toEqual([true, true]);
  });

  it("another tenant's is not there, nor one that nobody made or of 10 kB; a false cursor or limit is refused", async () => {
    const sessionId = newId('theirs');
    await saidIn(sessionId, { tenant: 'other' });
    const missing = { status: 404, code: 'not_found' };
    for (const name of [sessionId, 'none', 'x'.repeat(10_240), 'a%00b'])
      await refused(pathOf(name), {}, missing);
    const mine = newId('mine');
    await saidIn(mine);
    const invalid = { status: 400, code: 'validation_error' };
    for (const query of ['cursor=x', 'cursor=LTE', 'limit=0', 'limit=101'])
      await refused(`${pathOf(mine)}?${query}`, {}, invalid);
  });
});

interface Accepted {
  readonly runId: string;
  readonly messageId: string;
}

describe('RFC 0077 §D chat-mention', () => {
  const sayTo = (sessionId: string) => `/v1/host/openwop-temporal/sessions/${sessionId}/messages`;
  const session = async (): Promise<string> => {
    const sessionId = newId('talk');
    await saidIn(sessionId, { messages: 1 });
    return sessionId;
  };
  const started = () => host.temporal.started;

  it('a message that mentions an agent starts its run in the session, with the message as it was said', async () => {
    const sessionId = await session();
    const content = `@${CLERK} what of 4711?`;
    const answer = await host.api<Accepted>(sayTo(sessionId), { body: { content } });
    expect(answer.status).toBe(201);
    const { runId, messageId } = answer.body;
    expect(answer.body).toMatchObject({
      sessionId,
      status: 'pending',
      messageId: `${runId}:0:user`,
    });
    const input = started().at(-1);
    expect(input).toMatchObject({
      ...{ runId, source: 'chat-mention', header: { sessionId } },
      message: { messageId, from: 'user', to: CLERK, role: 'user', content },
      variables: { message: content },
    });
    expect(Math.abs(Number(input?.message?.ts) - Date.now())).toBeLessThan(60_000);
    expect(input?.definition.channels).toEqual({ messages: { reducer: 'message' } });
    const { body } = await host.api<{ runs: { runId: string }[] }>(
      `/v1/host/openwop-temporal/sessions/${sessionId}`,
    );
    expect(body.runs[0]?.runId).toBe(runId);
  });

  it("the text is the one input that the agent's task schema requires; one that asks for more is refused", async () => {
    const sessionId = await session();
    const content = '@local.test.desk.asked why?';
    expect((await host.api(sayTo(sessionId), { body: { content } })).status).toBe(201);
    expect(started().at(-1)?.variables).toEqual({ question: content });
    const before = started().length;
    const violation = { status: 422, code: 'handoff_task_schema_violation' };
    // The name of the second one's input is that of the channel in which its message stands.
    for (const name of ['formal', 'listed'])
      await refused(
        sayTo(sessionId),
        { body: { content: `@local.test.desk.${name} 4711` } },
        violation,
      );
    expect(started()).toHaveLength(before);
  });

  it('nobody mentioned, several, nobody there, no model, no text, too much of it: refused, and nothing is done', async () => {
    const sessionId = await session();
    const before = started().length;
    const said = async (content: unknown, status: number, code: string) =>
      refused(sayTo(sessionId), { body: { content } }, { status, code });
    for (const content of ['hello', '', 7, null, ['x'], `mail clerk@${CLERK}`, `\`@${CLERK}\``])
      await said(content, 400, 'validation_error');
    const secret = { body: { content: `@${CLERK} what of ${KNOWN_SECRET}?` } };
    const refusal = { status: 400, code: 'validation_error' };
    const { text } = await refused(sayTo(sessionId), secret, refusal);
    expect(text).toContain('The message looks like it holds a secret');
    expect(text).not.toContain(KNOWN_SECRET);
    await said(`@${CLERK} and @local.test.desk.asked`, 400, 'validation_error');
    await said('@local.test.desk.nobody hi', 404, 'agent_not_found');
    await said('@local.test.desk.mute hi', 422, 'model_unavailable');
    const rest = 'x'.repeat(CONTENT_BYTES - CLERK.length - 4);
    await said(`@${CLERK} ${rest}x`, 413, 'payload_too_large');
    await said(`@${CLERK} ${'x'.repeat(2 ** 20)}`, 413, 'payload_too_large');
    const body = { content: `@${CLERK}`, runId: 'x' };
    await refused(sayTo(sessionId), { body }, { status: 400, code: 'validation_error' });
    expect(started()).toHaveLength(before);
    const full = await host.api(sayTo(sessionId), { body: { content: `@${CLERK} ${rest}` } });
    expect(full.status).toBe(201);
  });

  it("in another tenant's session, one that nobody made, or of a name of 10 kB nothing is said", async () => {
    const theirs = newId('theirs');
    await saidIn(theirs, { tenant: 'other' });
    const before = started().length;
    const body = { content: `@${CLERK} hi` };
    for (const name of [theirs, 'none', 'x'.repeat(10_240), 'a%00b'])
      await refused(sayTo(name), { body }, { status: 404, code: 'not_found' });
    expect(started()).toHaveLength(before);
    expect(await host.stores.sessions.find('default', theirs)).toBeUndefined();
  });

  it('one key is one run, also of two messages at once; another text under it is refused', async () => {
    const sessionId = await session();
    const before = started().length;
    const headers = { 'idempotency-key': newId('key') };
    const say = (content: string) =>
      host.api<Accepted>(sayTo(sessionId), { headers, body: { content } });
    const both = await Promise.all([say(`@${CLERK} hi`), say(`@${CLERK} hi`)]);
    const told = both.filter(({ status }) => status === 201);
    expect(both.every(({ status }) => [201, 409].includes(status))).toBe(true);
    const again = await say(`@${CLERK} hi`);
    expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
    expect(new Set([...told, again].map(({ body }) => body.runId)).size).toBe(1);
    expect(started()).toHaveLength(before + 1);
    expect((await say(`@${CLERK} ho`)).status).toBe(409);
    // The same key in another session is another message.
    const other = await host.api<Accepted>(sayTo(await session()), {
      ...{ headers, body: { content: `@${CLERK} hi` } },
    });
    expect([other.status, other.body.messageId]).not.toContain(again.body.messageId);
  });
});
