// The host by its HTTP API: asks, and turns what goes wrong into words that say what to do. What changes something has a
// key, so that it can be sent again when its answer is lost (idempotency.md).
import { abortAfter, BackOff, rest } from '../system/time.ts';
import { printable } from '../words/printable.js';
import { CliFault, EXIT } from './faults.ts';

/** Time in ms that the host may take for one answer. */
const REQUEST_LIMIT_MS = 10_000;
/** Longest answer in bytes, far above what a host gives at once: nothing fills this process's memory. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;
/** A message whose answer is lost, or for which the host is not ready, is sent again this many times. */
const SENT_AGAIN = 4;
const AGAIN_FIRST_MS = 250;
const AGAIN_LONGEST_MS = 2_000;
/** Refusals that pass. */
const PASSING: ReadonlySet<string> = new Set(['service_unavailable', 'idempotency_in_flight']);

export interface HostAddress {
  /** Base of the API. */
  readonly url: string;
  /** Absent: asked without one, so that the host says that it wants one. */
  readonly apiKey?: string;
}

interface Envelope {
  readonly error: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface Sent {
  readonly body?: unknown;
  /** Given: sent again with the same key where the answer is lost. */
  readonly idempotencyKey?: string;
  /** Time in ms that the host may take; REQUEST_LIMIT_MS when absent. */
  readonly limitMs?: number;
}

/** All throw CliFault. Paths are below the host's address, or below what the client was made for. */
export interface HostClient {
  get<Answer>(path: string, limitMs?: number): Promise<Answer>;
  post<Answer>(path: string, sent?: Sent): Promise<Answer>;
  /** The body of server-sent events, as it comes, after the sequence where one is given. */
  events(path: string, after?: number): Promise<ReadableStream<Uint8Array>>;
}

interface Client extends HostAddress {
  readonly signal: AbortSignal;
}

interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly limitMs?: number;
}

/** The signal is Ctrl-C: what is under way then ends with the code `interrupted`. */
export function createHostClient(address: HostAddress, signal: AbortSignal): HostClient {
  const client = { ...address, signal };
  return {
    get: <Answer>(path: string, limitMs?: number) =>
      ask<Answer>(client, { method: 'GET', path, limitMs }),
    post: <Answer>(path: string, sent: Sent = {}) => send<Answer>(client, path, sent),
    events: (path, after) => openEvents(client, path, after),
  };
}

async function send<Answer>(client: Client, path: string, sent: Sent): Promise<Answer> {
  const { body, idempotencyKey, limitMs } = sent;
  const request: Request = {
    method: 'POST',
    ...{ path, limitMs },
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  const pauses = new BackOff(AGAIN_FIRST_MS, AGAIN_LONGEST_MS);
  for (let again = 0; ; again++) {
    try {
      return await ask<Answer>(client, request);
    } catch (error) {
      const passes = error instanceof CliFault && (error.facts.isLost || PASSING.has(error.code));
      if (idempotencyKey === undefined || !passes || again >= SENT_AGAIN) throw error;
      await rest(pauses.next(), client.signal);
    }
  }
}

async function ask<Answer>(client: Client, request: Request): Promise<Answer> {
  const limit = answerLimit(request.limitMs);
  const { response, text } = await exchange(client, request, limit.signal).finally(limit.clear);
  const body = parsed(text);
  if (response.status < 300 && body !== undefined) return body as Answer;
  throw faultOf(client, response.status, body);
}

function answerLimit(limitMs = REQUEST_LIMIT_MS) {
  return abortAfter(limitMs, new DOMException('no answer', 'TimeoutError'));
}

async function exchange(client: Client, request: Request, limit: AbortSignal) {
  try {
    const response = await fetched(client, request, limit);
    return { response, text: await textOf(client, response) };
  } catch (error) {
    if (error instanceof CliFault) throw error;
    throw lost(client, error);
  }
}

async function textOf({ url }: Client, { body, status }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = '';
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.byteLength;
    if (bytes > MAX_ANSWER_BYTES) throw noHost(url, status);
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

function fetched(client: Client, request: Request, limit: AbortSignal): Promise<Response> {
  const { url, apiKey, signal } = client;
  const { method, path, headers, body } = request;
  return fetch(`${url.replace(/\/+$/, '')}${path}`, {
    method,
    headers: {
      accept: 'application/json',
      ...headers,
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body,
    // The key goes to the host that was named, and nowhere that it points to.
    redirect: 'manual',
    signal: AbortSignal.any([limit, signal]),
  });
}

async function openEvents(
  client: Client,
  path: string,
  after: number | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const headers = {
    accept: 'text/event-stream',
    ...(after === undefined ? {} : { 'last-event-id': String(after) }),
  };
  const limit = answerLimit();
  try {
    const request = { method: 'GET', path, headers } as const;
    const response = await fetched(client, request, limit.signal).catch((error: unknown) => {
      throw lost(client, error);
    });
    if (isStream(response)) return response.body;
    // What is no stream has to end within the limit: its status tells, whatever becomes of its words.
    const text = await textOf(client, response).catch(() => '');
    throw faultOf(client, response.status, parsed(text));
  } finally {
    limit.clear();
  }
}

function isStream(
  response: Response,
): response is Response & { readonly body: NonNullable<Response['body']> } {
  const type = response.headers.get('content-type');
  return (
    response.status === 200 && type?.startsWith('text/event-stream') === true && !!response.body
  );
}

export function interrupted(cause?: unknown): CliFault {
  return new CliFault('Stopped.', { code: 'interrupted', exitCode: EXIT.interrupted, cause });
}

function lost({ url, signal }: Client, error: unknown): CliFault {
  if (signal.aborted) return interrupted(error);
  return new CliFault(unreachable(url, error), {
    ...{ code: 'host_unreachable', isLost: true, cause: error },
  });
}

function unreachable(url: string, error: unknown): string {
  const { name, cause } = error as { name?: string; cause?: { code?: string } };
  if (name === 'TimeoutError')
    return `The host at ${url} did not answer within ${REQUEST_LIMIT_MS / 1000} s.`;
  if (cause?.code === 'ECONNREFUSED')
    return `No host answers at ${url}. Start it with \`npm start\`, or set OPENWOP_URL to where it is.`;
  return `The host at ${url} cannot be reached${cause?.code ? ` (${cause.code})` : ''}.`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // No JSON: not what a host of ours says.
    return undefined;
  }
}

function faultOf({ url, apiKey }: HostAddress, status: number, body: unknown): CliFault {
  const { error: code, message, details = {} } = (body ?? {}) as Partial<Envelope>;
  if (typeof code !== 'string' || typeof message !== 'string') return noHost(url, status);
  const facts = { code, status, details };
  if (code === 'unauthenticated') {
    const tried = apiKey === undefined ? 'There is no API key' : 'The host refuses the API key';
    return new CliFault(
      `${tried}. Set OPENWOP_API_KEY, or OPENWOP_DATA_DIR to the data folder of the host, which keeps its key.`,
      facts,
    );
  }
  if (code === 'not_found' && details.expiredAt === undefined)
    return new CliFault(`The host at ${url} does not know this: it may be an older one.`, facts);
  return new CliFault(refusalWords({ error: code, message, details }, status), facts);
}

function noHost(url: string, status: number): CliFault {
  return new CliFault(`What answers at ${url} is no OpenWOP host (status ${status}).`, {
    ...{ code: 'not_a_host', status },
    // A proxy's word while its host is away.
    ...(status >= 502 && status <= 504 ? { isLost: true } : {}),
  });
}

/** One fault in one line; several with their places (JSON pointers) in a line each. */
function refusalWords({ error, message, details = {} }: Envelope, status: number): string {
  const told = `(${printable(error)}, status ${status})`;
  const several = faultsIn(details.errors);
  if (several.length > 1)
    return [`${printable(message)} ${told}`, ...several.map((line) => `  ${line}`)].join('\n');
  const words = ['field', 'reason'].map((name) => details[name]);
  const shown = words.filter((word): word is string => typeof word === 'string' && word !== '');
  return [message, ...shown].map(printable).concat(told).join(' ');
}

function faultsIn(errors: unknown): readonly string[] {
  if (!Array.isArray(errors)) return [];
  return errors.map((one: { pointer?: unknown; message?: unknown }) =>
    [one.pointer, one.message]
      .filter((part) => typeof part === 'string')
      .map(printable)
      .join(' '),
  );
}
