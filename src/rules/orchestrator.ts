// Orchestrators (RFC 0006, RFC 0007): what a decision of one looks like, and which nodes ask an agent. The schema of the
// wire is this one too (run-event-payloads.schema.json), which a test compares.
import type {
  OrchestratorDecision,
  WorkflowDefinition,
  WorkflowNode,
} from '../../schemas/types.generated.ts';
import { AGENT_NODE_TYPE, isTestDefinition, SUPERVISOR_NODE_TYPE } from './capabilities.ts';
import { MAX_FAN_OUT } from './children.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import type { RunInput } from './run-input.ts';

const TEXT: JsonObject = { type: 'string', minLength: 1 };
const CONFIDENCE: JsonObject = { type: 'number', minimum: 0, maximum: 1 };

function kindOf(kind: string, properties: JsonObject, required: string[] = []): JsonObject {
  return {
    type: 'object',
    properties: { kind: { const: kind }, ...properties },
    required: ['kind', ...required],
    additionalProperties: false,
  };
}

const WORKER: JsonObject = { ...TEXT, maxLength: 256 };

/** JSON Schema of an OrchestratorDecision as the wire has it. */
export function wireDecisionSchema(worker: JsonObject = WORKER): JsonObject {
  const criterion = {
    type: 'object',
    properties: { key: TEXT, met: { type: 'boolean' } },
    required: ['key', 'met'],
    additionalProperties: false,
  };
  return {
    anyOf: [
      kindOf(
        'next-worker',
        {
          nextWorkerIds: { type: 'array', items: worker, minItems: 1 },
          confidence: CONFIDENCE,
        },
        ['nextWorkerIds'],
      ),
      kindOf('ask-user', { prompt: TEXT }, ['prompt']),
      kindOf('terminate', {
        reason: TEXT,
        confidence: CONFIDENCE,
        successCriteria: { type: 'array', items: criterion },
      }),
    ],
  };
}

/**
 * What a decision is held to, whoever gives it: a model, or a human in its place. It names no more workers than are started
 * together. `workerIds`: whom it may name, where that is said.
 */
export function decisionSchema(workerIds?: readonly string[]): JsonObject {
  return {
    ...wireDecisionSchema(workerIds && { enum: [...workerIds] }),
    // Beside the kinds, and not in one of them: the fault has the pointer of the list.
    properties: { nextWorkerIds: { maxItems: MAX_FAN_OUT } },
  };
}

/** How sure the orchestrator is that what it decided should be done; not how sure the agent is of its answer. */
export function confidenceIn(decision: OrchestratorDecision): number | undefined {
  return decision.kind === 'ask-user' ? undefined : decision.confidence;
}

/** Tells an orchestrator's decision from an answer about one; its shape was checked before. */
export function isDecision(value: JsonValue): boolean {
  return isJsonObject(value) && typeof value.kind === 'string';
}

const INVOKING: ReadonlySet<string> = new Set([AGENT_NODE_TYPE, SUPERVISOR_NODE_TYPE]);

/** Whether the node's `agent` is invoked, and not only named. */
export function invokesAgent({ typeId }: Pick<WorkflowNode, 'typeId'>): boolean {
  return INVOKING.has(typeId);
}

/** Test mode only: members of a supervisor's config that stand for what an agent would decide (conformance/fixtures.md). */
const MOCKS = ['mockConfidence', 'mockPendingDecision', 'mockDispatchPlan', 'mockDecisions'];

/** What of a run says which of its nodes ask a model. */
export type AskingRun = Pick<RunInput, 'definition' | 'testHooks'>;

/** `testHooks`: in test mode. */
interface Planned {
  readonly definition: Pick<WorkflowDefinition, 'id'>;
  readonly testHooks?: boolean | undefined;
}

/** Whether a supervisor follows a plan in the place of an agent: only in a definition made for tests, in test mode. */
export function isPlanned(
  { typeId, agent, config }: Pick<WorkflowNode, 'typeId' | 'agent' | 'config'>,
  { definition, testHooks }: Planned,
): boolean {
  if (testHooks !== true || typeId !== SUPERVISOR_NODE_TYPE || !isTestDefinition(definition))
    return false;
  return agent === undefined || MOCKS.some((name) => config[name] !== undefined);
}

/** Whether a model is asked for the node: its agent is invoked, it is not disabled, and it follows no plan of a test. */
export function asksModel(node: WorkflowNode, run: AskingRun): boolean {
  return invokesAgent(node) && node.disabled !== true && !isPlanned(node, run);
}
