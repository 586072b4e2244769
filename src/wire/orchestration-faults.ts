// What is wrong with orchestrators and dispatches of a definition beyond the shapes of their configs (RFC 0006 CO-2;
// RFC 0007 §registration; RFC 0118): nothing that would be without effect, and nothing that this host cannot do.
import { REASONS, SUPERVISOR_NODE_TYPE } from '../rules/capabilities.ts';
import type { JsonValue } from '../rules/json.ts';
import { wireDecisionSchema } from '../rules/orchestrator.ts';
import type {
  DispatchConfig,
  SupervisorConfig,
  WorkflowDefinition,
} from '../../schemas/types.generated.ts';
import type { Fault } from './checked.ts';
import { compileUserSchema } from './user-schema.ts';
import { validate } from './validators.ts';

export function orchestrationFaults({ nodes }: WorkflowDefinition): Fault[] {
  const supervisors = nodes.filter(({ typeId }) => typeId === SUPERVISOR_NODE_TYPE);
  const [first] = supervisors.flatMap(({ agent }) => (agent ? [agent.agentId] : []));
  return nodes.flatMap(({ typeId, config, agent }, index) => {
    const pointer = `/nodes/${index}`;
    if (!validate.nodeConfig(typeId, config).ok) return [];
    if (typeId === SUPERVISOR_NODE_TYPE) {
      const others =
        agent && agent.agentId !== first
          ? [{ pointer: `${pointer}/agent/agentId`, message: ONE_ORCHESTRATOR }]
          : [];
      return [...others, ...planFaults(config, `${pointer}/config`)];
    }
    if (typeId !== 'core.dispatch') return [];
    return [
      ...(supervisors.length > 0 ? [] : [{ pointer, message: NO_SUPERVISOR }]),
      ...dispatchFaults(config, `${pointer}/config`),
    ];
  });
}

const ONE_ORCHESTRATOR = 'a run has one orchestrator: every supervisor names the same agent';
const NO_SUPERVISOR = `needs a node of type ${SUPERVISOR_NODE_TYPE}: nobody else decides what it does`;

function dispatchFaults(config: DispatchConfig, pointer: string): Fault[] {
  const { askUserRouting, fanOutPolicy, joinPolicy, maxConcurrency } = config;
  const faults: Fault[] = [];
  const fault = (name: string, message: string) =>
    faults.push({ pointer: `${pointer}/${name}`, message });
  const refused = REASONS.askUserRoutings.get(askUserRouting ?? '');
  if (refused !== undefined) fault('askUserRouting', refused);
  if (fanOutPolicy !== 'parallel') {
    const message = 'is of a parallel fan-out alone';
    if (joinPolicy) fault('joinPolicy', message);
    if (maxConcurrency !== undefined) fault('maxConcurrency', message);
  } else if (joinPolicy && (joinPolicy.mode === 'quorum') !== (joinPolicy.quorum !== undefined)) {
    fault('joinPolicy/quorum', 'goes with the mode quorum, and that with it');
  }
  return faults;
}

/** Decisions that stand for an agent's have the protocol's shape. Too many workers are refused where they would start. */
function planFaults(config: SupervisorConfig, pointer: string): Fault[] {
  const { mockDispatchPlan = [], mockDecisions = [], mockPendingDecision } = config;
  const planned = [
    ...mockDispatchPlan.map((decision, at) => [`mockDispatchPlan/${at}`, decision] as const),
    ...mockDecisions.map((decision, at) => [`mockDecisions/${at}`, decision] as const),
    ...(mockPendingDecision ? [['mockPendingDecision', mockPendingDecision] as const] : []),
  ];
  const schema = compileUserSchema(wireDecisionSchema());
  return planned
    .filter(([, decision]) => !(schema.ok && schema.value.validate(decision as JsonValue).ok))
    .map(([place]) => ({
      pointer: `${pointer}/${place}`,
      message: 'is no decision of an orchestrator',
    }));
}
