// A PostgreSQL that dies while it greets: readiness and its last words come in one piece, before anybody who waited for
// the connection can listen to it. It must be service_unavailable, never the end of this process.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { openPool } from '../../src/adapters/postgres/pool.ts';
import { silentLogger } from '../support/log-parts.ts';
import { patient } from '../support/machine.ts';

const WAIT_MS = patient(20_000);

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
const WELCOME = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
const LAST_WORDS = message(
  'E',
  Buffer.from(
    'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0',
  ),
);

/** What the server does with its n-th connection, from 0. */
type Manner = (connection: number) => 'lives' | 'dies';

let server: Server | undefined;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
});

async function dyingServer(manner: Manner): Promise<string> {
  let connections = 0;
  server = createServer((socket) => {
    const dies = manner(connections++) === 'dies';
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => {
      if (dies) socket.end(Buffer.concat([WELCOME, LAST_WORDS]));
      else socket.write(WELCOME);
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `postgres://openwop@127.0.0.1:${(server.address() as AddressInfo).port}/openwop`;
}

describe('architecture §3.3 PostgreSQL dies as it greets', () => {
  it('a transaction and a query are service_unavailable, and the process lives', async () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown) => void uncaught.push(error);
    process.prependListener('uncaughtException', note);
    const db = await openPool(
      await dyingServer((one) => (one === 0 ? 'lives' : 'dies')),
      silentLogger,
    );
    try {
      const unavailable = { code: 'service_unavailable' };
      const work = () => Promise.resolve();
      await expect(db.transaction(work)).rejects.toMatchObject(unavailable);
      await expect(db.query('SELECT 1')).rejects.toMatchObject(unavailable);
      expect(uncaught).toEqual([]);
    } finally {
      process.off('uncaughtException', note);
      await db.close();
    }
  });

  it('the notification connection is made again until one lasts, and then says so', async () => {
    let first: Socket | undefined;
    const manner: Manner = (one) => (one === 1 || one === 2 ? 'dies' : 'lives');
    let seen = 0;
    const url = await dyingServer((one) => {
      seen = one;
      return manner(one);
    });
    const db = await openPool(url, silentLogger);
    try {
      [first] = sockets;
      let reconnects = 0;
      db.onReconnect(() => reconnects++);
      first?.destroy();
      await expect.poll(() => reconnects, { timeout: WAIT_MS }).toBeGreaterThan(0);
      expect({ reconnects, seen }).toEqual({ reconnects: 1, seen: 3 });
    } finally {
      await db.close();
    }
  });
});
