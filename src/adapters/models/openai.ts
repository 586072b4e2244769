// Any OpenAI-compatible endpoint: streamed chat completions with tools, the decision by a tool of its own, as JSON by a
// schema, or as text. Retries belong to Temporal, so the client makes none; a cancelled call closes its socket.
import OpenAI from 'openai';
import { HostError } from '../../rules/errors.ts';
import type { EndpointState, Model, ModelRequest, ModelResponse } from '../../ports/models.ts';
import { DECISION_MODES, DecisionModes, type DecisionMode } from './decision-modes.ts';
import { MODEL_CONNECT_TIMEOUT_MS, MODEL_STALL_TIMEOUT_MS } from './limits.ts';
import { listedModels } from './model-list.ts';
import { hostErrorOf, honestFetch, mayBeOfMode, refusesTools } from './openai-faults.ts';
import { Reading } from './openai-reading.ts';
import { bodyOf } from './openai-request.ts';
import { StallTimer } from './stall-timer.ts';

export interface OpenAiConfig {
  /** Absent: the endpoint asks for none, and no Authorization header is sent. */
  readonly apiKey?: string;
  /** Absent: the provider's own address. */
  readonly baseUrl?: string;
  /** Absent: the first one that the endpoint takes, remembered for each model. */
  readonly decision?: DecisionMode;
  /** For tests; MODEL_CONNECT_TIMEOUT_MS when absent. */
  readonly connectTimeoutMs?: number;
  /** For tests; MODEL_STALL_TIMEOUT_MS when absent. */
  readonly stallTimeoutMs?: number;
}

type Options = Parameters<Model['infer']>[1];

export function createOpenAiModel(config: OpenAiConfig): Model {
  const client = clientOf(config);
  const modes = new DecisionModes(config.decision);
  const stallTimeoutMs = config.stallTimeoutMs ?? MODEL_STALL_TIMEOUT_MS;
  return {
    infer: async (request, options) => {
      const refusals: unknown[] = [];
      for (const mode of modes.of(request.model)) {
        const call = new Call({ client, modes, mode, stallTimeoutMs });
        const asked = await call.ask(request, options);
        if ('response' in asked) return asked.response;
        refusals.push(asked.refusal);
      }
      throw refused(refusals, request);
    },
  };
}

function clientOf(config: OpenAiConfig): OpenAI {
  return new OpenAI({
    // The client insists on one; without one of our own its header is left out.
    apiKey: config.apiKey ?? 'none',
    ...(config.apiKey === undefined ? { defaultHeaders: { Authorization: null } } : {}),
    ...(config.baseUrl === undefined ? {} : { baseURL: config.baseUrl }),
    organization: null,
    project: null,
    maxRetries: 0,
    timeout: config.connectTimeoutMs ?? MODEL_CONNECT_TIMEOUT_MS,
    fetch: (url, init) => honestFetch(url, init),
    logLevel: 'off',
  });
}

interface CallParts {
  readonly client: OpenAI;
  readonly modes: DecisionModes;
  readonly mode: DecisionMode;
  readonly stallTimeoutMs: number;
}

/** One request, in one way of asking for the decision. */
class Call {
  readonly #parts: CallParts;

  constructor(parts: CallParts) {
    this.#parts = parts;
  }

  /** A refusal that may be of the way of asking is an answer: it came before anything was said. */
  async ask(
    request: ModelRequest,
    options: Options,
  ): Promise<{ response: ModelResponse } | { refusal: unknown }> {
    const { client, modes, mode, stallTimeoutMs } = this.#parts;
    const stall = new StallTimer(stallTimeoutMs);
    const signal = AbortSignal.any([options.signal, stall.signal]);
    let opened = false;
    try {
      // Comments, which the client keeps to itself, are signs of life: gateways send them while a model thinks.
      const fetch: typeof honestFetch = (url, init) =>
        honestFetch(url, init, () => stall.restart());
      const stream = await client
        .withOptions({ fetch })
        .chat.completions.create(bodyOf(request, mode), {
          signal,
          headers: { 'Idempotency-Key': keyOf(request, mode) },
        });
      opened = true;
      const reading = new Reading(request, options);
      stall.restart();
      let began = false;
      for await (const chunk of stream) {
        if (!began) modes.took(request.model, mode);
        began = true;
        reading.take(chunk);
      }
      // An aborted stream ends like a finished one.
      signal.throwIfAborted();
      return { response: reading.response() };
    } catch (error) {
      options.signal.throwIfAborted();
      if (!opened && mayBeOfMode(error)) return { refusal: error };
      throw hostErrorOf(error);
    } finally {
      stall.stop();
    }
  }
}

/** Another way is another request: a gateway that knows the key would give the refusal again, or refuse the key. */
function keyOf({ idempotencyKey }: ModelRequest, mode: DecisionMode): string {
  return mode === DECISION_MODES[0] ? idempotencyKey : `${idempotencyKey}-${mode}`;
}

/** Every way was refused: the first refusal is told, and whether it may be for the agent's tools. */
function refused(refusals: readonly unknown[], request: ModelRequest): unknown {
  const [first, ...others] = refusals;
  const error = hostErrorOf(first);
  if (!(error instanceof HostError) || request.tools.length === 0) return error;
  const { reason } = error.details ?? {};
  const tools = `The agent ${request.agentId} has tools`;
  if (refusesTools(refusals.at(-1)))
    return rejected(error, `${String(reason)} ${tools}, and this endpoint or model takes none.`);
  if (others.length === 0) return error;
  return rejected(error, `${String(reason)} ${tools}, which this endpoint or model may not take.`);
}

function rejected({ details, cause }: HostError, reason: string): HostError {
  return new HostError('model_rejected_request', { ...details, reason }, cause);
}

/** Whether the endpoint answers, by its list of models: no tokens are spent. `models` are looked for in it. */
export async function checkOpenAi(
  config: OpenAiConfig,
  models: readonly string[],
  signal: AbortSignal,
): Promise<EndpointState> {
  try {
    const listed = listedModels(await clientOf(config).get('/models', { signal }));
    return {
      kind: 'answers',
      count: listed.length,
      missing: models.filter((model) => !listed.includes(model)),
    };
  } catch (error) {
    const status =
      error instanceof OpenAI.APIError ? (error.status as number | undefined) : undefined;
    return status === undefined ? { kind: 'silent' } : { kind: 'refuses', status };
  }
}
