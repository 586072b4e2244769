// The provider `scripted`: deterministic, no key, no network. The default model, the demo's model and the test double
// in one. The turn to play is the number of assistant items in the transcript, so a retry plays the same turn.
import { HostError } from '../../rules/errors.ts';
import type { JsonValue } from '../../rules/json.ts';
import { MODEL_OUTPUT_BYTES } from '../../rules/limits.ts';
import { estimateTokens } from '../../rules/tokens.ts';
import type { Model, ModelRequest, ModelResponse } from '../../ports/models.ts';
import { validate } from '../../wire/validators.ts';
import type {
  AgentScript,
  AgentScriptFault,
  AgentScriptTurn,
} from '../../../schemas/types.generated.ts';
import { fillTemplates, lookUp, scriptValues } from './script-templates.ts';

type Options = Parameters<Model['infer']>[1];

/** Tries that are remembered for faults; the oldest go first. */
const REMEMBERED_CALLS = 10_000;
/** Size in UTF-16 units of the pieces of an `oversize` fault. */
const OVERSIZE_PIECE = 64 * 1024;

/** An agent without a script is refused: it never decides by itself. Trying again gives no script either. */
export function withoutScript(agentId: string): HostError {
  const reason = `The agent ${agentId} has no model: no provider is configured for it, and it has no script.`;
  return new HostError('model_unavailable', { agentId, reason, retryable: false });
}

/** `scripts` by agentId. Throws HostError config_invalid when one does not match agent-script.schema.json. */
export function createScriptedModel(scripts: Readonly<Record<string, unknown>>): Model {
  const checked = new Map(
    Object.entries(scripts).map(([agentId, script]) => [agentId, checkedScript(agentId, script)]),
  );
  const tries = new Map<string, number>();
  return {
    infer: async (request, options) => {
      const script = checked.get(request.agentId);
      if (!script) throw withoutScript(request.agentId);
      const turn = turnOf(script, request);
      const faulty = turn.fault && nextTry(tries, request.idempotencyKey) <= turn.fault.times;
      return faulty && turn.fault
        ? playFault({ turn, fault: turn.fault, request, options })
        : play(turn, request, options);
    },
  };
}

function checkedScript(agentId: string, script: unknown): AgentScript {
  const result = validate.agentScript(script);
  if (result.ok) return result.value;
  const [{ pointer, message }] = result.errors;
  throw new HostError('config_invalid', {
    reason: `The script of agent ${agentId} is not valid: ${pointer || '/'} ${message}.`,
    agentId,
    pointer,
  });
}

function turnOf(script: AgentScript, request: ModelRequest): AgentScriptTurn {
  const index = request.items.filter(({ role }) => role === 'assistant').length;
  return caseOf(script.turns[Math.min(index, script.turns.length - 1)] ?? {}, request);
}

function caseOf(turn: AgentScriptTurn, request: ModelRequest): AgentScriptTurn {
  if (!turn.cases) return turn;
  const values = scriptValues(request.items);
  const held = turn.cases.find(({ path, equals }) => lookUp(values, path) === equals);
  return held ? caseOf(held.turn, request) : turn;
}

function nextTry(tries: Map<string, number>, key: string): number {
  const count = (tries.get(key) ?? 0) + 1;
  tries.delete(key);
  tries.set(key, count);
  const oldest = tries.keys().next();
  if (tries.size > REMEMBERED_CALLS && !oldest.done) tries.delete(oldest.value);
  return count;
}

/** The pieces in which a turn's reasoning is said: its chunks, else pieces of chunkSize, else words. */
function piecesOf(turn: AgentScriptTurn): string[] {
  if (turn.chunks) return [...turn.chunks];
  const text = turn.reasoning ?? '';
  if (turn.chunkSize === undefined) return text.match(/\S+\s*|\s+/g) ?? [];
  const size = turn.chunkSize;
  return Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
    text.slice(at * size, (at + 1) * size),
  );
}

async function say(
  turn: AgentScriptTurn,
  pieces: readonly string[],
  options: Options,
): Promise<void> {
  for (const piece of pieces) {
    if (turn.delayMsPerChunk) await pause(turn.delayMsPerChunk, options.signal);
    options.signal.throwIfAborted();
    options.onReasoning(piece);
  }
}

/** No rest as others take: without `ms` it has no end, and an abort throws. */
function pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const done = (): void => {
      signal.removeEventListener('abort', stop);
      resolve();
    };
    const timer = ms === undefined ? undefined : setTimeout(done, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

async function play(
  template: AgentScriptTurn,
  request: ModelRequest,
  options: Options,
): Promise<ModelResponse> {
  const turn = fillTemplates(template as JsonValue, scriptValues(request.items)) as AgentScriptTurn;
  const pieces = piecesOf(turn);
  await say(turn, pieces, options);
  const reasoning = pieces.join('');
  const calls = (turn.calls ?? []).map((call) => ({
    toolId: call.toolId,
    arguments: call.arguments as JsonValue,
  }));
  const final = turn.raw ?? (turn.final === undefined ? '' : JSON.stringify(turn.final));
  const said = reasoning + final + (calls.length > 0 ? JSON.stringify(calls) : '');
  return {
    reasoning,
    kind: kindOf(turn),
    calls,
    final,
    ...(turn.refusal === undefined ? {} : { refusal: turn.refusal }),
    usage: turn.usage ?? {
      inputTokens: estimateTokens(JSON.stringify(request.items)),
      outputTokens: estimateTokens(said),
    },
    model: request.model,
  };
}

function kindOf(turn: AgentScriptTurn): ModelResponse['kind'] {
  if (turn.refusal !== undefined) return 'refusal';
  if (turn.truncated) return 'truncated';
  return turn.calls ? 'calls' : 'final';
}

interface FaultyPlay {
  readonly turn: AgentScriptTurn;
  readonly fault: AgentScriptFault;
  readonly request: ModelRequest;
  readonly options: Options;
}

async function playFault({ turn, fault, request, options }: FaultyPlay): Promise<ModelResponse> {
  switch (fault.kind) {
    case 'http':
      throw httpFault(fault);
    case 'disconnect': {
      const pieces = piecesOf(turn);
      await say(turn, pieces.slice(0, Math.ceil(pieces.length / 2)), options);
      throw new HostError('model_unavailable', { reason: 'The connection to the model was lost.' });
    }
    case 'nonsense':
      return play(
        { ...turn, calls: undefined, final: undefined, raw: 'the moon, perhaps' },
        request,
        options,
      );
    case 'oversize':
      for (let said = 0; said <= MODEL_OUTPUT_BYTES; said += OVERSIZE_PIECE) {
        options.signal.throwIfAborted();
        options.onReasoning('x'.repeat(OVERSIZE_PIECE));
      }
      throw new HostError('model_output_too_large');
    case 'hang':
      await pause(undefined, options.signal);
      throw new HostError('model_unavailable');
  }
}

function httpFault({ status = 503, retryAfterSeconds }: AgentScriptFault): HostError {
  if (status === 429) {
    return new HostError('rate_limited', { retryAfterMs: (retryAfterSeconds ?? 0) * 1000 });
  }
  return new HostError(status < 500 ? 'model_rejected_request' : 'model_unavailable', { status });
}
