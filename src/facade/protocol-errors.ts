// Requests that never reach a route: bytes that are no HTTP, headers too large, a client too slow. They get the same
// envelope as all others (rest-endpoints.md §Error response shape); Node alone would answer without a body.
import { STATUS_CODES, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { HostError, type ErrorCode } from '../rules/errors.ts';
import { envelopeOf } from './errors.ts';
import { MAJORS } from './majors.ts';

/** Node's codes; every other one is a request that cannot be read. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** Time in ms that the client has to read its answer: it need not close its side, and would hold the connection. */
const LINGER_MS = 1_000;

/** Answers as the preferred major does, and closes the connection: what follows on it cannot be told apart. */
export function answerProtocolErrors(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const code = CODES[error.code ?? ''] ?? 'validation_error';
    const { status, body } = envelopeOf(new HostError(code), MAJORS[0]);
    const text = JSON.stringify(body);
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(text)}`,
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  });
}
