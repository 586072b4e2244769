// The facade on a socket: limits against slow clients, and an orderly end (architecture §10).
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createFacade } from './app.ts';
import type { Logger } from '../ports/logger.ts';
import { nowMs } from '../system/time.ts';
import type { FacadeDeps } from './deps.ts';
import { answerProtocolErrors } from './protocol-errors.ts';

/** Time in ms that a client may take to send its headers, and its whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Idle connections are kept this long, in ms. */
const KEEP_ALIVE_MS = 65_000;
/**
 * A connection on which nothing moves for this long, in ms, is closed: what it was answered is not taken. Above the
 * longest poll and the heartbeat of streams.
 */
const SILENCE_MS = 120_000;
/** Connections at once; one more closes those that are idle, and is refused itself. */
const MAX_CONNECTIONS = 4_096;
/** That connections are refused is logged once in this time, in ms. */
const DROP_LINE_MS = 60_000;
/** Clients that are too slow are looked for this often, in ms. */
const CHECK_MS = 5_000;
/** Requests that run when the server stops have this long to end, in ms. */
const DRAIN_MS = 4_000;

/** While the server stops, idle connections are looked for this often, in ms. */
const IDLE_CHECK_MS = 20;

export interface Listening {
  /** Base of the API, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Takes no new connection, ends streams with a comment, waits for running requests at most DRAIN_MS. */
  stop(): Promise<void>;
}

/** Port 0 takes a free one. Rejects with the system's error (EADDRINUSE, EACCES). */
export async function listen(
  deps: FacadeDeps,
  address: { host: string; port: number },
  {
    silenceMs = SILENCE_MS,
    maxConnections = MAX_CONNECTIONS,
  }: { readonly silenceMs?: number; readonly maxConnections?: number } = {},
): Promise<Listening> {
  const facade = createFacade(deps);
  const limits = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_MS,
  };
  // A missing Host header, and an expectation of nobody's, are for the app to judge: Node's own refusals have no body.
  const server = createServer(
    { ...limits, keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false },
    facade.app,
  );
  boundConnections(server, maxConnections, deps.logger);
  server.setTimeout(silenceMs);
  server.on('checkExpectation', facade.app);
  // Whoever asks before sending a body is told to go on when it is read (body.ts), or that it is refused.
  server.on('checkContinue', facade.app);
  answerProtocolErrors(server);
  return listenOn(server, address, () => facade.drain());
}

/** One connection too many is refused by Node; what has been answered and asks nothing makes room for the next. */
function boundConnections(server: Server, maxConnections: number, logger: Logger): void {
  let quietUntilMs = 0;
  const underWay = answersUnderWay(server);
  server.maxConnections = maxConnections;
  server.on('drop', () => {
    // Node takes a connection for idle while bytes of its last answer still wait in this process.
    for (const [socket, answers] of underWay)
      if (answers === 0 && socket.writableLength === 0) socket.destroy();
    if (nowMs() < quietUntilMs) return;
    quietUntilMs = nowMs() + DROP_LINE_MS;
    logger.warn('a connection was refused: there are as many as there may be', { maxConnections });
  });
}

/** How many of each connection that has asked something. */
function answersUnderWay(server: Server): ReadonlyMap<Socket, number> {
  const underWay = new Map<Socket, number>();
  const add = (socket: Socket, change: number): void => {
    const answers = underWay.get(socket);
    if (answers !== undefined) underWay.set(socket, answers + change);
  };
  // Each request is one of these, and several may be there at once.
  for (const event of ['request', 'checkContinue', 'checkExpectation'])
    server.on(event, ({ socket }: IncomingMessage, response: ServerResponse) => {
      if (!underWay.has(socket)) {
        underWay.set(socket, 0);
        socket.once('close', () => underWay.delete(socket));
      }
      add(socket, 1);
      response.once('close', () => add(socket, -1));
    });
  return underWay;
}

/** Binds the server; `drain` is called once it takes no new connections. */
export async function listenOn(
  server: Server,
  address: { readonly host: string; readonly port: number },
  drain: () => void,
): Promise<Listening> {
  await bind(server, { host: address.host, port: address.port });
  const { port } = server.address() as AddressInfo;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return {
    url: `http://${host}:${port}`,
    port,
    async stop() {
      const closed = close(server);
      drain();
      await closed;
    },
  };
}

function bind(server: Server, address: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Connections that fall idle while others still run are closed as they do, not kept alive. */
async function close(server: Server): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
  const force = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearInterval(idle);
  clearTimeout(force);
}
