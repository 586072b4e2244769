// The connection to Core (seed 004 §1, §2): a Unix socket or loopback TCP, frames in both directions, and a bound on
// what Core has not taken yet.
import { connect, type Socket } from 'node:net';
import { encodeFrame, FrameDecoder } from '../opensentience/frame.ts';
import { TCP_PREFIX, type AgentMessage } from '../opensentience/messages.ts';
import { AgentError } from './errors.ts';
import type { AgentLimits } from './limits.ts';

export interface WireEvents {
  message(value: { [key: string]: unknown }): void;
  /** Once, after the last message. */
  ended(reason: string): void;
}

export interface Wire {
  /** Throws as encodeFrame; nothing is sent then. After the end it does nothing. */
  send(message: AgentMessage): void;
  /** Core is behind: what can be left out should be. */
  readonly crowded: boolean;
  readonly maxFrameBytes: number;
  /** What core.welcome says, for both directions. */
  useMaxFrameBytes(bytes: number): void;
  /** Sends what waits, then closes. */
  end(): void;
}

/** Rejects with AgentError `agent.unreachable`. Events come only after it has resolved. */
export async function openWire(
  address: string,
  limits: AgentLimits,
  events: WireEvents,
): Promise<Wire> {
  const socket = await connected(address, limits.connectMs);
  let maxFrameBytes = limits.maxFrameBytes;
  let decoder = new FrameDecoder(maxFrameBytes);
  let reason = 'connection_lost';
  const fail = (why: string): void => {
    reason = why;
    socket.destroy();
  };
  socket.on('data', (chunk) => {
    for (const frame of decoder.push(chunk)) {
      if (frame.ok) events.message(frame.value);
      // Seed 004 §2.2: closed, since parsing may be unsafe.
      else
        fail(frame.fault === 'too-large' ? 'protocol.frame_too_large' : 'protocol.invalid_frame');
    }
  });
  socket.on('error', () => undefined).on('close', () => events.ended(reason));
  return {
    send: (message) => {
      const frame = encodeFrame(message, maxFrameBytes);
      if (socket.destroyed || socket.writableEnded) return;
      socket.write(frame);
      if (socket.writableLength > 2 * limits.maxWriteBytes) fail('protocol.too_slow');
    },
    get crowded() {
      return socket.writableLength > limits.maxWriteBytes;
    },
    get maxFrameBytes() {
      return maxFrameBytes;
    },
    useMaxFrameBytes: (bytes) => {
      maxFrameBytes = bytes;
      // A frame that has begun keeps the limit that it began with.
      if (decoder.openSinceMs === undefined) decoder = new FrameDecoder(bytes);
    },
    end: () => {
      socket.end();
      const timer = setTimeout(() => socket.destroy(), limits.replyMs);
      timer.unref();
      socket.once('close', () => clearTimeout(timer));
    },
  };
}

async function connected(address: string, connectMs: number): Promise<Socket> {
  const socket = connect(placeOf(address));
  const unreachable = (why: string) => new AgentError('agent.unreachable', `No Core: ${why}.`);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error('ETIMEDOUT')), connectMs);
    const failed = (error: NodeJS.ErrnoException): void => {
      clearTimeout(timer);
      reject(unreachable(error.code ?? error.message));
    };
    socket.once('error', failed).once('connect', () => {
      clearTimeout(timer);
      socket.off('error', failed).setNoDelay(true);
      resolve(socket);
    });
  });
}

const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;

/** The token travels in the clear, so TCP goes no further than this machine (seed 004 §0, §1.2). */
function placeOf(address: string): { path: string } | { host: string; port: number } {
  if (!address.startsWith(TCP_PREFIX)) return { path: address };
  const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d{1,5})$/.exec(address.slice(4)) ?? [];
  if (!LOOPBACK.test(host))
    throw new AgentError('agent.unreachable', 'Over TCP an agent connects to loopback only.');
  return { host, port: Number(port) };
}
