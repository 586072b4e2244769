// The capability families of the discovery document (spec/01 §10.3, §10.4), from the facts that decide them: what stands
// here is done, and what is not done is absent or false. Manifests ask by the same keys (RFC 0092).
import { isJsonObject, type JsonObject } from '../rules/json.ts';
import {
  IDEMPOTENCY_RETENTION_SECONDS,
  MAX_ESCALATIONS_PER_VISIT,
  REASONING_TOKEN_LIMIT,
  SCHEMA_ROUNDS,
} from '../rules/limits.ts';

/** A gate asks once in a visit. */
const GATE_ROUNDS = 1;
/** A model turn ends in one decision. */
const ENVELOPES_PER_TURN = 1;

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

/** How often a node asks and a model is asked again (spec/01 §8). Without agents gates ask, and no model is asked. */
export function roundsOf({ agents }: Pick<HostFacts, 'agents'>): JsonObject {
  return {
    clarificationRounds: agents ? MAX_ESCALATIONS_PER_VISIT : GATE_ROUNDS,
    schemaRounds: agents ? SCHEMA_ROUNDS : 0,
    envelopesPerTurn: agents ? ENVELOPES_PER_TURN : 0,
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
