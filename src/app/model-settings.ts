// Which models agents are asked of, by the environment: the providers, their keys, and the model of each class.
import {
  LIVE_PROVIDERS,
  type LiveModels,
  type LiveProvider,
  type ModelChoice,
  type ModelsConfig,
} from '../adapters/models/index.ts';
import { MIN_THINKING_TOKENS, type Thinking } from '../adapters/models/anthropic-request.ts';
import { DECISION_MODES } from '../adapters/models/decision-modes.ts';
import { MODEL_CLASSES } from '../rules/model-choice.ts';
import type { Reader } from './environment.ts';

export type ModelSettings = Pick<ModelsConfig, 'provider' | LiveProvider>;

/** No model gives as many: above it a number is a slip. */
const MOST_TOKENS = 1_000_000;
const START_SECONDS = 'OPENWOP_MODEL_START_SECONDS';
/** A turn of an agent may take no longer (workflows/activity-options.ts). */
const MOST_START_SECONDS = 600;

export function readModels(reader: Reader): ModelSettings {
  const provider = reader.choice('OPENWOP_MODEL_PROVIDER', [...LIVE_PROVIDERS, 'scripted']);
  // The environment may hold keys that are meant for other programs: they are not even looked at.
  if (provider === 'scripted') return { provider };
  const limits = readLimits(reader);
  const openai = readOpenAi(reader);
  const anthropic = readAnthropic(reader);
  if (!openai && !anthropic && limits.startTimeoutMs !== undefined)
    reader.warnings.push(`${START_SECONDS} has no effect where no model is asked over a network.`);
  const live: LiveModels = {
    openai: openai && { ...openai, ...limits },
    anthropic: anthropic && { ...anthropic, ...limits },
  };
  if (provider === undefined) return live;
  if (live[provider] === undefined && reader.faults.length === 0)
    reader.fault('OPENWOP_MODEL_PROVIDER', `is ${provider}, which is not configured.`);
  return { ...live, provider };
}

function readLimits(reader: Reader): { readonly startTimeoutMs?: number } {
  const seconds = reader.count(START_SECONDS, 1, MOST_START_SECONDS);
  return seconds === undefined ? {} : { startTimeoutMs: seconds * 1000 };
}

function readOpenAi(reader: Reader): LiveModels['openai'] {
  const apiKey = reader.secret('OPENAI_API_KEY');
  const baseUrl = reader.serviceUrl('OPENAI_BASE_URL');
  const decision = reader.choice('OPENAI_DECISION', DECISION_MODES);
  const settings = { baseUrl, decision, ...readChoice(reader, 'OPENAI_MODEL') };
  if (apiKey !== undefined || baseUrl !== undefined) return { apiKey, ...settings };
  const names = ['OPENAI_DECISION', ...reader.namesOf('OPENAI_MODEL')];
  return withoutEffect(reader, ['OPENAI_API_KEY', 'OPENAI_API_KEY_FILE', 'OPENAI_BASE_URL'], names);
}

function readAnthropic(reader: Reader): LiveModels['anthropic'] {
  const apiKey = reader.secret('ANTHROPIC_API_KEY');
  // The client adds the version itself; with it the address of other tools is understood as well.
  const baseUrl = reader.serviceUrl('ANTHROPIC_BASE_URL')?.replace(/\/(v1\/?)?$/, '');
  const settings = {
    baseUrl,
    thinking: readThinking(reader),
    maxTokens: reader.count('ANTHROPIC_MAX_TOKENS', 1, MOST_TOKENS),
    ...readChoice(reader, 'ANTHROPIC_MODEL'),
  };
  if (apiKey !== undefined || baseUrl !== undefined) return { apiKey, ...settings };
  return withoutEffect(
    reader,
    ['ANTHROPIC_API_KEY', 'ANTHROPIC_API_KEY_FILE', 'ANTHROPIC_BASE_URL'],
    ['ANTHROPIC_THINKING_TOKENS', 'ANTHROPIC_MAX_TOKENS', ...reader.namesOf('ANTHROPIC_MODEL')],
  );
}

function readThinking(reader: Reader): Thinking | undefined {
  const name = 'ANTHROPIC_THINKING_TOKENS';
  const text = reader.text(name);
  if (text === undefined || text === 'adaptive' || text === 'off') return text;
  const tokens = Number(text);
  const valid = /^\d+$/.test(text) && tokens >= MIN_THINKING_TOKENS && tokens <= MOST_TOKENS;
  const range = `a whole number from ${MIN_THINKING_TOKENS} to ${MOST_TOKENS}`;
  return valid ? tokens : reader.fault(name, `must be adaptive, off or ${range}, not "${text}".`);
}

/**
 * What is said of a provider that is not there: `asked` make it one, `names` are set for nothing. No fault: other programs
 * know variables of these names.
 */
function withoutEffect(
  reader: Reader,
  asked: readonly [key: string, file: string, url: string],
  names: readonly string[],
): undefined {
  // One that is set has a fault of its own.
  if (asked.some((name) => reader.text(name) !== undefined)) return;
  const [key, , url] = asked;
  for (const name of names) {
    if (reader.text(name) !== undefined)
      reader.warnings.push(`${name} has no effect without ${key} or ${url}.`);
  }
}

/** The model, and above it `OPENAI_MODEL_<CLASS>`, `ANTHROPIC_MODEL_<CLASS>` for agents of a class. */
function readChoice(reader: Reader, name: string): ModelChoice {
  const known = new Map(MODEL_CLASSES.map((each) => [`${name}_${variableOf(each)}`, each]));
  for (const variable of reader.namesOf(`${name}_`)) {
    if (!known.has(variable))
      reader.fault(
        variable,
        `names no class of models: there are ${[...known.keys()].join(', ')}.`,
      );
  }
  const modelByClass = Object.fromEntries(
    [...known].flatMap(([variable, modelClass]) => {
      const model = reader.text(variable);
      return model === undefined ? [] : [[modelClass, model]];
    }),
  );
  return { model: reader.text(name), modelByClass };
}

/** Environment variables have no other signs. */
function variableOf(modelClass: string): string {
  return modelClass.toUpperCase().replace(/[^A-Z0-9]/g, '_');
}
