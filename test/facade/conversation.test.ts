// What was said in a session, by HTTP (seed 000 §G).
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batchAfter, entry, headOf, newId, newRun, startedRun } from '../contract/given.ts';
import { refusals, startFaultHost, type FaultHost } from './fault-host.ts';

interface Page {
  readonly messages: readonly { readonly messageId: string; readonly from: string }[];
  readonly nextCursor?: string;
}

let host: FaultHost;
beforeAll(async () => {
  host = await startFaultHost();
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
