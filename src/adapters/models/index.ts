// The models of this process (RFC 0077 §B step 1): which providers there are, and which model a class of agents gets.
import { HostError } from '../../rules/errors.ts';
import type { Model, Models } from '../../ports/models.ts';
import { createOpenAiModel, type OpenAiConfig } from './openai.ts';
import { createScriptedModel, withoutScript } from './scripted.ts';

const SCRIPTED_PROVIDER = 'scripted';
export const SCRIPTED_MODEL = 'scripted-1';
const OPENAI_PROVIDER = 'openai';
/** Used for every model class that the configuration does not name. */
const DEFAULT_OPENAI_MODEL = 'gpt-4.1-mini';

export interface ModelsConfig {
  /** Scripts of the provider `scripted` by agentId, as loaded: they are checked here. */
  readonly scripts?: Readonly<Record<string, unknown>>;
  /**
   * Agents for which a caller may name the provider `scripted`: all in test mode, else the demo's. Default none: what
   * a script decides is the operator's choice and never a caller's.
   */
  readonly scriptedByCaller?: 'all' | ReadonlySet<string>;
  /** Present: the provider `openai` exists and is the default. */
  readonly openai?: OpenAiConfig & {
    readonly model?: string;
    readonly modelByClass?: Readonly<Record<string, string>>;
  };
}

/** Throws HostError config_invalid with the first fault of a script. */
export function createModels(config: ModelsConfig): Models {
  const { scripts = {}, scriptedByCaller = new Set<string>() } = config;
  const byProvider = new Map<string, Model>([[SCRIPTED_PROVIDER, createScriptedModel(scripts)]]);
  if (config.openai) byProvider.set(OPENAI_PROVIDER, createOpenAiModel(config.openai));
  const defaultProvider = config.openai ? OPENAI_PROVIDER : SCRIPTED_PROVIDER;
  const defaultModel = (provider: string, modelClass: string): string => {
    if (provider === SCRIPTED_PROVIDER) return SCRIPTED_MODEL;
    return (
      config.openai?.modelByClass?.[modelClass] ?? config.openai?.model ?? DEFAULT_OPENAI_MODEL
    );
  };
  const get = (provider: string): Model => {
    const model = byProvider.get(provider);
    if (!model) throw new HostError('model_not_configured', { provider });
    return model;
  };
  const mayNameScripted = (agentIds: readonly string[] | undefined): boolean => {
    if (scriptedByCaller === 'all') return true;
    return agentIds?.every((agentId) => scriptedByCaller.has(agentId)) ?? false;
  };
  return {
    providers: (agentIds) =>
      [...byProvider.keys()]
        .filter((provider) => provider !== SCRIPTED_PROVIDER || mayNameScripted(agentIds))
        .sort(),
    isLive: () => config.openai !== undefined,
    choose: ({ agentId, modelClass }, asked) => {
      const provider = asked.provider ?? defaultProvider;
      get(provider);
      if (asked.provider === SCRIPTED_PROVIDER && !mayNameScripted([agentId]))
        throw new HostError('model_not_configured', { provider });
      if (provider === SCRIPTED_PROVIDER && !Object.hasOwn(scripts, agentId))
        throw withoutScript(agentId);
      return { provider, model: asked.model ?? defaultModel(provider, modelClass) };
    },
    get,
  };
}
