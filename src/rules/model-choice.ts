// Which model a caller asks for by `configurable` (RFC 0077 §B step 1, run-options.md): `ai.provider` and `ai.model`,
// flat or nested, and the older `model`. The flat key wins. One reading for the facade, which checks it, and for the
// activity.
import type { AgentManifest } from '../../schemas/types.generated.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

/** What an agent's manifest may say of the model that it needs. */
export const MODEL_CLASSES = Object.keys({
  reasoning: true,
  writing: true,
  coding: true,
  research: true,
  classification: true,
  general: true,
} satisfies Record<AgentManifest['modelClass'], true>);

export interface AskedModel {
  readonly provider?: string;
  readonly model?: string;
}

/** `ai.<name>`, as written. */
export function aiOption(configurable: JsonObject, name: string): JsonValue | undefined {
  const nested = isJsonObject(configurable.ai) ? configurable.ai[name] : undefined;
  return configurable[`ai.${name}`] ?? nested;
}

export function askedModel(configurable: JsonObject): AskedModel {
  const provider = aiOption(configurable, 'provider');
  const model = aiOption(configurable, 'model') ?? configurable.model;
  return {
    ...(typeof provider === 'string' ? { provider } : {}),
    ...(typeof model === 'string' ? { model } : {}),
  };
}
