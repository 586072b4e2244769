// core.approvalGate: a human decides among the answers that its config offers, each with a declared effect (interrupt.md;
// interrupt-profiles.md quorum; status waiting-approval). A no is a failure that an edge with `any_failed` can route.
import type { ApprovalGateConfig } from '../../schemas/types.generated.ts';
import {
  actionIn,
  effectOf,
  noOf,
  offeredActions,
  outputsOf,
  reasonOf,
  type OfferedAction,
} from '../../src/rules/gate-actions.ts';
import { isJsonObject, type JsonObject } from '../../src/rules/json.ts';
import { approvalSchema } from '../approvals.ts';
import { nodeFailure, type NodeKind } from '../context.ts';
import { interrupt } from '../interrupts.ts';
import { inputsOf } from '../values.ts';

/** Passed on to clients, which may show who is meant. */
const SHOWN = ['requiredApprovals', 'rejectionPolicy', 'approversList'] as const;

interface Asked {
  readonly choices: readonly OfferedAction[];
  readonly nodeId: string;
  readonly inputs: JsonObject;
}

function dataOf(config: ApprovalGateConfig, { choices, nodeId, inputs }: Asked): JsonObject {
  const { title = 'Approval needed', description } = config;
  const shown = SHOWN.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]]]));
  return {
    artifactId: nodeId,
    artifactType: 'approval',
    title,
    actions: choices.map(({ action }) => action),
    choices: [...choices],
    ...(description === undefined ? {} : { description }),
    ...(Object.fromEntries(shown) as JsonObject),
    ...(Object.keys(inputs).length === 0 ? {} : { artifactData: inputs }),
  };
}

export const approvalGate: NodeKind = async (visit) => {
  const config = visit.node.config as ApprovalGateConfig;
  const choices = offeredActions(config);
  const { value } = await interrupt(visit, {
    step: 'gate',
    kind: 'approval',
    data: dataOf(config, { choices, nodeId: visit.node.id, inputs: inputsOf(visit) }),
    resumeSchema: approvalSchema(choices.map(({ action }) => action)),
    timeoutMs: config.timeoutMs,
  });
  const action = actionIn(value);
  const answer = isJsonObject(value) ? value : {};
  switch (effectOf(choices, action)) {
    case 'continue':
      return { kind: 'completed', outputs: outputsOf(answer) };
    case 'route':
      return { kind: 'completed', outputs: outputsOf(answer), isRouted: true };
    default:
      throw nodeFailure('approval_rejected', noOf(whatWasSaid(action), reasonOf(answer)));
  }
};

function whatWasSaid(action: string): string {
  return action === 'reject' ? 'A human said no' : `A human answered "${action}"`;
}
