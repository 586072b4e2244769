// Ports of models (architecture §5): what an agent's conversation is, what a model is asked and answers, and which
// model an agent gets.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { RemoteTool } from './agents.ts';

export type TranscriptItem =
  | { readonly role: 'system'; readonly text: string }
  | { readonly role: 'user'; readonly text: string; readonly trusted: boolean }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly calls: readonly { callId: string; toolId: string; arguments: JsonValue }[];
    }
  | {
      readonly role: 'tool';
      readonly callId: string;
      readonly toolId: string;
      readonly text: string;
    };

export interface ModelRequest {
  readonly provider: string;
  readonly model: string;
  /** The agent asking: scripts are chosen by it. */
  readonly agentId: string;
  readonly items: readonly TranscriptItem[];
  readonly tools: readonly ToolDescription[];
  /** Schema of the final structured output `{decision, confidence?, reasoning?}`. */
  readonly outputSchema: JsonObject;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** Stable over retries of one logical call, for providers that take an Idempotency-Key. */
  readonly idempotencyKey: string;
}

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface ModelResponse {
  /** Assistant text before a call or decision: the reasoning. The whole text, equal to the streamed pieces. */
  readonly reasoning: string;
  /** `unusable`: no one intention can be read from it, so that none of its calls may be performed. */
  readonly kind: 'calls' | 'final' | 'refusal' | 'truncated' | 'unusable';
  readonly calls: readonly { toolId: string; arguments: JsonValue }[];
  /** Final output text (JSON expected), when kind is `final`; when it is `unusable`, what was said in its place. */
  readonly final: string;
  readonly refusal?: string;
  /** When kind is `unusable`: why, for the model that is asked again. It may repeat names that the model gave. */
  readonly unusable?: string;
  readonly usage: ModelUsage;
  /** As stamped by the provider. */
  readonly model: string;
}

/** Keys of `configurable` that go with each call of a model. */
export type ModelOption = 'temperature' | 'maxTokens';

export interface Model {
  /** Options that no model of its provider takes; such an option of a request is left out. Absent: it takes all. */
  readonly untaken?: readonly ModelOption[];
  /**
   * One call. `onReasoning` gets pieces in order as they arrive and must not be awaited per token. Throws HostError:
   * model_unavailable, rate_limited (retryable), model_rejected_request, model_output_too_large. `signal` really
   * stops the request.
   */
  infer(
    request: ModelRequest,
    options: { signal: AbortSignal; onReasoning: (piece: string) => void },
  ): Promise<ModelResponse>;
}

/** What an endpoint says when it is asked for its list of models. */
export type EndpointState =
  | {
      readonly kind: 'answers';
      /** Models that it lists; a list in pages counts its first page. */
      readonly count: number;
      /** Models of the configuration that are not in a list that is whole. */
      readonly missing: readonly string[];
    }
  | {
      readonly kind: 'refuses';
      readonly status: number;
      /** In its own words, without credentials, on one line; empty where it says nothing. */
      readonly said: string;
    }
  | { readonly kind: 'silent' };

/** A provider that is asked over a network, for those who start the host. */
export interface ModelEndpoint {
  readonly provider: string;
  /** What agents get of it, each model once, the one for all classes first. */
  readonly models: readonly string[];
  /** No tokens are spent. Never throws: an endpoint that has not answered when `signal` aborts is `silent`. */
  check(signal: AbortSignal): Promise<EndpointState>;
}

export interface Models {
  /** Providers that a caller may name for all of these agents, or for whatever agent there is. */
  providers(agentIds?: readonly string[]): readonly string[];
  /** Options that no model of a provider takes. Absent: the provider that is asked where nobody names one. */
  untaken(provider?: string): {
    readonly provider: string;
    readonly options: readonly ModelOption[];
  };
  /** Whether agents are asked of a model that is one: false while they only play scripts. */
  isLive(): boolean;
  /** The providers that are asked over a network, the default first; none while agents only play scripts. */
  endpoints(): readonly ModelEndpoint[];
  /**
   * Throws HostError model_not_configured (a provider that is not there, or that a caller may not name) and
   * model_unavailable (the scripted one, for an agent without a script: no agent decides by itself).
   */
  choose(
    agent: { readonly agentId: string; readonly modelClass: string },
    asked: { readonly provider?: string; readonly model?: string },
  ): { provider: string; model: string };
  get(provider: string): Model;
}

export interface ToolDescription {
  readonly toolId: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  /** Repeats with one idempotency key have one effect, or there is none. Absent: they may not be repeated. */
  readonly idempotent?: boolean;
  readonly timeoutMs: number;
  readonly transport: 'native' | 'http' | 'mcp';
  readonly safetyTier: 'pure' | 'read' | 'write';
  /**
   * Present for a tool of an agent process: its calls are performed only where that agent is connected
   * (architecture §5).
   */
  readonly remote?: RemoteTool;
  /** A call is a run of this agent. */
  readonly runs?: string;
}
