// How a provider fails, by class. What it says is never repeated, because it may repeat the key: status and code alone
// go on.
import { HostError } from '../../rules/errors.ts';
import { MAX_RETRY_AFTER_MS } from './limits.ts';

export interface ProviderAnswer {
  readonly status: number;
  /** The provider's own name of the fault. */
  readonly providerCode?: string;
  readonly headers?: Headers;
}

export function lostConnection(cause?: unknown): HostError {
  return new HostError(
    'model_unavailable',
    { reason: 'The connection to the model provider was lost.' },
    cause,
  );
}

/** `mayRetry: false` for a limit that waiting does not lift, as an empty account. */
export function faultOf(answer: ProviderAnswer, mayRetry = true): HostError {
  const { status, providerCode, headers } = answer;
  const details = { status, ...(providerCode === undefined ? {} : { providerCode }) };
  const waitMs = retryAfterMs(headers);
  if (status === 429 && mayRetry)
    return new HostError('rate_limited', { ...details, retryAfterMs: waitMs });
  // What an endpoint does not implement it will not implement either when it is asked again.
  if ((status >= 500 && status !== 501) || status === 408 || status === 409) {
    const wait = waitMs > 0 ? { retryAfterMs: waitMs } : {};
    return new HostError('model_unavailable', { ...details, ...wait });
  }
  return new HostError('model_rejected_request', {
    ...details,
    reason: `The model provider rejected the request with HTTP ${status}.`,
  });
}

/** Retry-After in seconds or as a date, in ms; 0 when absent, at most MAX_RETRY_AFTER_MS. */
function retryAfterMs(headers: Headers | undefined): number {
  const value = headers?.get('retry-after');
  if (!value) return 0;
  const seconds = Number(value);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) : 0;
}
