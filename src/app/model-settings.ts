// Which models agents are asked of, by the environment: the providers, their keys, and the model of each class.
import {
  LIVE_PROVIDERS,
  type LiveModels,
  type LiveProvider,
  type ModelChoice,
  type ModelsConfig,
} from '../adapters/models/index.ts';
import { DECISION_MODES } from '../adapters/models/decision-modes.ts';
import { MODEL_CLASSES } from '../rules/model-choice.ts';
import type { Reader } from './environment.ts';

export type ModelSettings = Pick<ModelsConfig, 'provider' | LiveProvider>;

export function readModels(reader: Reader): ModelSettings {
  const provider = reader.choice('OPENWOP_MODEL_PROVIDER', [...LIVE_PROVIDERS, 'scripted']);
  // The environment may hold keys that are meant for other programs: they are not even looked at.
  if (provider === 'scripted') return { provider };
  const live: LiveModels = { openai: readOpenAi(reader) };
  if (provider === undefined) return live;
  if (live[provider] === undefined && reader.faults.length === 0)
    reader.fault('OPENWOP_MODEL_PROVIDER', `is ${provider}, which is not configured.`);
  return { ...live, provider };
}

function readOpenAi(reader: Reader): LiveModels['openai'] {
  const apiKey = reader.secret('OPENAI_API_KEY');
  const baseUrl = reader.url('OPENAI_BASE_URL', ['http:', 'https:']);
  const decision = reader.choice('OPENAI_DECISION', DECISION_MODES);
  const settings = { baseUrl, decision, ...readChoice(reader, 'OPENAI_MODEL') };
  if (apiKey !== undefined || baseUrl !== undefined) return { apiKey, ...settings };
  const asked = ['OPENAI_API_KEY', 'OPENAI_API_KEY_FILE', 'OPENAI_BASE_URL'];
  if (asked.every((name) => reader.text(name) === undefined)) {
    for (const name of ['OPENAI_DECISION', ...reader.namesOf('OPENAI_MODEL')])
      if (reader.text(name) !== undefined)
        reader.fault(name, 'has no effect without OPENAI_API_KEY or OPENAI_BASE_URL.');
  }
  return undefined;
}

/** `OPENAI_MODEL`, and above it `OPENAI_MODEL_<CLASS>` for agents of a class. */
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
