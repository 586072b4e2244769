// The HTTP client of all endpoints, and how an address is made.
import type { Agent, fetch as undiciFetch } from 'undici';
import { MODEL_CONNECT_TIMEOUT_MS } from '../limits.ts';

interface Client {
  readonly fetch: typeof undiciFetch;
  readonly dispatcher: Agent;
}

let loaded: Promise<Client> | undefined;

/** Loaded with the first request. The limits of an endpoint hold: the client's own would end the wait for a model that is loaded. */
export function client(): Promise<Client> {
  loaded ??= import('undici').then(({ fetch, Agent }) => ({
    fetch,
    dispatcher: new Agent({
      connect: { timeout: MODEL_CONNECT_TIMEOUT_MS },
      headersTimeout: 0,
      bodyTimeout: 0,
    }),
  }));
  return loaded;
}

/** The path is added to that of the base URL; a query of the base URL stays. */
export function addressOf(baseUrl: string, path: string): URL {
  const url = new URL(baseUrl);
  const [pathname = '', query = ''] = path.split('?');
  url.pathname = url.pathname.replace(/\/$/, '') + pathname;
  for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value);
  return url;
}
