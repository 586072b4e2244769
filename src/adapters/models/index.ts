// The models of this process (RFC 0077 §B step 1): which providers there are, which one is asked where nobody names
// one, and which model a class of agents gets.
import { HostError } from '../../rules/errors.ts';
import type { Model, ModelEndpoint, Models } from '../../ports/models.ts';
import { checkAnthropic, createAnthropicModel, type AnthropicConfig } from './anthropic.ts';
import { checkOpenAi, createOpenAiModel, type OpenAiConfig } from './openai.ts';
import { createScriptedModel, withoutScript } from './scripted.ts';

const SCRIPTED_PROVIDER = 'scripted';
export const SCRIPTED_MODEL = 'scripted-1';

/** Which model agents get of one provider. */
export interface ModelChoice {
  /** Absent: the provider's default. */
  readonly model?: string;
  /** Above `model`, by the class of the agent. */
  readonly modelByClass?: Readonly<Record<string, string>>;
}

/** Providers that are asked over a network, each present where it is configured. */
export interface LiveModels {
  readonly openai?: OpenAiConfig & ModelChoice;
  readonly anthropic?: AnthropicConfig & ModelChoice;
}

export type LiveProvider = keyof LiveModels;

/** In the order in which one of several configured is the default. */
export const LIVE_PROVIDERS = ['openai', 'anthropic'] as const satisfies readonly LiveProvider[];

/** Used for every model class that the configuration does not name. */
const DEFAULT_MODELS: Readonly<Record<LiveProvider, string>> = {
  openai: 'gpt-4.1-mini',
  anthropic: 'claude-sonnet-5-5',
};

export interface ModelsConfig extends LiveModels {
  /** Scripts of the provider `scripted` by agentId, as loaded: they are checked here. */
  readonly scripts?: Readonly<Record<string, unknown>>;
  /**
   * Agents for which a caller may name the provider `scripted`: all in test mode, else the demo's. Default none: what
   * a script decides is the operator's choice and never a caller's.
   */
  readonly scriptedByCaller?: 'all' | ReadonlySet<string>;
  /** The one that is asked where nobody names one; absent: the first configured of LIVE_PROVIDERS. */
  readonly provider?: LiveProvider | typeof SCRIPTED_PROVIDER;
}

interface LiveModel extends ModelEndpoint {
  readonly model: Model;
  modelFor(modelClass: string): string;
}

/** Whether agents are asked of a model that is one. */
export function hasLiveModel(config: LiveModels): boolean {
  return LIVE_PROVIDERS.some((provider) => config[provider] !== undefined);
}

/** Throws HostError config_invalid with the first fault of a script. */
export function createModels(config: ModelsConfig): Models {
  const { scripts = {}, scriptedByCaller = new Set<string>() } = config;
  const scripted = createScriptedModel(scripts);
  const live = new Map(liveModels(config).map((each) => [each.provider, each]));
  const defaultProvider = config.provider ?? [...live.keys()][0] ?? SCRIPTED_PROVIDER;
  const modelOf = (provider: string): Model | undefined =>
    provider === SCRIPTED_PROVIDER ? scripted : live.get(provider)?.model;
  const get = (provider: string): Model => {
    const model = modelOf(provider);
    if (!model) throw new HostError('model_not_configured', { provider });
    return model;
  };
  const mayNameScripted = (agentIds: readonly string[] | undefined): boolean => {
    if (scriptedByCaller === 'all') return true;
    return agentIds?.every((agentId) => scriptedByCaller.has(agentId)) ?? false;
  };
  return {
    providers: (agentIds) =>
      [...live.keys(), ...(mayNameScripted(agentIds) ? [SCRIPTED_PROVIDER] : [])].sort(),
    untaken: (provider = defaultProvider) => ({
      provider,
      options: modelOf(provider)?.untaken ?? [],
    }),
    isLive: () => live.size > 0,
    endpoints: () => [...live.values()],
    choose: ({ agentId, modelClass }, asked) => {
      const provider = asked.provider ?? defaultProvider;
      get(provider);
      if (asked.provider === SCRIPTED_PROVIDER && !mayNameScripted([agentId]))
        throw new HostError('model_not_configured', { provider });
      if (provider === SCRIPTED_PROVIDER && !Object.hasOwn(scripts, agentId))
        throw withoutScript(agentId);
      const model = live.get(provider)?.modelFor(modelClass) ?? SCRIPTED_MODEL;
      return { provider, model: asked.model ?? model };
    },
    get,
  };
}

/** The default first. */
function liveModels({ provider, openai, anthropic }: ModelsConfig): LiveModel[] {
  const live: LiveModel[] = [];
  if (openai) {
    const choice = choiceOf('openai', openai);
    live.push({
      ...choice,
      model: createOpenAiModel(openai),
      check: (signal) => checkOpenAi(openai, choice.models, signal),
    });
  }
  if (anthropic) {
    const choice = choiceOf('anthropic', anthropic);
    live.push({
      ...choice,
      model: createAnthropicModel(anthropic),
      check: (signal) => checkAnthropic(anthropic, choice.models, signal),
    });
  }
  return live.sort((a, b) => Number(b.provider === provider) - Number(a.provider === provider));
}

function choiceOf(provider: LiveProvider, { model, modelByClass = {} }: ModelChoice) {
  const forAll = model ?? DEFAULT_MODELS[provider];
  return {
    provider,
    models: [...new Set([forAll, ...Object.values(modelByClass)])],
    modelFor: (modelClass: string) =>
      Object.hasOwn(modelByClass, modelClass) ? (modelByClass[modelClass] ?? forAll) : forAll,
  };
}
