// How a request to a model endpoint fails, by class (src/rules/errors.ts), and what is said of it to the person who must
// mend it: status, and the endpoint's own words.
import { HostError } from '../../../rules/errors.ts';
import { MAX_RETRY_AFTER_MS } from '../limits.ts';
import type { Head, Words } from './refusal-words.ts';

export interface RefusalParts {
  /** HTTP's, or what an error without one stands for. */
  readonly status: number;
  readonly words: Words;
  /** Absent for an error within an answer. */
  readonly headers?: Head;
}

/** An endpoint refused a request, or said that it failed. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly parts: RefusalParts;

  constructor(parts: RefusalParts) {
    super(parts.words.text);
    this.parts = parts;
  }
}

export function lostConnection(cause?: unknown, reason = lostWords(cause)): HostError {
  return new HostError('model_unavailable', { reason }, cause);
}

/** The system's names of what happened before there was a connection. */
const NEVER_MADE =
  /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_\w+|ERR_SSL_\w+|\w*CERT\w*|EPROTO)$/;
const SYSTEM_NAME = /^[A-Z][A-Z0-9_]{2,63}$/;

function lostWords(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } };
  const names = [cause?.code, code].filter((it): it is string => typeof it === 'string');
  const name = names.find((it) => SYSTEM_NAME.test(it));
  const what = NEVER_MADE.test(name ?? '') ? 'could not be made' : 'was lost';
  const why = name === undefined ? '' : ` (${name})`;
  return `The connection to the model provider ${what}${why}.`;
}

/** Limits that waiting does not lift. */
const EMPTY_ACCOUNT = /^(insufficient_quota|insufficient_balance|billing_hard_limit_reached)$/;

/** What the failure of a request is to whoever asked; an error of our own stays as it is. */
export function hostErrorOf(error: unknown): unknown {
  return error instanceof Refusal ? faultOf(error.parts) : error;
}

function faultOf({ status, words, headers }: RefusalParts): HostError {
  const { code, type } = words;
  const providerCode = code ?? type;
  const details = { status, ...(providerCode === undefined ? {} : { providerCode }) };
  const waitMs = retryAfterMs(headers);
  if (status === 429 && !EMPTY_ACCOUNT.test(code ?? type ?? '')) {
    const reason = refusalMessage(`The model provider limits requests (HTTP ${status})`, words);
    return new HostError('rate_limited', { ...details, retryAfterMs: waitMs, reason });
  }
  // What an endpoint does not implement it will not implement either when it is asked again.
  if ((status >= 500 && status !== 501) || status === 408 || status === 409) {
    const wait = waitMs > 0 ? { retryAfterMs: waitMs } : {};
    const reason = refusalMessage(`The model provider failed with HTTP ${status}`, words);
    return new HostError('model_unavailable', { ...details, ...wait, reason });
  }
  const reason = refusalMessage(
    `The model provider rejected the request with HTTP ${status}`,
    words,
  );
  return new HostError('model_rejected_request', { ...details, reason });
}

/** The sentence with the names and the words that the endpoint has for it. */
function refusalMessage(what: string, { text, code, type, param, requestId }: Words): string {
  const names = [
    ...(code === undefined ? [] : [`code ${code}`]),
    ...(type === undefined ? [] : [`type ${type}`]),
    ...(param === undefined ? [] : [`parameter ${param}`]),
    ...(requestId === undefined ? [] : [`request ${requestId}`]),
  ];
  const about = names.length === 0 ? '' : ` (${names.join(', ')})`;
  return text === '' ? `${what}${about}.` : `${what}: ${quoted(text)}${about}`;
}

/** Words that are not ours. */
export function quoted(text: string): string {
  return `"${text}"`;
}

/** In ms by `retry-after-ms`, else by Retry-After in seconds or as a date; 0 when absent, at most MAX_RETRY_AFTER_MS. */
function retryAfterMs(headers: Head | undefined): number {
  const exact = numberIn(headers?.get('retry-after-ms'));
  const value = headers?.get('retry-after');
  const seconds = numberIn(value);
  const ms =
    exact ?? (seconds === undefined ? Date.parse(value ?? '') - Date.now() : seconds * 1000);
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) : 0;
}

/** Of a header that may be there twice. */
function numberIn(value: string | null | undefined): number | undefined {
  const number = /^\s*(\d+(?:\.\d+)?)\s*(?:,|$)/.exec(value ?? '')?.[1];
  return number === undefined ? undefined : Number(number);
}
