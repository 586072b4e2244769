// Sessions by HTTP (seed 003 §3): given by the caller or made, listed and read, each tenant's own.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validate } from '../../src/wire/validators.ts';
import { newId, newRun, startedRun } from '../contract/given.ts';
import { KNOWN_SECRET, refusals, startFaultHost, type FaultHost } from './fault-host.ts';

interface Created {
  readonly runId: string;
  readonly sessionId: string;
}
interface ShownSession {
  readonly sessionId: string;
  readonly title?: string;
  readonly runs?: readonly { readonly runId: string; readonly statusUrl: string }[];
  readonly nextCursor?: string;
}

const SESSIONS = '/v1/host/openwop-temporal/sessions';
let host: FaultHost;
beforeAll(async () => {
  host = await startFaultHost();
});
afterAll(() => host.stop());
const refused = refusals(() => host);
const create = async (body: object): Promise<Created> => {
  const answer = await host.api<Created>('/v1/runs', { body: { workflowId: 'noop', ...body } });
  expect(answer.status).toBe(201);
  expect(validate.runCreateResponse(answer.body)).toMatchObject({ ok: true });
  return answer.body;
};

describe('seed 003 §3.4 session_id = existing or new', () => {
  it('a run without one has a session of its own, and is told which', async () => {
    const [a, b] = [await create({}), await create({})];
    expect(a.sessionId).toMatch(/^session-[0-9A-Za-z]{27}$/);
    expect(a.sessionId).not.toBe(b.sessionId);
    const { body } = await host.api<ShownSession>(`${SESSIONS}/${a.sessionId}`);
    expect(body).not.toHaveProperty('title');
    expect(body.runs?.map(({ runId }) => runId)).toEqual([a.runId]);
  });

  it('runs that name one are in it, and it is read page by page, without secrets', async () => {
    const sessionId = newId('talk');
    const title = `Refunds ${KNOWN_SECRET}`;
    const first = await create({ sessionId, sessionTitle: title, tags: ['desk'] });
    const second = await create({ sessionId, sessionTitle: 'other', tags: ['late'] });
    expect([first.sessionId, second.sessionId]).toEqual([sessionId, sessionId]);
    const { body } = await host.api<ShownSession>(`${SESSIONS}/${sessionId}?limit=1`);
    expect(body).toMatchObject({ sessionId, tags: ['desk', 'late'] });
    expect(body.title).toMatch(/^Refunds /);
    expect(JSON.stringify(body)).not.toContain(KNOWN_SECRET);
    const rest = await host.api<ShownSession>(
      `${SESSIONS}/${sessionId}?limit=1&cursor=${body.nextCursor}`,
    );
    expect(
      [...(body.runs ?? []), ...(rest.body.runs ?? [])].map(({ runId }) => runId).sort(),
    ).toEqual([first.runId, second.runId].sort());
    const [shown] = body.runs ?? [];
    expect((await host.api(new URL(shown?.statusUrl ?? '').pathname)).status).toBe(200);
    const listed = await host.api<{ sessions: ShownSession[] }>(SESSIONS);
    expect(listed.body.sessions[0]).toMatchObject({ sessionId, tags: ['desk', 'late'] });
    expect(listed.body.sessions[0]).not.toHaveProperty('runs');
  });

  // [I97]
  it('a tag or a title that begins with ~ is one like any other', async () => {
    const sessionId = newId('tilde');
    const [tags, title] = [['~urgent', '~'], '~a.b.c'];
    await create({ sessionId, sessionTitle: title, tags });
    for (const path of [SESSIONS, `${SESSIONS}/${sessionId}`, '/v1/runs'])
      expect((await host.api(path)).status).toBe(200);
    const { body } = await host.api<ShownSession>(`${SESSIONS}/${sessionId}`);
    expect(body).toMatchObject({ title, tags, runs: [{ tags }] });
    expect(body).not.toHaveProperty('unreadable');
  });

  it('one of 10 kB, of other characters or of another type is refused, and no run is made', async () => {
    const started = host.temporal.started.length;
    const names = ['x'.repeat(10_240), '', '../x', 'a b', 'ü', 'a\u0000', '~a', 7, null, ['a']];
    for (const sessionId of names) {
      const body = { workflowId: 'noop', sessionId };
      await refused('/v1/runs', { body }, { status: 400, code: 'validation_error' });
    }
    for (const sessionTitle of ['', 'x'.repeat(257), 1])
      await refused(
        '/v1/runs',
        { body: { workflowId: 'noop', sessionTitle } },
        { status: 400, code: 'validation_error' },
      );
    expect(host.temporal.started).toHaveLength(started);
  });

  it("another tenant's session is not there, and its name makes one of the caller's own", async () => {
    const sessionId = newId('theirs');
    const theirs = newRun({ tenant: 'other', sessionTitle: 'theirs' });
    const header = { ...theirs.input.header, sessionId };
    await startedRun(host.stores, { ...theirs, input: { ...theirs.input, header } });
    const missing = { status: 404, code: 'not_found' };
    await refused(`${SESSIONS}/${sessionId}`, {}, missing);
    const mine = await create({ sessionId });
    const { body } = await host.api<ShownSession>(`${SESSIONS}/${sessionId}`);
    expect(body).not.toHaveProperty('title');
    expect(body.runs?.map(({ runId }) => runId)).toEqual([mine.runId]);
  });

  it('one that nobody made, a name that none can have and a false cursor are refused', async () => {
    for (const name of ['none', 'a%00b', '%E4', 'x'.repeat(10_000)]) {
      const { status } = await host.api(`${SESSIONS}/${name}`);
      expect([400, 404]).toContain(status);
    }
    const invalid = { status: 400, code: 'validation_error' };
    for (const query of ['cursor=x', 'limit=0', 'limit=201', 'cursor=%00'])
      await refused(`${SESSIONS}?${query}`, {}, invalid);
  });
});
