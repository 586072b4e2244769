// Options of a run that go with each call of a model (run-options.md), where a provider takes them at all: one that can
// have no effect is not advertised, and refused of a run whose agents would be asked without it.
import { invalid } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import { aiOption } from '../rules/model-choice.ts';
import { asksModel, type AskingRun } from '../rules/orchestrator.ts';
import type { ModelOption, Models } from '../ports/models.ts';

type Providers = Pick<Models, 'providers' | 'untaken'>;

/** Options that no provider of this host takes, whoever is asked. */
export function untakenByAll(models: Providers): ReadonlySet<string> {
  const all = [undefined, ...models.providers()].map((provider) => untakenOf(models, provider));
  const [first = new Set(), ...others] = all;
  return new Set([...first].filter((option) => others.every((one) => one.has(option))));
}

function untakenOf(models: Providers, provider: string | undefined): ReadonlySet<string> {
  return new Set<string>(models.untaken(provider).options);
}

/** Options that the provider of a run does not take: the one that it names, or the one that is asked by default. */
export function untakenIn(
  configurable: JsonObject,
  models: Pick<Models, 'untaken'>,
): { readonly provider: string; readonly options: readonly ModelOption[] } {
  const named = aiOption(configurable, 'provider');
  return models.untaken(typeof named === 'string' ? named : undefined);
}

export interface OptionsAsked extends AskingRun {
  /** What the caller asks for itself. */
  readonly asked: JsonObject;
  /** What the run goes by, its provider included; checked. */
  readonly configurable: JsonObject;
  /** Its agents may go on with a model that was chosen before, of whatever provider. */
  readonly keepsModels?: boolean;
}

/**
 * Throws validation_error for an option that no model takes which the run's own agents can get. What is not asked for
 * here, as an option of a parent or of a fork's source, is left out of the calls, and fails no run.
 */
export function requireTaken(
  models: Providers,
  { asked, configurable, keepsModels = false, ...run }: OptionsAsked,
): void {
  if (!run.definition.nodes.some((node) => asksModel(node, run))) return;
  const { provider, options } = untakenIn(configurable, models);
  const isNamed = aiOption(configurable, 'provider') !== undefined;
  const byNone = keepsModels && !isNamed ? untakenByAll(models) : undefined;
  const key = options.find(
    (option) => asked[option] !== undefined && (byNone?.has(option) ?? true),
  );
  if (key === undefined) return;
  const supported = models.providers().filter((one) => !untakenOf(models, one).has(key));
  throw invalid(`/configurable/${key}`, `is taken by no model of the provider ${provider}`, {
    ...{ key, provider },
    ...(supported.length > 0 ? { supported } : {}),
  });
}
