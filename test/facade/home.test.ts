// The host's page and its stream by HTTP (architecture §10): 10,000 runs, odd names, what is asked wrongly, a run that is
// erased meanwhile, clients that go, an engine that is away.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  openDatabase,
  openStores,
  type DatabaseOptions,
} from '../../src/adapters/postgres/index.ts';
import { STREAM_LIMITS } from '../../src/facade/stream-registry.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { chain, node } from '../support/definitions.ts';
import { pgliteDatabase } from '../support/databases.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { sharedDatabase } from '../support/shared-postgres.ts';
import { appendRows, eventually, newRun, runInput } from '../contract/given.ts';
import { catalogOf, DEFINITIONS, KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const MARKUP = '<b onclick="x">&"</b>';
const ODD = 'a/b?c#d %41 "<x>" ü';
const RUNS = 10_000;
/** The most that a page may weigh, in characters. */
const PAGE_LENGTH = 100_000;

let host: FaultHost;
let stores: Stores;
let cookie: string;

/** Every second one waits, each a little longer than the one before. */
async function fill(database: DatabaseOptions): Promise<void> {
  const { db, close } = await openDatabase(database, quietLogger);
  const waits = JSON.stringify({
    waits: [
      {
        ...{ nodeId: 'gate', nodeName: 'Gate', interruptId: 'int', kind: 'approval' },
        ...{ requestedAtMs: 1, deadlineMs: Date.now() + 3_600_000, data: { title: 'Go on?' } },
      },
    ],
  });
  const input = JSON.stringify(runInput('r', 'default'));
  await db.query(
    `INSERT INTO runs (run_id, tenant_id, workflow_id, workflow_name, input, tags, created_at_ms)
     SELECT 'run-' || n, 'default', 'noop', 'Noop', $1, '[]', n FROM generate_series(1, ${RUNS}) n`,
    [input],
  );
  await db.query(
    `INSERT INTO run_heads (run_id, tenant_id, workflow_id, created_at_ms, status, closed, next_sequence, last_timestamp_ms,
       temporal_run_id, history_event_id, token, translate_version, translate_state, snapshot, summary)
     SELECT 'run-' || n, 'default', 'noop', n, CASE WHEN n % 2 = 0 THEN 'waiting-approval' ELSE 'completed' END, n % 2 = 1,
       9, n, 'T', 9, '', 1, 'null', 'null', CASE WHEN n % 2 = 0 THEN $1 ELSE '{"waits":[]}' END
     FROM generate_series(1, ${RUNS}) n`,
    [waits],
  );
  await db.query(
    `INSERT INTO run_asks (run_id, tenant_id, until_ms, since_ms, last_until_ms)
     SELECT 'run-' || n, 'default', n, n, n FROM generate_series(2, ${RUNS}, 2) n`,
  );
  await close();
}

beforeAll(async () => {
  const url = await sharedDatabase();
  const database: DatabaseOptions =
    url === undefined ? await pgliteDatabase() : { kind: 'postgres', url };
  await fill(database);
  stores = await openStores({ database, logger: quietLogger });
  const definitions = [
    ...DEFINITIONS,
    { ...chain(ODD, [node('only', 'core.noop')]), name: MARKUP, description: MARKUP },
  ];
  host = await startFaultHost({}, () => ({ catalog: catalogOf(definitions) }), stores);
  const signedIn = await fetch(`${host.url}/pages/sign-in`, {
    ...{ method: 'POST', redirect: 'manual', body: new URLSearchParams({ key: KEY }) },
  });
  cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
});
afterAll(() => host.stop());

async function home(query = ''): Promise<{ status: number; html: string; headers: Headers }> {
  const answer = await fetch(`${host.url}/pages${query}`, { headers: { cookie } });
  return { status: answer.status, html: await answer.text(), headers: answer.headers };
}
const keysOf = (html: string, kind: string): string[] =>
  [...html.matchAll(new RegExp(`<li class="${kind}[^"]*" data-key="([^" ]*)`, 'g'))].map(
    ([, key]) => key ?? '',
  );
const linkOf = (html: string, text: string): string =>
  (new RegExp(`<a href="/pages([^"]*)">${text}</a>`).exec(html)?.[1] ?? '').replaceAll(
    '&amp;',
    '&',
  );

describe("the host's page", () => {
  it('of 10,000 runs shows the newest, what waits shortest, and how much; it stays small and goes on by links', async () => {
    const { status, html } = await home();
    expect(status).toBe(200);
    expect(html.length).toBeLessThan(PAGE_LENGTH);
    expect(html).toContain('<span class="count">1000 or more</span>');
    const newest = Array.from({ length: 30 }, (_, at) => `run-${RUNS - at}`);
    expect(keysOf(html, 'run-row ')).toEqual(newest);
    const soonest = Array.from({ length: 10 }, (_, at) => `run-${2 * (at + 1)}`);
    expect(keysOf(html, 'card ask')).toEqual(soonest);
    const older = await home(linkOf(html, 'Older runs'));
    expect(keysOf(older.html, 'run-row ')[0]).toBe(`run-${RUNS - 30}`);
    expect(linkOf(older.html, 'Newest runs')).toBe('');
    expect(older.html).toContain('<a href="/pages">Newest runs</a>');
    const more = await home(linkOf(html, 'More that wait'));
    expect(keysOf(more.html, 'card ask')[0]).toBe('run-22');
    expect(keysOf(more.html, 'run-row ')).toEqual(newest);
  });

  it('the filter is a plain form, whose empty fields ask for all', async () => {
    const { html } = await home('?status=completed&workflow=');
    expect(keysOf(html, 'run-row ').slice(0, 2)).toEqual([`run-${RUNS - 1}`, `run-${RUNS - 3}`]);
    expect(linkOf(html, 'Older runs')).toContain('status=completed');
    expect((await home('?status=&workflow=')).status).toBe(200);
    const none = await home(`?workflow=${encodeURIComponent(`${ODD}\0`)}`);
    expect([none.status, none.html.includes('No run is like that')]).toEqual([200, true]);
  });

  it('what it cannot be asked for is 400, as a page', async () => {
    for (const bad of [
      'status=odd',
      'cursor=x',
      'waiting=x',
      'cursor=%00',
      'status=failed&status=failed',
    ]) {
      const { status, html, headers } = await home(`?${bad}`);
      expect([bad, status, headers.get('content-type')]).toEqual([
        ...[bad, 400, 'text/html; charset=utf-8'],
      ]);
      expect(html).not.toContain('class="runs"');
    }
  });

  it('names that are markup are text, and an id of odd characters has an address', async () => {
    const { html } = await home();
    expect(html).not.toContain('<b onclick');
    expect(html).toContain(`href="/pages/start/${encodeURIComponent(ODD)}"`);
  });

  it('an engine that is away is said, and the page is there', async () => {
    host.temporal.away = true;
    await expect.poll(async () => (await home()).html).toContain('engine cannot be reached');
    expect((await home()).headers.get('openwop-log-stale')).toBe('true');
    host.temporal.away = false;
    await expect.poll(async () => (await home()).html).not.toContain('engine cannot be reached');
  });
});

describe('its stream', () => {
  const request = (headers = '') =>
    `GET /pages/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${cookie}\r\nAccept: text/event-stream\r\n${headers}\r\n`;
  async function dial() {
    const socket = connect(Number(new URL(host.url).port), '127.0.0.1');
    const stream = { socket, text: '' };
    socket.on('data', (bytes: Buffer) => (stream.text += bytes.toString()));
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(request());
    return stream;
  }
  const told = ({ text }: { text: string }): number => text.split('event: changed').length - 1;

  it('is for who is signed in', async () => {
    const { status } = await fetch(`${host.url}/pages/events`);
    expect(status).toBe(401);
    const bearer = { authorization: `Bearer ${KEY}` };
    expect((await fetch(`${host.url}/pages/events`, { headers: bearer })).status).toBe(401);
  });

  it('says at once and later that something changed, and no more than that', async () => {
    const run = newRun();
    await stores.runs.accept(run);
    await stores.runs.markStarted(stores.runs.ref('default', run.runId), 'T1');
    // The stream also speaks every 30 s, whatever happens: no such look comes here.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const stream = await dial();
      // Of the reader's own begin are two: the watcher is told at once, and once the reader has its place in the feed.
      await expect.poll(() => told(stream)).toBe(2);
      await appendRows(stores, run.runId, ['a']);
      await expect.poll(() => told(stream)).toBe(3);
      expect(stream.text).toContain('Content-Type: text/event-stream');
      expect(stream.text).not.toContain(run.runId);
      stream.socket.destroy();
    } finally {
      vi.useRealTimers();
    }
  });

  it('one session holds 40 at most; those of clients that went are free again', async () => {
    const streams = await Promise.all(Array.from({ length: STREAM_LIMITS.perSession }, dial));
    await eventually(() => streams.every((stream) => told(stream) >= 1), 'all are open');
    const more = await fetch(`${host.url}/pages/events`, { headers: { cookie } });
    expect([more.status, more.headers.get('retry-after')]).toEqual([429, '2']);
    for (const { socket } of streams) socket.resetAndDestroy();
    const again = async () => {
      const stream = await dial();
      await eventually(() => stream.text.includes('\r\n\r\n'), 'an answer');
      stream.socket.destroy();
      return stream.text.slice(9, 12);
    };
    await expect.poll(again).toBe('200');
  });

  it('ends when the process drains', async () => {
    const stream = await dial();
    await eventually(() => told(stream) >= 1, 'it is open');
    const closed = once(stream.socket, 'close');
    await host.server.stop();
    await closed;
    expect(stream.text).toContain(':draining');
  });
});
