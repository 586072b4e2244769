// The health of a process that has no API, a worker: /healthz and /readyz, as the API's own, and nothing else.
import { createServer, type ServerResponse } from 'node:http';
import { listenOn, type Listening } from './listen.ts';
import { ALIVE, readinessOf, type ReadinessParts } from './routes/health.ts';

/** Time in ms that a client may take for its request. */
const REQUEST_TIMEOUT_MS = 5_000;
/** ms between two looks for clients that are too slow. */
const CHECK_MS = 1_000;
/** Connections at once. */
const MAX_CONNECTIONS = 64;

/** Rejects with the system's error (EADDRINUSE, EACCES). */
export async function listenForHealth(
  parts: ReadinessParts,
  address: { host: string; port: number },
): Promise<Listening> {
  const look = readinessOf(parts);
  const limits = {
    headersTimeout: REQUEST_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_MS,
  };
  const server = createServer(limits, (request, response) => {
    request.resume();
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const path = isRead ? request.url?.split('?', 1)[0] : undefined;
    if (path === '/healthz') return answer(response, { status: 200, body: ALIVE });
    if (path !== '/readyz') return answer(response, { status: 404, body: { error: 'not_found' } });
    void look(false).then(
      (told) => answer(response, told),
      () => answer(response, { status: 503, body: { status: 'not-ready' } }),
    );
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.setTimeout(REQUEST_TIMEOUT_MS);
  // A process that ends answers nobody here.
  return listenOn(server, address, () => server.closeAllConnections());
}

function answer(response: ServerResponse, told: { status: number; body: object }): void {
  response.writeHead(told.status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(told.body));
}
