// Any OpenAI-compatible endpoint: streamed chat completions with tools and structured output. Retries belong to
// Temporal, so the client makes none; a cancelled call closes its socket.
import OpenAI from 'openai';
import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import { HostError } from '../../rules/errors.ts';
import { utf8Length, type JsonValue } from '../../rules/json.ts';
import { MODEL_OUTPUT_BYTES } from '../../rules/limits.ts';
import { BYTES_PER_TOKEN, estimateTokens } from '../../rules/tokens.ts';
import type { Model, ModelRequest, ModelResponse, TranscriptItem } from '../../ports/models.ts';
import { MAX_RETRY_AFTER_MS, MODEL_CONNECT_TIMEOUT_MS, MODEL_STALL_TIMEOUT_MS } from './limits.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { OutputSplitter } from './output-splitter.ts';
import { functionNameOf, toolIdOf } from './tool-names.ts';

export interface OpenAiConfig {
  /** Absent: the endpoint asks for none, and no Authorization header is sent. */
  readonly apiKey?: string;
  /** Absent: the provider's own address. */
  readonly baseUrl?: string;
  /** `json_object` or `none` for endpoints that do not know JSON Schema output. */
  readonly structuredOutput?: 'json_schema' | 'json_object' | 'none';
  /** For tests; MODEL_STALL_TIMEOUT_MS when absent. */
  readonly stallTimeoutMs?: number;
}

type Options = Parameters<Model['infer']>[1];

export function createOpenAiModel(config: OpenAiConfig): Model {
  const client = new OpenAI({
    // The client insists on one; without one of our own its header is left out.
    apiKey: config.apiKey ?? 'none',
    ...(config.apiKey === undefined ? { defaultHeaders: { Authorization: null } } : {}),
    ...(config.baseUrl === undefined ? {} : { baseURL: config.baseUrl }),
    organization: null,
    project: null,
    maxRetries: 0,
    timeout: MODEL_CONNECT_TIMEOUT_MS,
    fetch: boundedFetch,
    logLevel: 'off',
  });
  return {
    infer: async (request, options) => {
      const stall = new StallTimer(config.stallTimeoutMs ?? MODEL_STALL_TIMEOUT_MS);
      const signal = AbortSignal.any([options.signal, stall.signal]);
      try {
        const stream = await client.chat.completions.create(bodyOf(request, config), {
          signal,
          headers: { 'Idempotency-Key': request.idempotencyKey },
        });
        const reading = new Reading(request, options);
        stall.restart();
        for await (const chunk of stream) {
          stall.restart();
          reading.take(chunk);
        }
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

/** Aborts a response that says nothing for too long. */
class StallTimer {
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  restart(): void {
    this.stop();
    this.#timer = setTimeout(() => this.#controller.abort(), this.#timeoutMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function bodyOf(request: ModelRequest, config: OpenAiConfig): ChatCompletionCreateParamsStreaming {
  const { structuredOutput = 'json_schema' } = config;
  return {
    model: request.model,
    messages: request.items.map(messageOf),
    stream: true,
    stream_options: { include_usage: true },
    ...(request.tools.length === 0
      ? {}
      : {
          tools: request.tools.map(({ toolId, description, inputSchema }) => ({
            type: 'function' as const,
            function: { name: functionNameOf(toolId), description, parameters: inputSchema },
          })),
        }),
    ...(structuredOutput === 'json_schema'
      ? {
          response_format: {
            type: 'json_schema' as const,
            json_schema: { name: 'decision', schema: request.outputSchema, strict: false },
          },
        }
      : {}),
    ...(structuredOutput === 'json_object'
      ? { response_format: { type: 'json_object' as const } }
      : {}),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    ...(request.maxOutputTokens === undefined
      ? {}
      : { max_completion_tokens: request.maxOutputTokens }),
  };
}

function messageOf(item: TranscriptItem): ChatCompletionMessageParam {
  switch (item.role) {
    case 'system':
      return { role: 'system', content: item.text };
    case 'user':
      return { role: 'user', content: item.text };
    case 'tool':
      return { role: 'tool', tool_call_id: item.callId, content: item.text };
    case 'assistant':
      return {
        role: 'assistant',
        content: item.text,
        ...(item.calls.length === 0
          ? {}
          : {
              tool_calls: item.calls.map((call) => ({
                type: 'function' as const,
                id: call.callId,
                function: {
                  name: functionNameOf(call.toolId),
                  arguments: JSON.stringify(call.arguments),
                },
              })),
            }),
      };
  }
}

/** What one streamed answer adds up to. */
class Reading {
  readonly #splitter: OutputSplitter;
  readonly #calls = new Map<number, { name: string; arguments: string }>();
  #reasoning = '';
  #refusal = '';
  #finishReason: string | undefined;
  #usage: ChatCompletionChunk['usage'];
  #model: string;
  #bytes = 0;

  readonly #request: ModelRequest;

  constructor(request: ModelRequest, options: Options) {
    this.#request = request;

    this.#model = request.model;
    this.#splitter = new OutputSplitter((piece) => this.#say(piece));
    this.#onReasoning = options.onReasoning;
  }

  readonly #onReasoning: (piece: string) => void;

  #say(piece: string): void {
    this.#reasoning += piece;
    this.#onReasoning(piece);
  }

  take(chunk: ChatCompletionChunk): void {
    if (chunk.model) this.#model = chunk.model;
    if (chunk.usage) this.#usage = chunk.usage;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    if (choice.finish_reason) this.#finishReason = choice.finish_reason;
    // `reasoning_content` and `reasoning` are extensions of compatible endpoints.
    const delta = (choice.delta ?? {}) as ChatCompletionChunk.Choice.Delta & {
      reasoning_content?: unknown;
      reasoning?: unknown;
    };
    const thought = delta.reasoning_content ?? delta.reasoning;
    if (typeof thought === 'string' && thought !== '') {
      this.#grow(thought);
      this.#say(thought);
    }
    if (typeof delta.refusal === 'string') this.#refusal += this.#grow(delta.refusal);
    if (typeof delta.content === 'string') this.#splitter.push(this.#grow(delta.content));
    for (const call of delta.tool_calls ?? []) this.#takeCall(call);
  }

  #takeCall(call: ChatCompletionChunk.Choice.Delta.ToolCall): void {
    const known = this.#calls.get(call.index) ?? { name: '', arguments: '' };
    this.#calls.set(call.index, {
      name: known.name + this.#grow(call.function?.name ?? ''),
      arguments: known.arguments + this.#grow(call.function?.arguments ?? ''),
    });
  }

  #grow(text: string): string {
    this.#bytes += utf8Length(text);
    if (this.#bytes > MODEL_OUTPUT_BYTES) throw new HostError('model_output_too_large');
    return text;
  }

  response(): ModelResponse {
    if (this.#finishReason === undefined) throw lostConnection();
    const final = this.#splitter.end();
    const offered = this.#request.tools.map(({ toolId }) => toolId);
    const calls = [...this.#calls.entries()]
      .sort(([a], [b]) => a - b)
      .map(([, call]) => ({
        toolId: toolIdOf(call.name, offered),
        arguments: argumentsOf(call.arguments),
      }));
    const refused = this.#refusal !== '' || this.#finishReason === 'content_filter';
    return {
      reasoning: this.#reasoning,
      kind: this.#kindOf(refused, calls.length),
      calls,
      final,
      ...(refused ? { refusal: this.#refusal } : {}),
      usage: {
        inputTokens:
          this.#usage?.prompt_tokens ?? estimateTokens(JSON.stringify(this.#request.items)),
        outputTokens: this.#usage?.completion_tokens ?? Math.ceil(this.#bytes / BYTES_PER_TOKEN),
      },
      model: this.#model,
    };
  }

  #kindOf(refused: boolean, calls: number): ModelResponse['kind'] {
    if (refused) return 'refusal';
    if (this.#finishReason === 'length') return 'truncated';
    return calls > 0 ? 'calls' : 'final';
  }
}

/** Arguments that are no JSON stay text: the tool's schema refuses them and the model is told. */
function argumentsOf(text: string): JsonValue {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

function lostConnection(cause?: unknown): HostError {
  return new HostError(
    'model_unavailable',
    { reason: 'The connection to the model provider was lost.' },
    cause,
  );
}

/** Messages of providers may repeat the key: only status and code go on. */
function hostErrorOf(error: unknown): unknown {
  if (!(error instanceof OpenAI.APIError)) {
    if (typeof (error as { code?: unknown }).code === 'string' && error instanceof HostError)
      return error;
    return lostConnection(error);
  }
  if (error instanceof OpenAI.APIConnectionError || error.status === undefined) {
    return lostConnection(error);
  }
  const status = error.status as number;
  const details = {
    status,
    ...(typeof error.code === 'string' ? { providerCode: error.code } : {}),
  };
  if (status === 429 && error.code !== 'insufficient_quota') {
    return new HostError('rate_limited', {
      ...details,
      retryAfterMs: retryAfterMs(error.headers as Headers | undefined),
    });
  }
  if (status >= 500 || status === 408 || status === 409) {
    return new HostError('model_unavailable', details);
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
