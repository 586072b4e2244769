// Options of a run that go with each call of a model (run-options.md), where a provider takes them at all: one that can
// have no effect is not advertised, and refused of a run whose agents would be asked without it.
import { invalid } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import { aiOption } from '../rules/model-choice.ts';
import { invokesAgent, isMocked } from '../rules/orchestrator.ts';
import type { ModelOption, Models } from '../ports/models.ts';
import type { WorkflowDefinition, WorkflowNode } from '../../schemas/types.generated.ts';

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

export interface OptionsAsked {
  /** What the caller asks for itself. */
  readonly asked: JsonObject;
  /** What the run goes by, its provider included; checked. */
  readonly configurable: JsonObject;
  readonly definition: WorkflowDefinition;
  /** Its agents may go on with a model that was chosen before, of whatever provider. */
  readonly keepsModels?: boolean;
}

/** Whether a model is asked for the node: it is not disabled, and no plan of a test stands in its place. */
function asksModel(node: WorkflowNode, definition: WorkflowDefinition): boolean {
  return invokesAgent(node) && node.disabled !== true && !isMocked(node, definition);
}

/**
 * Throws validation_error for an option that no model takes which the run's own agents can get. What is not asked for
 * here, as an option of a parent or of a fork's source, is left out of the calls, and fails no run.
 */
export function requireTaken(
  models: Providers,
  { asked, configurable, definition, keepsModels = false }: OptionsAsked,
): void {
  if (!definition.nodes.some((node) => asksModel(node, definition))) return;
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
