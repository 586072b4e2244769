// Clients that go: at any moment of their request, alone or in crowds, on one connection or many. What they held is free
// again, and nobody else is refused for it (architecture §10).
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../src/facade/listen.ts';
import { answerProtocolErrors } from '../../src/facade/protocol-errors.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const PLACES = 5;
let host: FaultHost;
let runId: string;
/** While it stands, reads of the log wait. */
let gate: Promise<void> | undefined;
let reading = 0;

beforeAll(async () => {
  host = await startFaultHost({ streamLimits: { perKey: PLACES } }, ({ log }) => ({
    log: {
      ...log,
      async fresh(id) {
        reading += 1;
        await gate;
        return log.fresh(id);
      },
    },
  }));
  runId = await host.startRun({ workflowId: 'noop' });
});

afterAll(async () => {
  await host.stop();
});

const KINDS = {
  'a stream': (id: string) => request(`/v1/runs/${id}/events`, 'text/event-stream'),
  'a stream of snapshots': (id: string) =>
    request(`/v1/runs/${id}/events?streamMode=values`, 'text/event-stream'),
  'the log as JSON': (id: string) => request(`/v1/runs/${id}/events`, 'application/json'),
  'a poll': (id: string) => request(`/v1/runs/${id}/events/poll?timeout=60`, 'application/json'),
};

function request(path: string, accept: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${KEY}\r\nAccept: ${accept}\r\n\r\n`;
}

async function dial(text: string): Promise<Socket> {
  const socket = connect(Number(new URL(host.url).port), '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

async function leave(socket: Socket, way: 'reset' | 'close'): Promise<void> {
  if (way === 'reset') socket.resetAndDestroy();
  else socket.destroy();
  await once(socket, 'close');
}

/** Takes every place that a key has, and gives them back. */
async function expectAllPlacesFree(): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' };
  const url = `${host.url}/v1/runs/${runId}/events`;
  const stop = new AbortController();
  await expect
    .poll(async () => {
      const open = await Promise.all(
        Array.from({ length: PLACES }, () => fetch(url, { headers, signal: stop.signal })),
      );
      const taken = open.filter(({ status }) => status === 200);
      await Promise.all(open.map(async ({ body }) => body?.cancel()));
      return taken.length;
    })
    .toBe(PLACES);
  stop.abort();
}

describe('clients that stay and take nothing', () => {
  it('bytes that are no HTTP are answered, and the connection ends though the client keeps its side', async () => {
    const server = createServer();
    answerProtocolErrors(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    socket.on('data', (piece) => void (text += piece.toString()));
    socket.write('\0\0\r\n\r\n');
    await once(socket, 'end');
    expect(text).toMatch(/^HTTP\/1.1 400 /);
    const open = () =>
      new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    await expect.poll(open).toBe(0);
    socket.destroy();
    server.close();
  });

  it('an answer that nobody takes is given up', async () => {
    const { deps } = host;
    const blob = 'x'.repeat(8 * 1024 * 1024);
    const catalog = {
      ...deps.catalog,
      definition: (tenant: string, id: string) => {
        const found = deps.catalog.definition(tenant, id);
        return found && { ...found, description: blob };
      },
    };
    const lines: string[] = [];
    const logger = {
      ...deps.logger,
      info: (...line: unknown[]) => void lines.push(JSON.stringify(line)),
    };
    const server = await listen(
      { ...deps, catalog, logger },
      { host: '127.0.0.1', port: 0 },
      { silenceMs: 300 },
    );
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    socket.pause().write(request('/v1/workflows/noop', 'application/json').repeat(4));
    await expect.poll(() => lines.join()).toContain('"aborted":true');
    socket.destroy();
    await server.stop();
  });
});

describe('clients that have gone hold no place', () => {
  it.each(Object.entries(KINDS))('%s whose client went before it was open', async (_, kind) => {
    for (const way of ['reset', 'close'] as const) {
      let open = () => {};
      gate = new Promise((resolve) => (open = resolve));
      reading = 0;
      const sockets = await Promise.all(Array.from({ length: 20 }, () => dial(kind(runId))));
      await expect.poll(() => reading).toBe(sockets.length);
      await Promise.all(sockets.map((socket) => leave(socket, way)));
      // The server has seen them go when a request that came later is answered.
      await host.api('/healthz');
      open();
      gate = undefined;
      await expectAllPlacesFree();
    }
  });

  it.each(Object.entries(KINDS))('%s whose clients go at any moment', async (_, kind) => {
    for (let round = 0; round < 60; round++) {
      const socket = await dial(kind(runId));
      for (let turns = 0; turns < round; turns++) await turn();
      await leave(socket, round % 2 === 0 ? 'reset' : 'close');
    }
    await expectAllPlacesFree();
  });

  it.each(Object.entries(KINDS))(
    '%s that stands behind an open one on the same connection',
    async (_, kind) => {
      const socket = await dial(KINDS['a stream'](runId));
      await once(socket, 'data');
      reading = 0;
      socket.write(kind(runId).repeat(PLACES - 1));
      await expect.poll(() => reading).toBe(PLACES - 1);
      await host.api('/healthz');
      await leave(socket, 'reset');
      await expectAllPlacesFree();
    },
  );
});
