// The host by its HTTP API: asks, and turns what goes wrong into one sentence that says what to do.

/** Time in ms that the host may take for one answer. */
const REQUEST_LIMIT_MS = 10_000;
const BASE = '/v1/host/openwop-temporal/opensentience';

export interface HostAddress {
  /** Base of the API. */
  readonly url: string;
  /** Absent: asked without one, so that the host says that it wants one. */
  readonly apiKey?: string;
}

/** What a person can act upon: its message is the whole of what is printed. */
export class CliFault extends Error {
  override readonly name = 'CliFault';
  /** The host's code, where it said one. */
  readonly code: string | undefined;

  constructor(message: string, options: { code?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = options.code;
  }
}

interface Envelope {
  readonly error: string;
  readonly message: string;
  readonly details?: { readonly reason?: unknown };
}

export interface HostClient {
  /** `path` below the host's OpenSentience addresses. Throws CliFault. */
  get<Answer>(path: string): Promise<Answer>;
  post<Answer>(path: string): Promise<Answer>;
}

export function createHostClient(address: HostAddress): HostClient {
  return {
    get: <Answer>(path: string) => ask<Answer>(address, 'GET', path),
    post: <Answer>(path: string) => ask<Answer>(address, 'POST', path),
  };
}

async function ask<Answer>(address: HostAddress, method: string, path: string): Promise<Answer> {
  const { status, text } = await exchange(address, method, path);
  const body = parsed(text);
  if (status < 300 && body !== undefined) return body as Answer;
  throw faultOf(address, status, body);
}

async function exchange(
  { url, apiKey }: HostAddress,
  method: string,
  path: string,
): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(`${url.replace(/\/+$/, '')}${BASE}${path}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      // The key goes to the host that was named, and nowhere that it points to.
      redirect: 'manual',
      signal: AbortSignal.timeout(REQUEST_LIMIT_MS),
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    throw new CliFault(unreachable(url, error), { cause: error });
  }
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
  const { error: code, message, details } = (body ?? {}) as Partial<Envelope>;
  if (typeof code !== 'string' || typeof message !== 'string')
    return new CliFault(`What answers at ${url} is no OpenWOP host (status ${status}).`);
  if (code === 'unauthenticated') {
    const tried = apiKey === undefined ? 'There is no API key' : 'The host refuses the API key';
    return new CliFault(
      `${tried}. Set OPENWOP_API_KEY, or OPENWOP_DATA_DIR to the data folder of the host, which keeps its key.`,
      { code },
    );
  }
  if (code === 'not_found')
    return new CliFault(
      'This host takes no agents as processes. Set OPENWOP_OPENSENTIENCE_DIR where it runs and start it anew.',
      { code },
    );
  const reason = typeof details?.reason === 'string' ? ` ${details.reason}` : '';
  return new CliFault(`${message}${reason} (${code}, status ${status})`, { code });
}
