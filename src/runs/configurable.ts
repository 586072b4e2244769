// `configurable` of a run (run-options.md): reserved keys with their ranges, the workflow's own schema, and the
// ceilings of every run. One table serves the checks and the discovery document.
import { CODES } from '../rules/capabilities.ts';
import { HostError, invalid } from '../rules/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import { MAX_NODE_EXECUTIONS, MAX_RUN_DURATION_MS } from '../rules/limits.ts';
import { aiOption } from '../rules/model-choice.ts';
import { asksModel, type AskingRun } from '../rules/orchestrator.ts';
import type { RunInput } from '../rules/run-input.ts';
import type { Models } from '../ports/models.ts';
import { compileUserSchema } from '../wire/user-schema.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';

interface Range {
  readonly type: 'number' | 'integer' | 'string';
  readonly min?: number;
  readonly max?: number;
  readonly values?: readonly string[];
  readonly description: string;
}

const MODEL: Range = { type: 'string', max: 256, description: 'Model of every agent of the run.' };

export const CONFIGURABLE: Readonly<Record<string, Range>> = {
  recursionLimit: {
    type: 'integer',
    min: 1,
    max: MAX_NODE_EXECUTIONS,
    description: 'Node executions of the run.',
  },
  runTimeoutMs: {
    type: 'integer',
    min: 1,
    max: MAX_RUN_DURATION_MS,
    description: 'Duration of the run in ms.',
  },
  maxLoopIterations: {
    type: 'integer',
    min: 1,
    // A turn is a node execution.
    max: MAX_NODE_EXECUTIONS,
    description: 'Turns of the orchestrator of the run.',
  },
  escalationThreshold: {
    type: 'number',
    min: 0,
    max: 1,
    description:
      'Confidence below which a human is asked, or the decision is noted where escalation is off.',
  },
  reasoningVerbosity: {
    type: 'string',
    values: ['summary', 'full', 'off'],
    description: 'How much reasoning is shown; off shows none anywhere.',
  },
  temperature: { type: 'number', min: 0, max: 2, description: 'Sampling temperature.' },
  maxTokens: {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    description: 'Output tokens of one model call.',
  },
  model: MODEL,
};

/**
 * What a request asked for, checked, in the one form that everything behind it reads and history keeps: `ai.*` nested,
 * whichever way it was written, and without a credential. Throws validation_error with {field, key, value?, min?, max?},
 * unsupported_mock_provider, credential_forbidden.
 */
export function readConfigurable(
  asked: JsonObject,
  run: AskingRun,
  models: Pick<Models, 'providers'>,
): JsonObject {
  checkConfigurable(asked, run, models);
  return normalized(asked);
}

function checkConfigurable(
  configurable: JsonObject,
  run: AskingRun,
  models: Pick<Models, 'providers'>,
): void {
  const { definition } = run;
  for (const [key, code] of CODES.configurableCodes) {
    if (configurable[key] !== undefined) throw new HostError(code);
  }
  checkSchema(configurable, definition);
  for (const [key, range] of Object.entries(CONFIGURABLE))
    checkRange(key, configurable[key], range);
  checkRange('ai.model', aiOption(configurable, 'model'), MODEL);
  const provider = aiOption(configurable, 'provider');
  const providers = models.providers(agentsOf(run));
  if (provider !== undefined && !(typeof provider === 'string' && providers.includes(provider))) {
    throw invalid('/configurable/ai.provider', 'is not a provider of this host', {
      key: 'ai.provider',
      supported: providers,
    });
  }
  const callsModels = definition.nodes.some((node) => asksModel(node, run));
  for (const [name, code] of callsModels ? CODES.aiOptions : []) {
    if (aiOption(configurable, name) !== undefined)
      throw new HostError(code, { key: `ai.${name}` });
  }
}

/** The agents that the run asks. */
export function agentsOf(run: AskingRun): string[] {
  return run.definition.nodes.flatMap((node) =>
    node.agent && asksModel(node, run) ? [node.agent.agentId] : [],
  );
}

function checkSchema(configurable: JsonObject, definition: WorkflowDefinition): void {
  if (!definition.configurableSchema) return;
  const schema = compileUserSchema(definition.configurableSchema);
  if (!schema.ok)
    throw invalid('/configurable', "the workflow's configurableSchema cannot be used");
  const checked = schema.value.validate(configurable);
  if (!checked.ok)
    throw invalid('/configurable', "does not match the workflow's configurableSchema", {
      errors: checked.errors,
    });
}

function checkRange(key: string, value: JsonValue | undefined, range: Range): void {
  const fault = value === undefined ? undefined : faultIn(value, range);
  if (value === undefined || fault === undefined) return;
  const { min, max, values } = range;
  throw invalid(`/configurable/${key}`, fault, {
    key,
    // Only numbers are repeated: a string may be anything, a secret included.
    ...(typeof value === 'number' ? { value } : {}),
    ...(values ? { values } : { min, max }),
  });
}

function faultIn(value: JsonValue, range: Range): string | undefined {
  const { type, min = -Infinity, max = Infinity, values } = range;
  if (values)
    return values.some((one) => one === value) ? undefined : `must be one of ${values.join(', ')}`;
  if (type === 'string') {
    const fits = typeof value === 'string' && value.length > 0 && value.length <= max;
    return fits ? undefined : `must be a text of 1 to ${max} characters`;
  }
  if (type === 'integer' && !Number.isInteger(value)) return 'must be a whole number';
  if (typeof value !== 'number') return 'must be a number';
  return value >= min && value <= max ? undefined : `must be from ${min} to ${max}`;
}

/**
 * The host's own ceilings: what a run or its definition asks for below them, its workflow minds itself
 * (capabilities.md §Engine-enforced limits).
 */
export const RUN_LIMITS: Omit<RunInput['limits'], 'interruptTimeoutMs'> = {
  maxNodeExecutions: MAX_NODE_EXECUTIONS,
  maxRunDurationMs: MAX_RUN_DURATION_MS,
};

/** In the one form that is kept: `ai.*` nested, without a credential. */
export function normalized(configurable: JsonObject): JsonObject {
  const { ai: nested, ...others } = configurable;
  const isFlat = (key: string): boolean => key.startsWith('ai.');
  const rest = Object.entries(others).filter(([key]) => !isFlat(key));
  const flat = Object.entries(others)
    .filter(([key]) => isFlat(key))
    .map(([key, value]): [string, JsonValue] => [key.slice('ai.'.length), value]);
  const ai = { ...(isJsonObject(nested) ? nested : {}), ...Object.fromEntries(flat) };
  // A credential stands nowhere, whatever becomes of the request.
  delete ai.credentialRef;
  return { ...Object.fromEntries(rest), ...(Object.keys(ai).length > 0 ? { ai } : {}) };
}
