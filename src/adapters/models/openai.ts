// Any OpenAI-compatible endpoint: streamed chat completions with tools, the decision by a tool of its own, as JSON by a
// schema, or as text.
import { HostError } from '../../rules/errors.ts';
import { isJsonObject } from '../../rules/json.ts';
import type { EndpointState, Model, ModelRequest, ModelResponse } from '../../ports/models.ts';
import { DECISION_MODES, DecisionModes, type DecisionMode } from './decision-modes.ts';
import { Endpoint, type EndpointLimits } from './endpoint/endpoint.ts';
import { hostErrorOf, quoted, Refusal } from './endpoint/refusal.ts';
import { listedModels, stateAfter } from './model-list.ts';
import { Reading } from './openai-reading.ts';
import { bodyOf } from './openai-request.ts';

export interface OpenAiConfig extends EndpointLimits {
  /** Absent: the endpoint asks for none, and no Authorization header is sent. */
  readonly apiKey?: string;
  /** Absent: the provider's own address. */
  readonly baseUrl?: string;
  /** Absent: the first one that the endpoint takes, remembered for each model. */
  readonly decision?: DecisionMode;
}

type Options = Parameters<Model['infer']>[1];

const OPENAI_URL = 'https://api.openai.com/v1';

export function createOpenAiModel(config: OpenAiConfig): Model {
  const endpoint = endpointOf(config);
  const modes = new DecisionModes(config.decision);
  return {
    infer: async (request, options) => {
      const refusals: Refusal[] = [];
      for (const mode of modes.of(request.model)) {
        const asked = await ask({ endpoint, modes, mode }, request, options);
        if ('response' in asked) return asked.response;
        refusals.push(asked.refusal);
      }
      throw refused(refusals, modes.hasAnswered(request.model) ? undefined : request);
    },
  };
}

function endpointOf({ apiKey, baseUrl = OPENAI_URL, ...limits }: OpenAiConfig): Endpoint {
  const headers: Record<string, string> =
    apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
  return new Endpoint({ ...limits, baseUrl, headers, apiKey });
}

interface CallParts {
  readonly endpoint: Endpoint;
  readonly modes: DecisionModes;
  readonly mode: DecisionMode;
}

/**
 * One request, in one way of asking for the decision. A refusal that may be of the way of asking is an answer: it came before
 * anything was said.
 */
async function ask(
  { endpoint, modes, mode }: CallParts,
  request: ModelRequest,
  options: Options,
): Promise<{ response: ModelResponse } | { refusal: Refusal }> {
  const reading = new Reading(request, options);
  let isBegun = false;
  const question = {
    path: '/chat/completions',
    body: bodyOf(request, mode),
    headers: { 'Idempotency-Key': keyOf(request, mode) },
    signal: options.signal,
  };
  try {
    await endpoint.ask(question, (chunk) => {
      // What has no choices is no answer.
      if (!isBegun && isJsonObject(chunk) && Array.isArray(chunk['choices'])) {
        modes.took(request.model, mode);
        isBegun = true;
      }
      return reading.take(chunk);
    });
    return { response: reading.response() };
  } catch (error) {
    if (!isBegun && error instanceof Refusal && mayBeOfMode(error)) return { refusal: error };
    throw hostErrorOf(error);
  }
}

/** Another way is another request: a gateway that knows the key would give the refusal again, or refuse the key. */
function keyOf({ idempotencyKey }: ModelRequest, mode: DecisionMode): string {
  return mode === DECISION_MODES[0] ? idempotencyKey : `${idempotencyKey}-${mode}`;
}

/** Statuses that a way of asking for the decision may be the cause of. */
const MODE_STATUSES: ReadonlySet<number> = new Set([400, 404, 422, 501]);
/** Codes that have another cause than the way of asking, whatever their status. */
const OTHER_CAUSES = /^(model_not_found|context_length_exceeded|content_\w+|invalid_api_key)$/;

/** Whether another way of asking for the decision may help. */
function mayBeOfMode({ parts: { status, words } }: Refusal): boolean {
  return MODE_STATUSES.has(status) && !OTHER_CAUSES.test(words.code ?? '');
}

/**
 * Every way was refused: the first refusal is thrown, with what was said of the last way where that is something else.
 * `request` is absent where the endpoint has answered this model before: then it is not for tools.
 */
function refused(refusals: readonly Refusal[], request: ModelRequest | undefined): unknown {
  const [first, ...others] = refusals;
  const error = hostErrorOf(first);
  const last = others.at(-1)?.parts.words.text ?? '';
  if (!(error instanceof HostError) || others.length === 0) return error;
  const { reason } = error.details ?? {};
  const also =
    last === '' || last === first?.parts.words.text
      ? ''
      : ` Asked in another way, it says: ${quoted(last)}`;
  const tools =
    request && request.tools.length > 0
      ? ` The agent ${request.agentId} has tools, which this endpoint or model may not take.`
      : '';
  return new HostError('model_rejected_request', {
    ...error.details,
    reason: `${String(reason)}${also}${tools}`,
  });
}

/** Whether the endpoint answers, by its list of models: no tokens are spent. `models` are looked for in it. */
export async function checkOpenAi(
  config: OpenAiConfig,
  models: readonly string[],
  signal: AbortSignal,
): Promise<EndpointState> {
  try {
    const listed = listedModels(await endpointOf(config).get('/models', signal));
    return {
      kind: 'answers',
      count: listed.length,
      missing: models.filter((model) => !listed.includes(model)),
    };
  } catch (error) {
    return stateAfter(error);
  }
}
