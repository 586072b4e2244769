// The node kinds of this release: typeId -> function, one file each (node-packs.md §Reserved Core typeIds); the table
// of capabilities says which. A kind may be entered again at every phase of its frame: what it already did stands in
// `frame.data`, and its waits and effects go through Steps.
import type { NodeType } from '../../src/rules/capabilities.ts';
import type { WorkflowNode } from '../../schemas/types.generated.ts';
import type { NodeKind } from '../context.ts';
import { agent } from './agent.ts';
import { approvalGate } from './approval-gate.ts';
import { channelWrite } from './channel-write.ts';
import { clarificationGate } from './clarification-gate.ts';
import { conversationGate } from './conversation-gate.ts';
import { delay } from './delay.ts';
import { fail } from './fail.ts';
import { dispatch } from './dispatch.ts';
import { mockAgent } from './mock-agent.ts';
import { end, identity, noop, start } from './passthrough.ts';
import { setVariableNode } from './set-variable.ts';
import { subWorkflow } from './sub-workflow.ts';
import { supervisor } from './supervisor.ts';

const KINDS: Readonly<Record<NodeType, NodeKind>> = {
  'core.agent': agent,
  'core.approvalGate': approvalGate,
  'core.channelWrite': channelWrite,
  'core.clarificationGate': clarificationGate,
  'core.conditional': noop,
  'core.conformance.mock-agent': mockAgent,
  'core.conversationGate': conversationGate,
  'core.delay': delay,
  'core.dispatch': dispatch,
  'core.end': end,
  'core.fail': fail,
  'core.identity': identity,
  'core.noop': noop,
  'core.orchestrator.supervisor': supervisor,
  'core.setVariable': setVariableNode,
  'core.start': start,
  'core.subWorkflow': subWorkflow,
};

export function kindOf({ typeId }: WorkflowNode): NodeKind {
  return Object.hasOwn(KINDS, typeId) ? KINDS[typeId as NodeType] : unknownKind;
}

/** Refused when a definition is loaded. */
const unknownKind: NodeKind = async ({ node }) => ({
  kind: 'failed',
  error: { code: 'capability_not_provided', message: `This host has no node type ${node.typeId}.` },
});
