// Long answers of this process: one shared heartbeat, a cap per key (architecture §10), and a clean end for all of them
// when the process drains.
import type { Response } from 'express';
import { HostError } from '../rules/errors.ts';
import type { Logger } from '../ports/logger.ts';

/** Comment lines keep proxies and clients awake; the protocol asks for one at least every 30 s. */
const HEARTBEAT_MS = 15_000;
/** Streams and waiting polls that one key may hold open. */
export const MAX_STREAMS_PER_KEY = 1_000;
/** A client that takes nothing for this long is closed; it resumes by Last-Event-ID. */
const SLOW_CLIENT_MS = 30_000;

export interface OpenStream {
  /** Aborts when the client goes, is too slow, or the process drains. */
  readonly signal: AbortSignal;
  /** Waits while the client's buffer is full. False when the stream is over. */
  send(text: string): Promise<boolean>;
  /** Ends the answer in order. */
  end(): void;
}

export interface StreamRegistry {
  /**
   * Takes a place until the answer or its connection ends; throws rate_limited when the key has none left,
   * of the usual number of places or of `max`, whichever is smaller. A client that
   * has gone already takes none: its stream is over from the start.
   */
  open(key: string, response: Response, max?: number): OpenStream;
  /** Ends every open stream with a comment; the waiting ones answer with what there is. */
  drain(): void;
  readonly size: number;
}

interface Entry {
  readonly key: string;
  readonly response: Response;
  readonly abort: AbortController;
  readonly forget: () => void;
}

function isEventStream(response: Response): boolean {
  return (
    response.headersSent &&
    String(response.getHeader('Content-Type')).startsWith('text/event-stream')
  );
}

/** `close` comes once, and not again for those that listen later. */
export function isGone(response: Response): boolean {
  return response.destroyed || response.closed || response.req.socket.destroyed;
}

/** Gives what stops the listening: a connection may outlive its answer. */
function whenGone(response: Response, gone: () => void): () => void {
  const { socket } = response.req;
  response.once('close', gone);
  // An answer that stands behind another one on its connection has no `close` of its own. As many may stand there as
  // the key has places: no leak, whatever their number.
  socket.setMaxListeners(0).once('close', gone);
  return () => void socket.off('close', gone);
}

const OVER: OpenStream = {
  signal: AbortSignal.abort(),
  end: () => undefined,
  send: () => Promise.resolve(false),
};

interface RegistryOptions {
  readonly maxPerKey: number;
  readonly slowClientMs?: number | undefined;
  readonly logger: Logger;
}

export function createStreamRegistry(options: RegistryOptions): StreamRegistry {
  const entries = new Set<Entry>();
  let draining = false;
  let heartbeat: NodeJS.Timeout | undefined;

  const beat = (): void => {
    for (const { response } of entries) {
      if (isEventStream(response) && !response.writableNeedDrain) response.write(':keepalive\n\n');
    }
  };
  const leave = (entry: Entry): void => {
    entry.abort.abort();
    entries.delete(entry);
    entry.forget();
    if (entries.size === 0) {
      clearInterval(heartbeat);
      heartbeat = undefined;
    }
  };
  const enter = (key: string, response: Response): Entry => {
    const forget = whenGone(response, () => leave(entry));
    const entry: Entry = { key, response, abort: new AbortController(), forget };
    entries.add(entry);
    heartbeat ??= setInterval(beat, HEARTBEAT_MS).unref();
    return entry;
  };
  const open = (key: string, response: Response, max = Infinity): OpenStream => {
    if (isGone(response)) return OVER;
    if (draining) throw new HostError('service_unavailable');
    const held = [...entries].reduce((count, entry) => count + (entry.key === key ? 1 : 0), 0);
    const limit = Math.min(options.maxPerKey, max);
    if (held >= limit) throw new HostError('rate_limited', { scope: 'key', limit });
    const entry = enter(key, response);
    const end = (): void => {
      leave(entry);
      if (!response.writableEnded) response.end();
    };
    return {
      signal: entry.abort.signal,
      end,
      send: (text) => sendText(entry, text, options),
    };
  };
  const drain = (): void => {
    draining = true;
    for (const entry of [...entries]) {
      const streams = isEventStream(entry.response);
      if (streams) entry.response.write(':draining, resume with Last-Event-ID\n\n');
      leave(entry);
      if (streams) entry.response.end();
    }
  };
  return {
    open,
    drain,
    get size() {
      return entries.size;
    },
  };
}

async function sendText(
  { response, abort }: Entry,
  text: string,
  { slowClientMs = SLOW_CLIENT_MS, logger }: RegistryOptions,
): Promise<boolean> {
  if (abort.signal.aborted) return false;
  if (response.write(text)) return true;
  const drained = await new Promise<boolean>((resolve) => {
    const settle = (value: boolean): void => {
      clearTimeout(timer);
      response.off('drain', onDrain);
      abort.signal.removeEventListener('abort', onAbort);
      resolve(value);
    };
    const onDrain = (): void => settle(true);
    const onAbort = (): void => settle(false);
    const timer = setTimeout(() => {
      logger.warn('slow client closed', { bufferedBytes: response.writableLength });
      response.destroy();
      settle(false);
    }, slowClientMs);
    response.once('drain', onDrain);
    abort.signal.addEventListener('abort', onAbort, { once: true });
  });
  return drained && !abort.signal.aborted;
}
