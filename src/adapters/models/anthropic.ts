// Anthropic's Messages API: streamed messages with tools and thinking.
import type { EndpointState, Model, ModelRequest, ModelResponse } from '../../ports/models.ts';
import { AnthropicReading } from './anthropic-reading.ts';
import { DEFAULT_ANTHROPIC_MAX_TOKENS, messagesBody, type Thinking } from './anthropic-request.ts';
import { Endpoint, type EndpointLimits } from './endpoint/endpoint.ts';
import { hostErrorOf, Refusal } from './endpoint/refusal.ts';
import { listedModels, stateAfter } from './model-list.ts';

export interface AnthropicConfig extends EndpointLimits {
  /** Absent: the endpoint asks for none, and no header with a key is sent. */
  readonly apiKey?: string;
  /** Absent: the provider's own address. Without `/v1`. */
  readonly baseUrl?: string;
  /** Absent: adaptive where the model takes that, else off. */
  readonly thinking?: Thinking;
  /** Tokens of an answer without its thinking; DEFAULT_ANTHROPIC_MAX_TOKENS when absent. */
  readonly maxTokens?: number;
}

const ANTHROPIC_URL = 'https://api.anthropic.com';
const API_VERSION = '2026-10-21';
/** Most models that the API lists on one page. */
const LISTED_MODELS = 1000;

export function createAnthropicModel(config: AnthropicConfig): Model {
  const endpoint = endpointOf(config);
  /** Models that refused to think adaptively and then answered: no more than the provider has. */
  const withoutThinking = new Set<string>();
  return {
    // The API has no such parameter since version 2026-10-21, and would refuse the request.
    untaken: ['temperature'],
    infer: async (request, options) => {
      const { model } = request;
      const { thinking = withoutThinking.has(model) ? 'off' : 'adaptive', maxTokens } = config;
      const call = { endpoint, request, options, maxTokens };
      try {
        return await ask(call, { thinking });
      } catch (error) {
        // Which models take it is in no error code: whether it was that, the same request without it says.
        const maybeThinking = config.thinking === undefined && thinking === 'adaptive';
        if (!maybeThinking || !isBadRequest(error)) throw hostErrorOf(error);
        const onBegin = () => void withoutThinking.add(model);
        return await ask(call, { thinking: 'off', onBegin }).catch((again: unknown) => {
          throw hostErrorOf(again);
        });
      }
    },
  };
}

interface Call {
  readonly endpoint: Endpoint;
  readonly request: ModelRequest;
  readonly options: Parameters<Model['infer']>[1];
  readonly maxTokens: number | undefined;
}

/**
 * One request. With `onBegin`, which is called when it is answered, it is the one that is asked again without thinking, under a
 * key of its own.
 */
async function ask(
  { endpoint, request, options, maxTokens = DEFAULT_ANTHROPIC_MAX_TOKENS }: Call,
  { thinking, onBegin }: { readonly thinking: Thinking; readonly onBegin?: () => void },
): Promise<ModelResponse> {
  const { idempotencyKey } = request;
  const reading = new AnthropicReading(request, options);
  const question = {
    path: '/v1/messages',
    body: messagesBody(request, { thinking, maxTokens }),
    // The API knows none; gateways in front of it may.
    headers: { 'Idempotency-Key': onBegin ? `${idempotencyKey}-off` : idempotencyKey },
    signal: options.signal,
  };
  let isBegun = false;
  try {
    await endpoint.ask(question, (event) => {
      if (!isBegun) onBegin?.();
      isBegun = true;
      return reading.take(event);
    });
  } catch (error) {
    throw isBegun ? hostErrorOf(error) : error;
  }
  return reading.response();
}

/** What fails after its first event is no Refusal any more. */
function isBadRequest(error: unknown): boolean {
  return error instanceof Refusal && error.parts.status === 400;
}

function endpointOf({ apiKey, baseUrl = ANTHROPIC_URL, ...limits }: AnthropicConfig): Endpoint {
  // The API takes either header; gateways often know one alone.
  const key: Record<string, string> =
    apiKey === undefined ? {} : { 'X-Api-Key': apiKey, Authorization: `Bearer ${apiKey}` };
  const headers = { 'Anthropic-Version': API_VERSION, ...key };
  return new Endpoint({ ...limits, baseUrl, headers, apiKey });
}

/** Whether the API answers, by its list of models: no tokens are spent. `models` are looked for in it. */
export async function checkAnthropic(
  config: AnthropicConfig,
  models: readonly string[],
  signal: AbortSignal,
): Promise<EndpointState> {
  try {
    const body = await endpointOf(config).get(`/v1/models?limit=${LISTED_MODELS}`, signal);
    const listed = listedModels(body);
    const isWhole = (body as { has_more?: unknown } | null)?.has_more !== true;
    const missing = models.filter((model) => !listed.some((id) => isNamed(id, model)));
    return { kind: 'answers', count: listed.length, missing: isWhole ? missing : [] };
  } catch (error) {
    return stateAfter(error);
  }
}

/** The list has models by their full names; the API takes them without the date too. */
function isNamed(id: string, model: string): boolean {
  return id === model || id.replace(/-\d{8}$/, '') === model;
}
