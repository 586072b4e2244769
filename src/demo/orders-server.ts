// A small shop behind HTTP on loopback: orders, and refunds that are counted in a file. It notes the Idempotency-Key
// of a refund but does not deduplicate by it, as many real services do: who calls twice pays twice.
import { once } from 'node:events';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import type { Logger } from '../ports/logger.ts';

export interface Order {
  readonly orderId: string;
  readonly item: string;
  readonly totalCents: number;
  readonly currency: 'EUR';
  readonly daysSinceDelivery: number;
  readonly customerOrders: number;
}

export interface Refund {
  readonly refundId: string;
  readonly orderId: string;
  readonly amountCents: number;
  readonly reason: string;
  readonly idempotencyKey: string | null;
}

export interface OrdersServer {
  /** `http://127.0.0.1:<port>`, no slash at the end. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Largest body that the shop reads, in bytes. */
const BODY_BYTES = 16 * 1024;

/** Damaged goods are taken back this long. */
export const RETURN_WINDOW_DAYS = 30;

export const ORDERS: readonly Order[] = [
  {
    orderId: 'A-1007',
    item: 'Glass kettle, 1.7 l',
    totalCents: 6490,
    currency: 'EUR',
    daysSinceDelivery: 41,
    customerOrders: 9,
  },
  {
    orderId: 'A-1008',
    item: 'Tea cups, set of 4',
    totalCents: 3200,
    currency: 'EUR',
    daysSinceDelivery: 7,
    customerOrders: 1,
  },
];

/** Starts the shop on a free port. `refundsFile`: one JSON line per refund, kept over restarts. */
export async function startOrdersServer(options: {
  refundsFile: string;
  logger: Logger;
}): Promise<OrdersServer> {
  const refunds = await openRefunds(options.refundsFile);
  const server = createServer((request, response) => {
    answer(request, refunds).then(
      ({ status, body }) => send(response, status, body),
      (error: unknown) => {
        options.logger.warn('demo orders service failed', { error: String(error) });
        send(response, 500, { message: 'The orders service failed.' });
      },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function answer(request: IncomingMessage, book: RefundBook): Promise<Answer> {
  const { pathname } = new URL(request.url ?? '/', 'http://shop');
  const [root, orderId, refunds, ...rest] = pathname.slice(1).split('/').map(decodeURIComponent);
  if (request.method === 'GET' && pathname === '/refunds') {
    return { status: 200, body: { count: book.refunds.length, refunds: book.refunds } };
  }
  const order = ORDERS.find((one) => root === 'orders' && one.orderId === orderId);
  if (!order || rest.length > 0)
    return { status: 404, body: { message: 'There is no such order.' } };
  if (request.method === 'GET' && refunds === undefined) {
    return { status: 200, body: { ...order, ...returnWindow(order) } };
  }
  if (request.method === 'POST' && refunds === 'refunds') return refund(order, request, book);
  return { status: 405, body: { message: 'That cannot be done.' } };
}

function returnWindow({ daysSinceDelivery }: Order) {
  const isOpen = daysSinceDelivery <= RETURN_WINDOW_DAYS;
  return { returnWindowDays: RETURN_WINDOW_DAYS, returnWindow: isOpen ? 'open' : 'closed' };
}

async function refund(order: Order, request: IncomingMessage, book: RefundBook): Promise<Answer> {
  const body = await readJson(request);
  const amountCents = body?.amountCents;
  if (typeof amountCents !== 'number' || !Number.isInteger(amountCents) || amountCents < 1) {
    return { status: 400, body: { message: 'amountCents must be a whole number above 0.' } };
  }
  if (amountCents > order.totalCents) {
    return { status: 422, body: { message: `The order's total is ${order.totalCents} cents.` } };
  }
  const done: Refund = {
    refundId: `R-${book.refunds.length + 1}`,
    orderId: order.orderId,
    amountCents,
    reason: typeof body?.reason === 'string' ? body.reason : '',
    idempotencyKey: request.headers['idempotency-key']?.toString() ?? null,
  };
  book.refunds.push(done);
  await appendFile(book.file, `${JSON.stringify(done)}\n`);
  const { refundId, orderId } = done;
  return { status: 201, body: { refundId, orderId, amountCents } };
}

interface RefundBook {
  readonly file: string;
  readonly refunds: Refund[];
}

/** A last line cut by a crash was never answered: it is taken away, so that the next one starts on its own line. */
async function openRefunds(file: string): Promise<RefundBook> {
  await mkdir(dirname(file), { recursive: true });
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  });
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole !== text) await writeFile(file, whole);
  const lines = whole.split('\n').filter((line) => line !== '');
  return { file, refunds: lines.map((line) => JSON.parse(line) as Refund) };
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > BODY_BYTES) return undefined;
    parts.push(part);
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}
