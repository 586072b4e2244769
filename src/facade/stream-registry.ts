// Long answers of this process: one shared heartbeat, limits for each who asks and for all (architecture §10), and an end for
// those of a session that was revoked, and for all of them when the process drains.
import type { Response } from 'express';
import { HostError } from '../rules/errors.ts';
import { principalOf, type Subject } from '../rules/subject.ts';
import type { Logger } from '../ports/logger.ts';
import { Recent } from '../system/recent.ts';
import { nowMs } from '../system/time.ts';

/** Comment lines keep proxies and clients awake; the protocol asks for one at least every 30 s. */
const HEARTBEAT_MS = 15_000;
/** That a limit of all was reached is logged once in this time, in ms. */
const FULL_LINE_MS = 60_000;
/** Principals that are remembered as cut: who was admitted before may open a stream after, which is refused. */
const MAX_CUT = 10_000;
/** A client that takes nothing for this long is closed; it resumes by Last-Event-ID. */
const SLOW_CLIENT_MS = 30_000;

/** How many streams, waiting polls and reads of a whole log may be open at once. */
export interface StreamLimits {
  /** Of one key. */
  readonly perKey: number;
  /** Of one session of pages: enough for the windows of one browser, each with the threads that it follows. */
  readonly perSession: number;
  /** Of all sessions of pages: fewer than `total`, so that places are left for keys. */
  readonly sessions: number;
  /** Of this process: fewer than it has connections, so that other requests find room. */
  readonly total: number;
}

export const STREAM_LIMITS: StreamLimits = {
  ...{ perKey: 1_000, perSession: 40, sessions: 2_000, total: 3_000 },
};

export interface OpenStream {
  /** Aborts when the client goes, is too slow, may read no longer, or the process drains. */
  readonly signal: AbortSignal;
  /** Waits while the client's buffer is full. False when the stream is over. */
  send(text: string): Promise<boolean>;
  /** Ends the answer in order. */
  end(): void;
}

export interface StreamRegistry {
  /**
   * Takes a place until the answer or its connection ends. Throws rate_limited: this key or session has none left (`key`),
   * or all sessions or this process have none (`global`); unauthenticated for who was cut, and service_unavailable
   * while the process drains. A client that has gone already takes none: its stream is over from the start.
   */
  open(subject: Subject, response: Response): OpenStream;
  /** Destroys what these principals have open: none of it ends like a whole answer. They open nothing more. */
  cut(principals: ReadonlySet<string>): void;
  /**
   * Ends every open stream with a comment; waiting polls answer with what there is. A log that is sent as JSON goes on, as
   * long as the server waits for it.
   */
  drain(): void;
  readonly size: number;
}

interface Entry {
  readonly subject: Subject;
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

function isOfPages({ lane }: Subject): boolean {
  return lane === 'session';
}

/** Its content type is set when it begins. A waiting poll has none yet. */
function isLogAsJson(response: Response): boolean {
  return String(response.getHeader('Content-Type')).startsWith('application/json');
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
  // who asks has places: no leak, whatever their number.
  socket.setMaxListeners(0).once('close', gone);
  return () => void socket.off('close', gone);
}

const OVER: OpenStream = {
  signal: AbortSignal.abort(),
  end: () => undefined,
  send: () => Promise.resolve(false),
};

interface RegistryOptions {
  readonly limits?: Partial<StreamLimits> | undefined;
  readonly slowClientMs?: number | undefined;
  readonly logger: Logger;
}

export function createStreamRegistry(options: RegistryOptions): StreamRegistry {
  const entries = new Set<Entry>();
  const checkPlace = createLimits(options, entries);
  const wereCut = new Recent<string, true>(MAX_CUT);
  let draining = false;
  let heartbeat: NodeJS.Timeout | undefined;

  const leave = (entry: Entry): void => {
    entry.abort.abort();
    entries.delete(entry);
    entry.forget();
    if (entries.size === 0) {
      clearInterval(heartbeat);
      heartbeat = undefined;
    }
  };
  const enter = (subject: Subject, response: Response): Entry => {
    checkPlace(subject);
    const forget = whenGone(response, () => leave(entry));
    const entry: Entry = { subject, response, abort: new AbortController(), forget };
    entries.add(entry);
    heartbeat ??= setInterval(() => beat(entries), HEARTBEAT_MS).unref();
    return entry;
  };
  const open = (subject: Subject, response: Response): OpenStream => {
    if (isGone(response)) return OVER;
    if (draining) throw new HostError('service_unavailable');
    // Admitted before it was revoked.
    if (wereCut.has(principalOf(subject))) throw new HostError('unauthenticated');
    const entry = enter(subject, response);
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
  const cut = (principals: ReadonlySet<string>): void => {
    for (const principal of principals) wereCut.set(principal, true);
    for (const entry of [...entries]) {
      if (!principals.has(principalOf(entry.subject))) continue;
      leave(entry);
      entry.response.destroy();
    }
  };
  const drain = (): void => {
    draining = true;
    for (const entry of [...entries]) {
      if (isLogAsJson(entry.response)) continue;
      const streams = isEventStream(entry.response);
      if (streams) entry.response.write(':draining, resume with Last-Event-ID\n\n');
      leave(entry);
      if (streams) entry.response.end();
    }
  };
  return {
    open,
    cut,
    drain,
    get size() {
      return entries.size;
    },
  };
}

function beat(entries: Iterable<Entry>): void {
  for (const { response } of entries)
    if (isEventStream(response) && !response.writableNeedDrain) response.write(':keepalive\n\n');
}

/** Throws rate_limited where no place is free. */
function createLimits(
  { limits, logger }: RegistryOptions,
  entries: ReadonlySet<Entry>,
): (subject: Subject) => void {
  const { perKey, perSession, sessions, total } = { ...STREAM_LIMITS, ...limits };
  const quietUntilMs = new Map<string, number>();
  const countOf = (isCounted: (subject: Subject) => boolean): number =>
    [...entries].reduce((count, entry) => count + (isCounted(entry.subject) ? 1 : 0), 0);
  const refuse = (of: 'sessions' | 'total', limit: number): never => {
    if (nowMs() >= (quietUntilMs.get(of) ?? 0)) {
      quietUntilMs.set(of, nowMs() + FULL_LINE_MS);
      logger.warn('a stream was refused: there are as many as there may be', { [of]: limit });
    }
    throw new HostError('rate_limited', { scope: 'global', limit });
  };
  return (subject) => {
    const principal = principalOf(subject);
    const limit = isOfPages(subject) ? perSession : perKey;
    if (countOf((held) => principalOf(held) === principal) >= limit)
      throw new HostError('rate_limited', { scope: 'key', limit });
    if (isOfPages(subject) && countOf(isOfPages) >= sessions) refuse('sessions', sessions);
    if (entries.size >= total) refuse('total', total);
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
