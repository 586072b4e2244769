// What somebody without a key can make the host do: nothing that costs Temporal or the database more than one question
// a second (architecture §10).
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PageSessionStore } from '../../src/ports/page-sessions.ts';
import { startFaultHost, type FaultHost } from './fault-host.ts';

const STRANGERS = 50;
const asked = { ping: 0, findSession: 0, consumeLink: 0 };
let gate: Promise<void> | undefined;
let host: FaultHost;
let runId: string;
let other: string;

beforeAll(async () => {
  host = await startFaultHost({}, ({ engine, stores }) => ({
    engine: {
      ...engine,
      async ping() {
        asked.ping += 1;
        await gate;
        return engine.ping();
      },
    },
    stores: { ...stores, pageSessions: counted(stores.pageSessions) },
  }));
  runId = await host.startRun({ workflowId: 'noop' });
  other = await host.startRun({ workflowId: 'noop' });
});

afterAll(() => host.stop());

function counted(store: PageSessionStore): PageSessionStore {
  return {
    ...store,
    findSession: (...given) => ((asked.findSession += 1), store.findSession(...given)),
    consumeLink: (...given) => ((asked.consumeLink += 1), store.consumeLink(...given)),
  };
}

const visit = (path: string, cookie = '', method = 'GET') =>
  fetch(`${host.url}${path}`, { method, headers: { cookie }, redirect: 'manual' });

/** The page's path and cookie. */
async function open(id: string): Promise<{ path: string; cookie: string; link: string }> {
  const { body } = await host.api<{ url: string }>(
    `/v1/host/openwop-temporal/runs/${id}/page-link`,
    { method: 'POST' },
  );
  const { pathname, search } = new URL(body.url);
  const link = new URLSearchParams(search).get('link') ?? '';
  const opened = await visit(pathname + search, '', 'POST');
  expect(opened.status).toBe(303);
  return { path: pathname, cookie: opened.headers.getSetCookie()[0]?.split(';')[0] ?? '', link };
}

describe('architecture §10 without a key', () => {
  it('any number of questions after readiness ask Temporal and the database once', async () => {
    let release = () => {};
    gate = new Promise((resolve) => (release = resolve));
    const answers = Promise.all(Array.from({ length: STRANGERS }, () => visit('/readyz')));
    await expect.poll(() => asked.ping).toBeGreaterThan(0);
    await visit('/healthz');
    release();
    gate = undefined;
    expect(new Set((await answers).map(({ status }) => status))).toEqual(new Set([200]));
    expect(asked.ping).toBe(1);
  });

  it('cookies and links that this deployment did not make, or for another run, cost no query', async () => {
    const { path, cookie } = await open(runId);
    expect((await visit(path, cookie)).status).toBe(200);
    const [name = '', token = ''] = cookie.split('=');
    const before = { ...asked };
    const forged = randomBytes(48).toString('base64url');
    for (const value of [
      forged,
      token.slice(1),
      `${token}x`,
      token.replace(/^./, (c) => (c === 'A' ? 'B' : 'A')),
      '',
    ]) {
      expect((await visit(path, `${name}=${value}`)).status).toBe(401);
      const events = await visit(`/v1/runs/${runId}/events`, `${name}=${value}`);
      expect(events.status).toBe(401);
      expect((await visit(`${path}?link=${value}`, '', 'POST')).status).toBe(410);
    }
    const elsewhere = path.replace(runId, other);
    expect((await visit(elsewhere, cookie)).status).toBe(401);
    expect((await visit(`${elsewhere}?link=${token}`, '', 'POST')).status).toBe(410);
    expect(asked).toEqual(before);
  });

  it('a used link is asked for, and refused', async () => {
    const { path, link } = await open(runId);
    expect((await visit(`${path}?link=${link}`, '', 'POST')).status).toBe(410);
  });
});
