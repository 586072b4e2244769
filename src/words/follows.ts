// What follows from an answer, for the person who gives it: found by the rules that the run itself goes by
// (src/rules/routing.ts), over what is known while the question stands. What depends on more is told with its condition.
import { graphOf, type DefinitionGraph } from '../rules/definition-graph.ts';
import { offeredActions, votesToDecline, type ActionEffect } from '../rules/gate-actions.ts';
import { isJsonObject, type JsonObject } from '../rules/json.ts';
import { DEFAULT_LOOPBACK_ITERATIONS } from '../rules/limits.ts';
import {
  edgeDecision,
  isTriggered,
  reachedFrom,
  ruleOf,
  skippedDecision,
  takesFailures,
  type Decided,
  type EdgeDecision,
  type NodeEnd,
} from '../rules/routing.ts';
import type { WorkflowDefinition, WorkflowEdge } from '../../schemas/types.generated.ts';
import { formShapeOf, type OpenQuestion } from './question.ts';

/** How the run stands. */
export interface Standing {
  readonly definition: WorkflowDefinition;
  /** By node id. */
  readonly nodes: Readonly<
    Record<string, { readonly status: string; readonly visits?: number } | undefined>
  >;
  readonly variables: JsonObject;
}

export interface FollowingStep {
  readonly name: string;
  /** Only then: `if decision is pay`. */
  readonly when?: string;
  /** Once the other steps that it waits for have ended. */
  readonly isLater?: true;
  /** It has been there before. */
  readonly isAgain?: true;
  /** The loop may have been passed as often as it may. */
  readonly isAtLimit?: true;
}

/** Steps that begin, in the definition's order; without one, in words what becomes of the run. */
export interface Follows {
  readonly steps: readonly FollowingStep[];
  readonly words?: string;
}

type Asked = Pick<OpenQuestion, 'nodeId' | 'kind' | 'data'>;
interface Answered {
  readonly action: string;
  readonly effect: ActionEffect;
}

/** How the step will have ended, and which paths of that are known by now. */
interface Anticipated {
  readonly end: NodeEnd;
  readonly known: readonly string[];
}

/** What an answer to an open question leads to: the steps that begin because of it, or else `words`. */
export function followsOf(open: Asked, answered: Answered, standing: Standing): Follows {
  const end = anticipated(open, answered);
  if (typeof end === 'string') return { steps: [], words: end };
  const place = { nodeId: open.nodeId, graph: graphOf(standing.definition), standing, ...end };
  if (end.end.kind === 'failed' && !isTakenUp(place))
    return { steps: [], words: 'the run ends as failed, because no step takes a no.' };
  const steps = [...forwardSteps(place), ...backSteps(place)];
  return steps.length > 0 ? { steps } : { steps, words: withoutSteps(place) };
}

const AGENT_GOES_ON = 'the agent goes on.';

function anticipated(open: Asked, { action, effect }: Answered): Anticipated | string {
  const shape = formShapeOf(open);
  if (shape === 'effect' || shape === 'tool-call') return AGENT_GOES_ON;
  if (effect === 'ask-again') return again(shape);
  if (shape === 'clarification' && open.data.agentId !== undefined) return AGENT_GOES_ON;
  const counted = shape === 'approval' ? countedOf(open.data, effect) : undefined;
  if (counted !== undefined) return counted;
  const isTurn = open.data.artifactType === 'orchestrator-decision';
  if (effect === 'end') {
    const isGate = shape === 'approval' && !isTurn;
    const code = isGate ? 'approval_rejected' : 'escalation_rejected';
    return { end: { kind: 'failed', error: { code, message: '' } }, known: ['error.code'] };
  }
  if (isTurn) return 'the orchestrator’s decision is carried out.';
  if (shape === 'low-confidence') {
    const isKnown = action === 'accept';
    const outputs: JsonObject = isKnown ? { decision: open.data.decision ?? null } : {};
    return { end: { kind: 'completed', outputs }, known: isKnown ? ['outputs.decision'] : [] };
  }
  if (shape !== 'approval') return { end: { kind: 'completed', outputs: {} }, known: [] };
  return {
    end: {
      kind: 'completed',
      outputs: { action },
      ...(effect === 'route' ? { isRouted: true } : {}),
    },
    known: ['outputs.action'],
  };
}

function again(shape: ReturnType<typeof formShapeOf>): string {
  if (shape === 'low-confidence') return 'the agent decides again.';
  return shape === 'talk'
    ? 'the conversation goes on.'
    : 'the question stays open; its deadline does not change.';
}

/** Of a vote that does not decide: that it is counted. Undefined: it decides, or nobody votes. */
function countedOf(data: JsonObject, effect: ActionEffect): string | undefined {
  const { requiredApprovals: required, rejectionPolicy, quorumProgress } = data;
  if (typeof required !== 'number' || required < 2) return undefined;
  const progress = isJsonObject(quorumProgress) ? quorumProgress : {};
  const isFor = effect === 'continue';
  const before = progress[isFor ? 'granted' : 'rejected'];
  const votes = (typeof before === 'number' ? before : 0) + 1;
  const needed = isFor ? required : votesToDecline(required, rejectionPolicy === 'majority');
  if (votes >= needed) return undefined;
  return `your vote is counted: ${votes} of ${needed} ${isFor ? 'for' : 'against'} it. The question stays open.`;
}

interface Place extends Anticipated {
  readonly nodeId: string;
  readonly graph: DefinitionGraph;
  readonly standing: Standing;
}

/** `open`: it depends on what is not known yet. */
type Decision = EdgeDecision | 'open';

const AT_WORK = new Set(['running', 'suspended', 'retrying']);

/** Other steps may still change what they share. */
function isAlone({ nodeId, standing: { nodes } }: Place): boolean {
  return Object.entries(nodes).every(
    ([id, node]) => id === nodeId || node === undefined || !AT_WORK.has(node.status),
  );
}

function isKnown(place: Place, path: string): boolean {
  const { known, end, standing } = place;
  const [root = '', name = ''] = path.split('.');
  const isUnder = known.some((one) => path === one || path.startsWith(`${one}.`));
  if (root === 'outputs') return isUnder || end.kind === 'failed';
  if (root === 'error') return isUnder || end.kind === 'completed';
  const variable = root === 'variables' ? name : root;
  const { variables, channels = {} } = standing.definition;
  const isSensitive =
    variables.find((one) => one.name === variable)?.sensitive === true ||
    (Object.hasOwn(channels, variable) && channels[variable]?.sensitive === true);
  return !isSensitive && isAlone(place);
}

function decisionOf(place: Place, edge: WorkflowEdge): Decision {
  const { condition } = edge;
  const isOpen =
    condition !== undefined &&
    (condition.type === 'regex' || !isKnown(place, condition.left ?? ''));
  return isOpen ? 'open' : edgeDecision(edge, place.end, place.standing.variables);
}

const ENDED = new Set(['completed', 'failed', 'skipped']);

/** Steps that have ended in this round: what one came to before a loop led back is decided anew. */
function endedSteps(graph: DefinitionGraph, nodes: Standing['nodes']): ReadonlySet<string> {
  const ended = new Set(graph.order.filter((id) => ENDED.has(nodes[id]?.status ?? 'pending')));
  for (const [target, edges] of graph.backIn) {
    if (edges.length === 0) continue;
    const { visits: round = 0 } = nodes[target] ?? {};
    for (const id of reachedFrom(graph, target))
      if ((nodes[id]?.visits ?? 0) < round) ended.delete(id);
  }
  return ended;
}

/** Of an edge from another step, which has ended: what its status says. */
function endedDecision({ standing }: Place, edge: WorkflowEdge): Decision {
  if (edge.condition !== undefined || mayRoute(standing, edge.sourceNodeId)) return 'open';
  return hasFailed(standing, edge.sourceNodeId) ? 'failed' : 'taken';
}

/** Which of its answers a gate was given does not stand in its status. */
function mayRoute(standing: Standing, nodeId: string): boolean {
  const node = standing.definition.nodes.find(({ id }) => id === nodeId);
  if (node?.typeId !== 'core.approvalGate' || hasFailed(standing, nodeId)) return false;
  return offeredActions(node.config).some(({ effect }) => effect === 'route');
}

function hasFailed({ nodes }: Standing, nodeId: string): boolean {
  return nodes[nodeId]?.status === 'failed';
}

/** What an edge that depends on more may come to, in the one case and in the other. */
function eitherOf(place: Place, { sourceNodeId }: WorkflowEdge): [EdgeDecision, EdgeDecision] {
  const { nodeId, end, standing } = place;
  const isOwn = sourceNodeId === nodeId;
  const isFailed = isOwn ? end.kind === 'failed' : hasFailed(standing, sourceNodeId);
  if (isFailed) return ['failed', 'withheld'];
  const isRouted = isOwn
    ? end.kind === 'completed' && end.isRouted === true
    : mayRoute(standing, sourceNodeId);
  return ['taken', isRouted ? 'withheld' : 'dead'];
}

/** What becomes of the steps once the answer is given. */
class Cascade {
  /** By node id. */
  readonly steps = new Map<string, FollowingStep>();
  readonly #place: Place;
  readonly #decisions = new Map<string, Decision>();
  readonly #skipped = new Set<string>();
  /** They begin, or follow from steps that do. */
  readonly #behind = new Set<string>();
  readonly #edges: ReadonlyMap<string, WorkflowEdge>;
  readonly #reached: ReadonlySet<string>;
  readonly #ended: ReadonlySet<string>;

  constructor(place: Place) {
    this.#place = place;
    this.#reached = reachedFrom(place.graph, place.nodeId);
    this.#ended = endedSteps(place.graph, place.standing.nodes);
    this.#edges = new Map(place.standing.definition.edges.map((edge) => [edge.id, edge]));
  }

  /** In the order of the graph: the sources of a step come before it. */
  pass(id: string): void {
    const place = this.#place;
    const { nodeId, standing } = place;
    if (id === nodeId) this.#decide(id, (edge) => decisionOf(place, edge));
    else if (!this.#ended.has(id)) this.#come(id);
    else if (standing.nodes[id]?.status === 'skipped') this.#skip(id);
    else this.#decide(id, (edge) => endedDecision(place, edge));
  }

  #come(id: string): void {
    const place = this.#place;
    const { graph, standing } = place;
    if (AT_WORK.has(standing.nodes[id]?.status ?? '') || !this.#reached.has(id)) return;
    const sources = (graph.forwardIn.get(id) ?? []).map(({ sourceNodeId }) => sourceNodeId);
    if (sources.some((source) => this.#behind.has(source))) {
      this.#behind.add(id);
    } else if (this.#starts(id, [])) {
      if (isDisabled(standing, id)) return this.#skip(id);
      this.#behind.add(id);
      this.steps.set(id, this.#told(id));
    } else if (sources.every((source) => this.#isDecided(source))) {
      this.#skip(id);
    }
  }

  #told(id: string): FollowingStep {
    const { nodeId, graph, standing } = this.#place;
    const into = graph.forwardIn.get(id) ?? [];
    const open = into.filter((edge) => this.#decisions.get(edge.id) === 'open');
    const own = open.filter(({ sourceNodeId }) => sourceNodeId === nodeId);
    const others = open.filter(({ sourceNodeId }) => sourceNodeId !== nodeId);
    const when = [
      ...(this.#starts(id, own) ? [] : [conditionsOf(own)]),
      ...(this.#starts(id, others) ? [] : ['if the conditions of the other steps hold']),
    ].join(', and ');
    return {
      name: nameOf(standing, id),
      ...(when === '' ? {} : { when }),
      ...(into.every(({ sourceNodeId }) => this.#isDecided(sourceNodeId)) ? {} : { isLater: true }),
    };
  }

  #isDecided(id: string): boolean {
    return id === this.#place.nodeId || this.#skipped.has(id) || this.#ended.has(id);
  }

  #decide(id: string, decisionOf: (edge: WorkflowEdge) => Decision): void {
    for (const edge of this.#place.graph.forwardOut.get(id) ?? [])
      this.#decisions.set(edge.id, decisionOf(edge));
  }

  #skip(id: string): void {
    this.#skipped.add(id);
    this.#decide(id, () => skippedDecision(this.#decided([]), id));
  }

  /** Whether a step starts where the conditions of `failing` do not hold, and all others do. */
  #starts(id: string, failing: readonly WorkflowEdge[]): boolean {
    return isTriggered(this.#decided(failing), id) === true;
  }

  #decided(failing: readonly WorkflowEdge[]): Decided {
    return {
      graph: this.#place.graph,
      isSkipped: (id) => this.#skipped.has(id),
      decisionOf: (edgeId) => {
        const decision = this.#decisions.get(edgeId);
        const edge = this.#edges.get(edgeId);
        // What is not decided yet comes to nothing in the best case.
        if (decision === undefined || !edge) return 'dead';
        if (decision !== 'open') return decision;
        const [held, failed] = eitherOf(this.#place, edge);
        return failing.includes(edge) ? failed : held;
      },
    };
  }
}

/** The steps that begin because of the answer, also behind steps that are skipped for it; in the definition's order. */
function forwardSteps(place: Place): FollowingStep[] {
  const cascade = new Cascade(place);
  for (const id of place.graph.order) cascade.pass(id);
  return place.standing.definition.nodes.flatMap(({ id }) => cascade.steps.get(id) ?? []);
}

function isDisabled({ definition }: Standing, nodeId: string): boolean {
  return definition.nodes.find(({ id }) => id === nodeId)?.disabled === true;
}

function backSteps(place: Place): FollowingStep[] {
  const { standing, graph, nodeId, end } = place;
  if (end.kind !== 'completed') return [];
  const { maxLoopbackIterations = DEFAULT_LOOPBACK_ITERATIONS } = standing.definition.settings;
  return (graph.backOut.get(nodeId) ?? []).flatMap((edge): FollowingStep[] => {
    const decision = decisionOf(place, edge);
    if (decision !== 'taken' && decision !== 'open') return [];
    const { visits = 0 } = standing.nodes[edge.targetNodeId] ?? {};
    return [
      {
        name: nameOf(standing, edge.targetNodeId),
        isAgain: true,
        ...(visits > maxLoopbackIterations ? { isAtLimit: true } : {}),
        ...(decision === 'open' ? { when: conditionsOf([edge]) } : {}),
      },
    ];
  });
}

function withoutSteps(place: Place): string {
  return isAlone(place)
    ? 'the run is complete. Nothing more is done.'
    : 'no step follows; the other running steps continue.';
}

/** A step may take the failure up. */
function isTakenUp(place: Place): boolean {
  const { graph, nodeId } = place;
  return (graph.forwardOut.get(nodeId) ?? []).some(
    (edge) =>
      decisionOf(place, edge) !== 'withheld' && takesFailures(ruleOf(graph, edge.targetNodeId)),
  );
}

function nameOf({ definition }: Standing, nodeId: string): string {
  return definition.nodes.find(({ id }) => id === nodeId)?.name ?? nodeId;
}

const OPERATORS: Readonly<Record<string, string>> = {
  equals: 'is',
  notEquals: 'is not',
  contains: 'contains',
  regex: 'matches',
  truthy: 'is set',
  falsy: 'is not set',
};

function conditionsOf(edges: readonly WorkflowEdge[]): string {
  return edges.map(({ condition }) => conditionWords(condition)).join(' or ');
}

function conditionWords(condition: WorkflowEdge['condition']): string {
  if (!condition) return '';
  const left = (condition.left ?? '').replace(/^outputs\.(decision\.)?/, '');
  const right =
    condition.right === undefined
      ? ''
      : ` ${typeof condition.right === 'string' ? condition.right : JSON.stringify(condition.right)}`;
  return `if ${left} ${OPERATORS[condition.type] ?? 'meets'}${right}`;
}
