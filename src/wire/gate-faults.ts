// What is wrong with the approval gates of a definition beyond the shape of their configs (interrupt.md §approval;
// interrupt-profiles.md §quorum; RFC 0051): no answer without a known effect, no rule about people whom this host cannot
// tell apart, and nothing that has no effect here.
import { gateFieldsOf, isTestDefinition } from '../rules/capabilities.ts';
import { graphOf } from '../rules/definition-graph.ts';
import { actionFaults, offeredActions } from '../rules/gate-actions.ts';
import { MAX_VOTERS } from '../rules/limits.ts';
import { edgeDecision, ruleOf } from '../rules/routing.ts';
import type {
  ApprovalGateConfig,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../schemas/types.generated.ts';
import type { DefinitionFault } from './load-definition.ts';
import { conditionFinds } from './linear-pattern.ts';
import { validate } from './validators.ts';
import { pointerSegment } from '../rules/json.ts';
import { isSensitivePort } from '../rules/variables.ts';

/** Fields that every gate may have. */
const FIELDS = ['title', 'description', 'actions', 'timeoutMs'] as const;
/** Output of a gate with what a person changed. */
const EDITED = 'editedArtifactData';

interface Gate {
  readonly gate: ApprovalGateConfig;
  readonly id: string;
  readonly pointer: string;
  readonly testMode: boolean;
  /** It is of a definition made for tests: fields without an effect are passed over (conformance/fixtures.md). */
  readonly isTest: boolean;
}

/** Faults of every gate whose config has the right shape. */
export function gateFaults(
  definition: WorkflowDefinition,
  { testMode = false }: { readonly testMode?: boolean },
): DefinitionFault[] {
  const isTest = testMode && isTestDefinition(definition);
  return definition.nodes.flatMap((node, index) => {
    const { typeId, config, id } = node;
    if (typeId !== 'core.approvalGate' || !validate.nodeConfig(typeId, config).ok) return [];
    const pointer = `/nodes/${index}/config`;
    const gate: Gate = { gate: config, id, pointer, testMode, isTest };
    const wrong = actionFaults(gate.gate, isTest);
    return [
      ...wrong.map(({ at, message }) => refusal(`${pointer}/actions/${at}`, message)),
      ...fieldFaults(gate),
      ...routeFaults(definition, gate),
      ...(testMode || wrong.length > 0 ? [] : editFaults(definition, gate)),
      ...maskedFaults(definition, node, `/nodes/${index}/inputs`),
    ];
  });
}

function refusal(pointer: string, message: string): DefinitionFault {
  return { pointer, message, code: 'validation_error' };
}

/** What is approved is what was seen, so a gate masks nothing: it asks about nothing that has to be masked. */
function maskedFaults(
  definition: WorkflowDefinition,
  { inputs }: WorkflowNode,
  pointer: string,
): DefinitionFault[] {
  const message =
    'a gate shows its inputs to people and in the log: it takes none from a sensitive variable, channel or output';
  return Object.entries(inputs)
    .filter(([, port]) => isSensitivePort(definition, port))
    .map(([name]) => refusal(`${pointer}/${pointerSegment(name)}`, message));
}

/** What is accepted is honoured: every field that is set has an effect. */
function fieldFaults({ gate, pointer, testMode, isTest }: Gate): DefinitionFault[] {
  const asking = gateFieldsOf({ testMode });
  const offered = [...asking].flatMap(([name, { isOffered }]) => (isOffered ? [name] : []));
  const known = [...FIELDS, ...offered, ...(offered.length > 0 ? ['rejectionPolicy'] : [])];
  return Object.entries(gate).flatMap(([name, value]) => {
    const place = `${pointer}/${pointerSegment(name)}`;
    const asked = asking.get(name);
    if (asked && !asked.isOffered)
      return asksForNothing(value) ? [] : [peopleFault(place, asked.capability)];
    if (name === 'requiredApprovals' && Number(value) > MAX_VOTERS)
      return [refusal(place, `is more than the ${MAX_VOTERS} people who may vote on one question`)];
    if (isTest) return [];
    if (name === 'rejectionPolicy')
      return (gate.requiredApprovals ?? 1) > 1
        ? []
        : [refusal(place, 'has no effect without requiredApprovals above 1')];
    if (value === undefined || known.includes(name)) return [];
    return [refusal(place, `has no effect here: a gate has the fields ${known.join(', ')}`)];
  });
}

function asksForNothing(value: unknown): boolean {
  return (
    value === undefined ||
    value === 1 ||
    value === false ||
    (Array.isArray(value) && value.length === 0)
  );
}

/** Everybody uses the same key: nothing says that two votes are of two people, or that a person is on a list. */
function peopleFault(pointer: string, requiredCapability: string): DefinitionFault {
  return {
    pointer,
    message: `needs a host that can tell people apart; here whoever has the key may answer (${requiredCapability})`,
    code: 'capability_required',
    details: { requiredCapability },
  };
}

/** An answer with the effect `route` leads somewhere. A quorum takes only votes for or against. */
function routeFaults(
  definition: WorkflowDefinition,
  { gate, id, pointer }: Gate,
): DefinitionFault[] {
  const graph = graphOf(definition);
  const forward = graph.forwardOut.get(id) ?? [];
  const back = graph.backOut.get(id) ?? [];
  const disabled = new Set(definition.nodes.filter((one) => one.disabled).map((one) => one.id));
  // Of a loop the rule of its first step is not asked. Behind a disabled step nothing starts for this edge.
  const out = [
    ...forward.filter(({ targetNodeId: target }) => ruleOf(graph, target) !== 'any_failed'),
    ...back,
  ].filter(({ targetNodeId: target }) => !disabled.has(target));
  return offeredActions(gate).flatMap(({ action, effect }, at) => {
    const place = `${pointer}/actions/${at}`;
    if (effect !== 'route') return [];
    if ((gate.requiredApprovals ?? 1) > 1)
      return [refusal(place, 'the effect "route" does not go with requiredApprovals')];
    if (out.some((edge) => mayTake(edge, action))) return [];
    const needed =
      `an edge from "${id}" with a condition that holds where outputs.action is "${action}", ` +
      'to a step that is not disabled and does not wait for a failure (any_failed)';
    return [refusal(place, `the effect "route" needs ${needed}`)];
  });
}

/** Whether the answer takes the edge; true also where that depends on more than the answer's name. */
function mayTake({ condition }: WorkflowEdge, action: string): boolean {
  if (condition === undefined) return false;
  const { type, left = '', right } = condition;
  const [root, name] = left.split('.');
  if (root !== 'error' && (root !== 'outputs' || name !== 'action')) return true;
  // Workflow code loads patterns for itself.
  if (type === 'regex')
    return typeof right !== 'string' || conditionFinds(right, patternText(left, action));
  const end = { kind: 'completed', outputs: { action }, isRouted: true } as const;
  return edgeDecision({ condition }, end, {}) === 'taken';
}

/** What a pattern looks at: what is not there it reads as the word `null`. */
function patternText(left: string, action: string): string {
  return left === 'outputs.action' ? action : 'null';
}

/** Changed content is an output of the gate alone: where nothing reads it, the run would perform what was there before. */
function editFaults(
  definition: WorkflowDefinition,
  { gate, id, pointer }: Gate,
): DefinitionFault[] {
  const at = offeredActions(gate).findIndex(({ action }) => action === 'edit-accept');
  if (at < 0 || isEditRead(definition, id)) return [];
  const message =
    `no step reads the changed content: "edit-accept" needs an input of the type "connection" ` +
    `with the nodeId "${id}" and the outputKey "${EDITED}", or a condition on outputs.${EDITED}`;
  return [refusal(`${pointer}/actions/${at}`, message)];
}

function isEditRead({ nodes, edges }: WorkflowDefinition, gateId: string): boolean {
  const byPort = nodes.some(
    ({ disabled, inputs }) =>
      disabled !== true &&
      Object.values(inputs).some(
        (port) => port.type === 'connection' && port.nodeId === gateId && port.outputKey === EDITED,
      ),
  );
  return (
    byPort ||
    edges.some(
      ({ sourceNodeId, condition }) =>
        sourceNodeId === gateId && `${condition?.left}.`.startsWith(`outputs.${EDITED}.`),
    )
  );
}
