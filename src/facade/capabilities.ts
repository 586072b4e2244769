// The capability families of the discovery document (spec/01 §10.3, §10.4), from the facts that decide them: what stands
// here is done, and what is not done is absent or false. Manifests ask by the same keys (RFC 0092).
import { isJsonObject, type JsonObject } from '../core/json.ts';
import { IDEMPOTENCY_RETENTION_SECONDS, REASONING_TOKEN_LIMIT } from '../core/limits.ts';

export interface HostFacts {
  /** There is an agent. */
  readonly agents: boolean;
  /** There is a tool, or there may be. */
  readonly tools: boolean;
  /** Agents are asked of a model that is one, not only of scripts. */
  readonly live: boolean;
  /** Providers that a caller may name. */
  readonly providers: readonly string[];
  readonly testMode: boolean;
  /** A decision below its threshold goes to a human. */
  readonly escalation: boolean;
}

export function familiesOf(facts: HostFacts): JsonObject {
  const idempotency = {
    supported: true,
    layer1RetentionSeconds: IDEMPOTENCY_RETENTION_SECONDS,
    crossRegion: 'single-region',
  };
  if (!facts.agents) return { idempotency };
  return {
    idempotency,
    agents: {
      supported: true,
      orchestratorPattern: 'single',
      reasoning: { verbosity: 'summary', tokenLimit: REASONING_TOKEN_LIMIT, streaming: true },
      manifestRuntime: { supported: true, handoffValidation: true, installScope: 'host' },
      liveRuntime: liveRuntime(facts),
      // RFC 0002 §D: a type that is not advertised is not emitted.
      reasoningEvents: true,
      toolEvents: facts.tools,
      handoffEvents: true,
      decisionEvents: true,
    },
    // Refs are named in the chain of agent.promptResolved and never applied: there is no library to find them in.
    // Invocations tell of their own prompt all the same, and this is how (RFC 0027 §D).
    prompts: { supported: false, observability: 'hashed' },
    aiProviders: { supported: [...facts.providers], byok: [] },
    providerUsage: { supported: true, costEstimates: false },
  };
}

/** A script is no live model (RFC 0077 §A); in test mode it stands for one. */
function liveRuntime({ live, testMode, escalation }: HostFacts): JsonObject {
  if (!live && !testMode) return { supported: false };
  return {
    supported: true,
    structuredOutput: true,
    confidenceEscalation: escalation,
    sources: ['workflow-node', 'run-api'],
  };
}

/** Keys of what is offered, with dots between a family and its parts: what `requiresCapabilities` may name. */
export function capabilityKeys(families: JsonObject, above = ''): Set<string> {
  const keys = Object.entries(families).flatMap(([name, value]) => {
    const key = `${above}${name}`;
    if (value === true) return [key];
    if (!isJsonObject(value) || value.supported === false) return [];
    return [key, ...capabilityKeys(value, `${key}.`)];
  });
  return new Set(keys);
}
