// A small server with the pages' addresses: the rendered page, its assets, an event stream, the answer. The stream is
// pushed by the test; the policy is the strict one that the facade sends.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PAGE_ASSETS, renderRunPage, type RunPageModel } from '../../src/pages/index.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';

export interface PageServer {
  readonly url: string;
  model: RunPageModel;
  /** Everything in the log; a new stream starts behind its Last-Event-ID, and is refused where that is not in it. */
  readonly log: RunEventDoc[];
  /** Bodies of the answers that were posted. */
  readonly answers: URLSearchParams[];
  /** Last-Event-ID of every stream that was opened. */
  readonly resumes: (string | undefined)[];
  /** Streams that are open. */
  readonly open: () => number;
  push(events: readonly RunEventDoc[]): void;
  /** Breaks the open streams. */
  drop(): void;
  stop(): Promise<void>;
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

export async function startPageServer(model: RunPageModel): Promise<PageServer> {
  const streams = new Set<ServerResponse>();
  const http = createServer((request, response) => void serve(request, response));
  const server: PageServer = {
    url: '',
    model,
    log: [...model.events],
    answers: [],
    resumes: [],
    open: () => streams.size,
    push: (events) => {
      server.log.push(...events);
      for (const stream of streams) for (const event of events) frame(stream, event);
    },
    drop: () => {
      for (const stream of streams) stream.destroy();
    },
    stop: async () => {
      http.close();
      http.closeAllConnections();
      await once(http, 'close');
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://x');
    const send = (type: string, body: string) =>
      response
        .writeHead(200, { 'content-type': type, 'content-security-policy': POLICY })
        .end(body);
    const asset = PAGE_ASSETS.find(({ path }) => path === pathname);
    if (asset) return void send(asset.type, asset.text());
    if (pathname === '/events') return stream(request, response);
    if (request.method === 'POST') {
      let body = '';
      for await (const part of request) body += String(part);
      server.answers.push(new URLSearchParams(body));
      return void response.writeHead(303, { location: '/page' }).end();
    }
    send('text/html; charset=utf-8', renderRunPage(server.model));
  }

  function stream(request: IncomingMessage, response: ServerResponse): void {
    const after = request.headers['last-event-id']?.toString();
    server.resumes.push(after);
    const at = server.log.findIndex(({ eventId }) => eventId === after);
    if (after !== undefined && at < 0) return void response.writeHead(400).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': hello\n\n');
    for (const event of server.log.slice(at + 1)) frame(response, event);
    streams.add(response);
    response.on('close', () => streams.delete(response));
  }

  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return Object.assign(server, { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}` });
}

function frame(response: ServerResponse, event: RunEventDoc): void {
  response.write(`id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}
