// What goes wrong at an OpenAI-compatible endpoint, by its class (src/rules/errors.ts). Messages of providers may repeat
// the key: of what they say only status and code go on.
import OpenAI from 'openai';
import { HostError } from '../../rules/errors.ts';
import { isJsonObject } from '../../rules/json.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { faultOf, lostConnection } from './provider-faults.ts';

/** Statuses that a way of asking for the decision may be the cause of. */
const MODE_STATUSES: ReadonlySet<unknown> = new Set([400, 404, 422, 501]);
/** Codes that have another cause than the way of asking, whatever their status. */
const OTHER_CAUSES = /^(model_not_found|context_length_exceeded|content_\w+|invalid_api_key)$/;
/** A code and no sentence: it may go on. */
const CODE = /^[A-Za-z0-9_.-]{1,64}$/;

/** `boundedFetch` that sees a failure that came with the status of a success: some gateways answer 200 and an error. */
export async function honestFetch(
  url: string | URL | Request,
  init?: RequestInit,
  onBytes?: () => void,
): Promise<Response> {
  const response = await boundedFetch(url, init, onBytes);
  const isJson = response.headers.get('content-type')?.includes('application/json') ?? false;
  if (!response.ok || !isJson) return response;
  const text = await response.text();
  const { headers } = response;
  const error = errorIn(text);
  return new Response(text, { headers, status: error === undefined ? 200 : statusOf(error) });
}

function errorIn(text: string): unknown {
  try {
    const body = JSON.parse(text) as unknown;
    return isJsonObject(body) ? (body.error ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

/** The status that an error without one stands for; what is not known may pass, and is tried again. */
function statusOf(error: unknown): number {
  const { code, status, type } = isJsonObject(error) ? error : {};
  for (const given of [status, code]) {
    if (typeof given === 'number' && Number.isInteger(given) && given >= 400 && given < 600)
      return given;
  }
  const kinds = [code, type].filter((kind) => typeof kind === 'string').join(' ');
  if (/rate_limit|too_many_requests|insufficient_quota/.test(kinds)) return 429;
  if (/invalid_api_key|authentication/.test(kinds)) return 401;
  if (/permission/.test(kinds)) return 403;
  if (/not_found/.test(kinds)) return 404;
  return /invalid|context_length|content_/.test(kinds) ? 400 : 503;
}

/** What the failure of a call is to the caller; an error of our own stays as it is. */
export function hostErrorOf(error: unknown): unknown {
  if (error instanceof HostError) return error;
  if (!(error instanceof OpenAI.APIError)) return lostConnection(error);
  const status = (error.status as number | undefined) ?? statusOfEvent(error.error);
  if (status === undefined) return lostConnection(error);
  const code = typeof error.code === 'string' ? error.code : '';
  const headers = error.headers as Headers | undefined;
  const answer = { status, headers, ...(CODE.test(code) ? { providerCode: code } : {}) };
  return faultOf(answer, code !== 'insufficient_quota');
}

/** A failure that came as an event of the stream has an error and no status. */
function statusOfEvent(error: unknown): number | undefined {
  return error === undefined ? undefined : statusOf(error);
}

/** Whether another way of asking for the decision may help. */
export function mayBeOfMode(error: unknown): boolean {
  if (!(error instanceof OpenAI.APIError)) return false;
  return MODE_STATUSES.has(error.status) && !OTHER_CAUSES.test(error.code ?? '');
}

/** Whether the endpoint says, refusing, that it takes no tools. What it says goes nowhere. */
export function refusesTools(error: unknown): boolean {
  if (!(error instanceof OpenAI.APIError)) return false;
  const told = error.message;
  // A schema that it does not like is another fault, though it names the function.
  if (!/\b(tools?|tool_choice|functions?)\b/i.test(told) || /schema/i.test(told)) return false;
  return /support|unavailable|allow|permit|enable|implement|unknown|unrecognized/i.test(told);
}
