// Whether a worker takes steps of runs (architecture §4.1): told by the API of its process, or on a port of its own.
import { afterEach, describe, expect, it } from 'vitest';
import { unavailable } from '../../src/adapters/postgres/db.ts';
import { listenForHealth } from '../../src/facade/listen-health.ts';
import type { Listening } from '../../src/facade/listen.ts';
import type { WorkerState } from '../../src/facade/deps.ts';
import type { ReadinessParts } from '../../src/facade/routes/health.ts';
import { HostError } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { silentLogger } from '../support/log-parts.ts';
import { startFaultHost } from './fault-host.ts';

const STATES: readonly [WorkerState, number][] = [
  ['ok', 200],
  ['waits-for-store', 503],
  ['waits-for-temporal', 503],
];

let server: Listening | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

async function listening(more: Partial<ReadinessParts> = {}) {
  server = await listenForHealth(
    {
      engine: { ping: async () => undefined },
      stores: { ping: async () => undefined, keyRing: ringOf([]) },
      log: { problems: async () => [] },
      deployments: { read: async () => undefined } as never,
      logger: silentLogger,
      ...more,
    },
    { host: '127.0.0.1', port: 0 },
  );
  const { url } = server;
  return async (path: string, method = 'GET') => {
    const answer = await fetch(url + path, { method });
    const text = await answer.text();
    return [answer.status, text === '' ? undefined : (JSON.parse(text) as object)] as const;
  };
}

describe('of a worker alone', () => {
  it.each(STATES)('%s: readiness is %i', async (state, status) => {
    const ask = await listening({ workerState: () => state });
    const [told, body] = await ask('/readyz?from=here');
    expect([told, body]).toMatchObject([status, { worker: state, temporal: 'ok', database: 'ok' }]);
    expect(await ask('/healthz')).toEqual([200, { status: 'ok' }]);
  });

  it('a database that does not answer is named', async () => {
    const ping = async () => Promise.reject(new HostError('service_unavailable'));
    const ask = await listening({ stores: { ping, keyRing: ringOf([]) }, workerState: () => 'ok' });
    const told = { status: 'not-ready', database: 'service_unavailable' };
    expect(await ask('/readyz')).toMatchObject([503, told]);
  });

  it('what a database refuses with is named', async () => {
    const ping = () => Promise.reject(unavailable({ code: '54000', message: 'no ids are left' }));
    const ask = await listening({ stores: { ping, keyRing: ringOf([]) }, workerState: () => 'ok' });
    const told = { status: 'not-ready', database: 'service_unavailable', sqlState: '54000' };
    expect(await ask('/readyz')).toMatchObject([503, told]);
  });

  it('one that lacks a key with which others encrypt is not ready', async () => {
    const keyRing = { ...ringOf([]), missing: () => ['k2'] };
    const ask = await listening({ stores: { ping: async () => undefined, keyRing } });
    const [status, body] = await ask('/readyz');
    expect([status, body]).toMatchObject([503, { status: 'not-ready', keys: 'missing' }]);
    expect(JSON.stringify(body)).not.toContain('k2');
  });

  it('one whose Temporal does not answer waits for it, whatever its connection seems', async () => {
    const ping = async () => Promise.reject(new HostError('service_unavailable'));
    const ask = await listening({ engine: { ping }, workerState: () => 'ok' });
    expect(await ask('/readyz')).toMatchObject([503, { worker: 'waits-for-temporal' }]);
  });

  it('a database that is silent is waited for no longer than its ping', async () => {
    const ping = async () => Promise.reject(new HostError('service_unavailable'));
    const problems = () => new Promise<never>(() => undefined);
    const ask = await listening({ stores: { ping, keyRing: ringOf([]) }, log: { problems } });
    expect(await ask('/readyz')).toMatchObject([503, { projection: 'unknown' }]);
  });

  it('nothing else is there: no API, no page, no way to change anything', async () => {
    const ask = await listening();
    for (const path of ['/', '/v1/runs', '/readyz/', '/metrics', '//healthz'])
      expect(await ask(path)).toEqual([404, { error: 'not_found' }]);
    expect(await ask('/healthz', 'POST')).toEqual([404, { error: 'not_found' }]);
    expect(await ask('/healthz', 'HEAD')).toEqual([200, undefined]);
  });
});

describe('of a process with an API', () => {
  it.each(STATES)('%s: readiness is %i', async (state, status) => {
    const host = await startFaultHost({}, () => ({ workerState: () => state }));
    try {
      const { status: told, body } = await host.api('/readyz', { headers: { authorization: '' } });
      expect([told, body.worker]).toEqual([status, state]);
    } finally {
      await host.stop();
    }
  });
});
