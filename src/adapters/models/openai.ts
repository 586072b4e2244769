// Any OpenAI-compatible endpoint: streamed chat completions with tools and structured output. Retries belong to
// Temporal, so the client makes none; a cancelled call closes its socket.
import OpenAI from 'openai';
import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import { HostError } from '../../rules/errors.ts';
import type { Model, ModelRequest, ModelResponse, TranscriptItem } from '../../ports/models.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { MODEL_CONNECT_TIMEOUT_MS, MODEL_STALL_TIMEOUT_MS } from './limits.ts';
import { argumentsOf, OutputMeter } from './model-output.ts';
import { OutputSplitter } from './output-splitter.ts';
import { faultOf, lostConnection } from './provider-faults.ts';
import { StallTimer } from './stall-timer.ts';
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
  readonly #meter = new OutputMeter();

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
      this.#meter.take(thought);
      this.#say(thought);
    }
    if (typeof delta.refusal === 'string') this.#refusal += this.#meter.take(delta.refusal);
    if (typeof delta.content === 'string') this.#splitter.push(this.#meter.take(delta.content));
    for (const call of delta.tool_calls ?? []) this.#takeCall(call);
  }

  #takeCall(call: ChatCompletionChunk.Choice.Delta.ToolCall): void {
    const known = this.#calls.get(call.index) ?? { name: '', arguments: '' };
    this.#calls.set(call.index, {
      name: known.name + this.#meter.take(call.function?.name ?? ''),
      arguments: known.arguments + this.#meter.take(call.function?.arguments ?? ''),
    });
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
      usage: this.#meter.usage(this.#request, {
        inputTokens: this.#usage?.prompt_tokens,
        outputTokens: this.#usage?.completion_tokens,
      }),
      model: this.#model,
    };
  }

  #kindOf(refused: boolean, calls: number): ModelResponse['kind'] {
    if (refused) return 'refusal';
    if (this.#finishReason === 'length') return 'truncated';
    return calls > 0 ? 'calls' : 'final';
  }
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
  const { status, code } = error as { status: number; code?: unknown };
  const headers = error.headers as Headers | undefined;
  return faultOf(
    { status, headers, ...(typeof code === 'string' ? { providerCode: code } : {}) },
    code !== 'insufficient_quota',
  );
}
