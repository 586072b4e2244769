// `openwop sessions …`: what was said, page by page, and saying something to an agent.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { frames, refusal, scriptedHost, type ScriptedHost } from './scripted-host.ts';

const SESSIONS = '/v1/host/openwop-temporal/sessions';
const CONVERSATION = `GET ${SESSIONS}/talk-1/conversation`;
const SAY = `POST ${SESSIONS}/talk-1/messages`;
const HOSTILE = 'a\u001b[2Jb\u0007\u202ed\u009be';
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}]/u;

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());
const said = (from: string, content: unknown) => ({
  ...{ messageId: `m-${from}`, from, content, ts: 1_000, runId: 'run-1', eventId: 'evt-1' },
});

describe('openwop sessions', () => {
  it('lists sessions, and says when there are more', async () => {
    const session = { sessionId: 'talk-1', title: 'Refunds', tags: ['a', 'b'] };
    const lastActivityAt = '2026-01-02T03:04:05.000Z';
    host.script({
      [`GET ${SESSIONS}`]: {
        body: { sessions: [{ ...session, lastActivityAt }], nextCursor: 'x' },
      },
    });
    const { code, out, err } = await host.run(['sessions', '--limit', '1']);
    expect([code, err]).toEqual([0, 'There are more: --limit shows them.\n']);
    expect(out.trimEnd().split('\n').at(-1)?.split(/ {2,}/)).toEqual([
      ...['talk-1', 'Refunds', 'a b', lastActivityAt],
    ]);
    expect(host.asked[0]?.line).toBe(`GET ${SESSIONS}?limit=1`);
    host.script({ [`GET ${SESSIONS}`]: { body: { sessions: [] } } });
    expect((await host.run(['sessions'])).out).toBe('No sessions yet.\n');
    for (const args of [
      ['sessions', 'tell'],
      ['sessions', '--limit', '201'],
    ])
      expect((await host.run(args)).code).toBe(2);
  });

  // [I97]
  it('says what cannot be read, in its place', async () => {
    const unreadable = { code: 'history_undecodable', message: `No such key ${HOSTILE}.` };
    const lastActivityAt = '2026-01-02T03:04:05.000Z';
    host.script({
      [`GET ${SESSIONS}`]: {
        body: { sessions: [{ sessionId: 'talk-1', tags: [], unreadable, lastActivityAt }] },
      },
      [CONVERSATION]: [{ body: { messages: [], unreadable } }],
    });
    const { out } = await host.run(['sessions']);
    expect(out).toContain('Cannot be read now: No such key a');
    const read = await host.run(['sessions', 'read', 'talk-1']);
    expect(read.out).not.toContain('Nothing was said');
    expect(read.err).toContain('Cannot be read now: No such key a');
    for (const line of [...out.split('\n'), ...read.err.split('\n')])
      expect(line).not.toMatch(OBEYED);
  });

  it('reads what was said page by page, also behind an empty page; nothing of it is obeyed', async () => {
    host.script({
      [CONVERSATION]: [
        { body: { messages: [], nextCursor: 'c1' } },
        { body: { messages: [said('user', `one\n${HOSTILE}`)], nextCursor: 'c2' } },
        { body: { messages: [said(HOSTILE, { verdict: 'yes' })] } },
      ],
    });
    const { code, out } = await host.run(['sessions', 'read', 'talk-1']);
    expect(code).toBe(0);
    const lines = out.trimEnd().split('\n');
    expect(lines.slice(0, 2)).toEqual(['user  1970-01-01T00:00:01.000Z', '  one']);
    expect(lines.at(-1)).toBe('  {"verdict":"yes"}');
    expect(lines.join('')).not.toMatch(OBEYED);
    expect(host.asked.map(({ line }) => line.split('?')[1])).toEqual([
      ...['limit=100', 'limit=100&cursor=c1', 'limit=100&cursor=c2'],
    ]);
    host.script({ [CONVERSATION]: { body: { messages: [said('user', 'x')], nextCursor: 'c' } } });
    const first = await host.run(['sessions', 'read', 'talk-1', '--limit', '1', '--json']);
    expect(JSON.parse(first.out)).toMatchObject({ nextCursor: 'c', messages: [{ from: 'user' }] });
    host.script({ [CONVERSATION]: refusal(404, 'not_found') });
    const { code: refused, err } = await host.run(['sessions', 'read', 'talk-1']);
    expect([refused, err]).toEqual([1, expect.stringContaining('knows no session talk-1')]);
  });

  it('says something with a key, and follows the run that it starts', async () => {
    const accepted = { status: 201, body: { runId: 'run-1', status: 'pending', messageId: 'm' } };
    host.script({
      [SAY]: [refusal(503, 'service_unavailable'), accepted],
      'GET /v1/runs/run-1': { body: { runId: 'run-1', status: 'completed', workflowId: 'w' } },
      'GET /v1/runs/run-1/events': (response) => {
        const end = { sequence: 0, type: 'run.completed', payload: {}, runId: 'run-1' };
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames([end]));
      },
    });
    const text = '@local.a.b what?';
    const { code, out } = await host.run(['sessions', 'say', 'talk-1', text, '--follow']);
    expect([code, out.split('\n')[0]]).toEqual([0, 'Run run-1: Starting.']);
    const [lost, sent] = host.asked;
    const json = await host.run(['sessions', 'say', 'talk-1', text, '--follow', '--json']);
    const documents = json.out.trimEnd().split('\n');
    expect(documents.map((line) => (JSON.parse(line) as { runId: string }).runId)).toEqual([
      ...['run-1', 'run-1'],
    ]);
    expect(sent?.body).toEqual({ content: text });
    expect(sent?.headers['idempotency-key']).toMatch(/^cli-/);
    expect(sent?.headers['idempotency-key']).toBe(lost?.headers['idempotency-key']);
    host.script({ [SAY]: refusal(400, 'validation_error') });
    expect((await host.run(['sessions', 'say', 'talk-1', 'hi'])).code).toBe(1);
  });
});
