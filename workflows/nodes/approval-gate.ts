// core.approvalGate: a human approves, rejects or edits (interrupt.md, interrupt-profiles.md quorum; status
// waiting-approval). A rejection is a failure that an edge with `any_failed` can route (interrupt.md).
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/rules/json.ts';
import { nodeFailure, type NodeKind } from '../context.ts';
import { approvalSchema, interrupt } from '../interrupts.ts';
import { inputsOf } from '../values.ts';

interface Config {
  readonly title?: string;
  readonly description?: string;
  readonly actions?: readonly string[];
  readonly requiredApprovals?: number;
  readonly rejectionPolicy?: string;
  readonly timeoutMs?: number;
}

const DEFAULT_ACTIONS = ['accept', 'reject'];

function dataOf(config: Config, nodeId: string, inputs: JsonObject): JsonObject {
  const { title = 'Approval needed', description, requiredApprovals, rejectionPolicy } = config;
  return {
    artifactId: nodeId,
    artifactType: 'approval',
    title,
    actions: [...(config.actions ?? DEFAULT_ACTIONS)],
    ...(description === undefined ? {} : { description }),
    ...(requiredApprovals === undefined ? {} : { requiredApprovals }),
    ...(rejectionPolicy === undefined ? {} : { rejectionPolicy }),
    ...(Object.keys(inputs).length === 0 ? {} : { artifactData: inputs }),
  };
}

export const approvalGate: NodeKind = async (visit) => {
  const config = visit.node.config as Config;
  const data = dataOf(config, visit.node.id, inputsOf(visit));
  const { value } = await interrupt(visit, {
    step: 'gate',
    kind: 'approval',
    data,
    resumeSchema: approvalSchema(config.actions ?? DEFAULT_ACTIONS),
    timeoutMs: config.timeoutMs,
  });
  const answer: { [key: string]: JsonValue } = isJsonObject(value) ? value : {};
  if (answer.action === 'reject')
    throw nodeFailure('approval_rejected', 'The approval was rejected.');
  return { kind: 'completed', outputs: answer };
};
