// What the other side wrote before it went (seed 004 §4.3.3: its result counts): when a write fails first, Node closes the
// socket with bytes unread. They are taken out of the system's buffer before that.
import { readSync } from 'node:fs';
import type { Socket } from 'node:net';

const PIECE_BYTES = 64 * 1024;
/** Above what systems buffer for a socket. */
const MAX_PIECES = 128;

type Destroy = Socket['_destroy'];

/** `take` gets the bytes in order, before `close`; nothing where the platform does not tell the descriptor. */
export function readUnreadOnFailure(socket: Socket, take: (piece: Buffer) => void): void {
  const destroy: Destroy = socket._destroy.bind(socket);
  socket._destroy = (error, done) => {
    if (error) for (const piece of unread(socket)) take(piece);
    destroy(error, done);
  };
}

function* unread(socket: Socket): Generator<Buffer> {
  const fd = (socket as unknown as { _handle?: { fd?: number } | null })._handle?.fd;
  if (fd === undefined || fd < 0) return;
  for (let piece = 0; piece < MAX_PIECES; piece += 1) {
    const buffer = Buffer.alloc(PIECE_BYTES);
    let length = 0;
    try {
      length = readSync(fd, buffer);
    } catch {
      // Nothing left, or a connection that was reset.
    }
    if (length === 0) return;
    yield buffer.subarray(0, length);
  }
}
