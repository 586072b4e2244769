// Anthropic's Messages API: streamed messages with tools and thinking. Retries belong to Temporal, so the client makes
// none; a cancelled call closes its socket.
import Anthropic from '@anthropic-ai/sdk';
import { codeOf } from '../../rules/errors.ts';
import type { EndpointState, Model, ModelRequest } from '../../ports/models.ts';
import { AnthropicReading } from './anthropic-reading.ts';
import { DEFAULT_ANTHROPIC_MAX_TOKENS, messagesBody, type Thinking } from './anthropic-request.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { MODEL_CONNECT_TIMEOUT_MS, MODEL_STALL_TIMEOUT_MS } from './limits.ts';
import { listedModels } from './model-list.ts';
import { faultOf, lostConnection } from './provider-faults.ts';
import { StallTimer } from './stall-timer.ts';

export interface AnthropicConfig {
  /** Absent: the endpoint asks for none, and no header with a key is sent. */
  readonly apiKey?: string;
  /** Absent: the provider's own address. Without `/v1`. */
  readonly baseUrl?: string;
  /** Absent: adaptive where the model takes that, else off. */
  readonly thinking?: Thinking;
  /** Tokens of an answer without its thinking; DEFAULT_ANTHROPIC_MAX_TOKENS when absent. */
  readonly maxTokens?: number;
  /** For tests; MODEL_STALL_TIMEOUT_MS when absent. */
  readonly stallTimeoutMs?: number;
}

const BAD_REQUEST = 400;
/** Most models that the API lists on one page. */
const LISTED_MODELS = 1000;

export function createAnthropicModel(config: AnthropicConfig): Model {
  /** Models that refused to think adaptively and then answered: no more than the provider has. */
  const withoutThinking = new Set<string>();

  const thinkingOf = ({ model }: ModelRequest): Thinking =>
    config.thinking ?? (withoutThinking.has(model) ? 'off' : 'adaptive');

  const open = async (client: Anthropic, request: ModelRequest, signal: AbortSignal) => {
    const { maxTokens = DEFAULT_ANTHROPIC_MAX_TOKENS } = config;
    const ask = (thinking: Thinking, idempotencyKey = request.idempotencyKey) =>
      client.messages.create(messagesBody(request, { thinking, maxTokens }), {
        signal,
        // The API knows none; gateways in front of it may.
        headers: { 'Idempotency-Key': idempotencyKey },
      });
    const thinking = thinkingOf(request);
    try {
      return await ask(thinking);
    } catch (error) {
      // Which models take it is in no error code: whether it was that, the same request without it tells.
      const maybeThinking = config.thinking === undefined && thinking === 'adaptive';
      if (!maybeThinking || statusOf(error) !== BAD_REQUEST) throw error;
      const stream = await ask('off', `${request.idempotencyKey}-off`);
      withoutThinking.add(request.model);
      return stream;
    }
  };

  return {
    // The API has no such parameter since version 2026-10-21, and would refuse the request.
    untaken: ['temperature'],
    infer: async (request, options) => {
      const stall = new StallTimer(config.stallTimeoutMs ?? MODEL_STALL_TIMEOUT_MS);
      const signal = AbortSignal.any([options.signal, stall.signal]);
      try {
        // The client keeps pings to itself, and they are signs of life: a model may think for long without a word.
        const stream = await open(
          clientOf(config, () => stall.restart()),
          request,
          signal,
        );
        const reading = new AnthropicReading(request, options);
        stall.restart();
        for await (const event of stream) reading.take(event);
        // An aborted stream ends like a finished one.
        signal.throwIfAborted();
        return reading.response();
      } catch (error) {
        options.signal.throwIfAborted();
        throw hostErrorOf(error);
      } finally {
        stall.stop();
      }
    },
  };
}

/** Every option that the client would otherwise take from the environment is named. */
function clientOf({ apiKey, baseUrl }: AnthropicConfig, onBytes?: () => void): Anthropic {
  return new Anthropic({
    // The client insists on one; without one of our own its header is left out.
    apiKey: apiKey ?? 'none',
    baseURL: baseUrl ?? null,
    webhookKey: null,
    // The API takes either header; gateways often know the older one alone.
    defaultHeaders: apiKey === undefined ? { Authorization: null } : { 'X-Api-Key': apiKey },
    maxRetries: 0,
    timeout: MODEL_CONNECT_TIMEOUT_MS,
    fetch: (url, init) => boundedFetch(url, init, onBytes),
    logLevel: 'off',
    openTelemetry: false,
  });
}

/** Types of errors that the API documents, as it sends them within a stream, where there is no status. */
const STATUS_BY_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: BAD_REQUEST,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  conflict_error: 409,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

function statusOf(error: unknown): number | undefined {
  return error instanceof Anthropic.APIError ? (error.status as number | undefined) : undefined;
}

function hostErrorOf(error: unknown): unknown {
  if (codeOf(error) !== undefined) return error;
  if (!(error instanceof Anthropic.APIError)) return lostConnection(error);
  const type = error.type ?? '';
  const known = Object.hasOwn(STATUS_BY_TYPE, type);
  const status = statusOf(error) ?? (known ? STATUS_BY_TYPE[type] : undefined);
  if (status === undefined) return lostConnection(error);
  return faultOf({
    status,
    headers: error.headers as Headers | undefined,
    ...(known ? { providerCode: type } : {}),
  });
}

/** Whether the API answers, by its list of models: no tokens are spent. `models` are looked for in it. */
export async function checkAnthropic(
  config: AnthropicConfig,
  models: readonly string[],
  signal: AbortSignal,
): Promise<EndpointState> {
  try {
    const query = { limit: LISTED_MODELS };
    const body: unknown = await clientOf(config).get('/v1/models', { query, signal });
    const listed = listedModels(body);
    const isWhole = (body as { has_more?: unknown } | null)?.has_more !== true;
    const missing = models.filter((model) => !listed.some((id) => isNamed(id, model)));
    return { kind: 'answers', count: listed.length, missing: isWhole ? missing : [] };
  } catch (error) {
    const status = statusOf(error);
    return status === undefined ? { kind: 'silent' } : { kind: 'refuses', status };
  }
}

/** The list has models by their full names; the API takes them without the date too. */
function isNamed(id: string, model: string): boolean {
  return id === model || id.replace(/-\d{8}$/, '') === model;
}
