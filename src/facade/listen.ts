// The facade on a socket: limits against slow clients, and an orderly end (architecture §10).
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createFacade } from './app.ts';
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
  { silenceMs }: { silenceMs: number } = { silenceMs: SILENCE_MS },
): Promise<Listening> {
  const facade = createFacade(deps);
  const limits = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
  // A missing Host header, and an expectation of nobody's, are for the app to judge: Node's own refusals have no body.
  const server = createServer(
    { ...limits, keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false },
    facade.app,
  );
  server.setTimeout(silenceMs);
  server.on('checkExpectation', facade.app);
  answerProtocolErrors(server);
  return listenOn(server, address, () => facade.drain());
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
