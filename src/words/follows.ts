// What follows from an answer, for the person who gives it: found by the rules that the run itself goes by
// (src/rules/routing.ts), over what is known while the question stands. What depends on more is told with its condition.
import { graphOf, type DefinitionGraph } from '../rules/definition-graph.ts';
import type { ActionEffect } from '../rules/gate-actions.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
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
import type { WorkflowEdge } from '../../schemas/types.generated.ts';
import {
  isRepeated,
  isVote,
  quorumOf,
  tallyOf,
  votedFor,
  votesIn,
  withVote,
  type Quorum,
  type StandingVote,
  type Vote,
} from '../rules/votes.ts';
import { formShapeOf, type OpenQuestion } from './question.ts';
import {
  endedDecision,
  hasFailed,
  isDisabled,
  isSure,
  loopTo,
  mayRoute,
  roundOf,
  type Round,
  type Standing,
  type WaitingLoop,
} from './standing.ts';

export type { Standing } from './standing.ts';

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
  /** Who would give it: of who has voted before, this is another vote in the place of that one. */
  readonly by?: string;
  /** In the place of what was asked about. */
  readonly content?: JsonValue;
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
  const { nodeId } = open;
  const graph = graphOf(standing.definition);
  const place = { nodeId, graph, standing, round: roundOf(graph, standing, nodeId), ...end };
  if (end.end.kind === 'failed' && !isTakenUp(place))
    return { steps: [], words: 'the run ends as failed, because no step takes a no.' };
  const own = ownLoops(place);
  const begun = forwardSteps(place, [...own, ...place.round.loops]);
  const named = standing.definition.nodes.flatMap(({ id }) => begun.get(id) ?? []);
  const steps = [...named, ...loopSteps(place, { own, begun })];
  return steps.length > 0 ? { steps } : { steps, words: withoutSteps(place) };
}

const AGENT_GOES_ON = 'the agent goes on.';

function anticipated(open: Asked, answered: Answered): Anticipated | string {
  const { action, effect } = answered;
  const shape = formShapeOf(open);
  if (shape === 'effect' || shape === 'tool-call') return AGENT_GOES_ON;
  if (effect === 'ask-again') return again(shape);
  if (shape === 'clarification' && open.data.agentId !== undefined) return AGENT_GOES_ON;
  const counted = shape === 'approval' ? countedOf(open.data, answered) : undefined;
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

const STAYS = 'The question stays open.';

/** In the place of a name of a voter: there is none that is empty. */
const NOBODY = '';

/** Of a vote that does not decide: how it is counted. Undefined: it decides, or nobody votes. */
function countedOf(data: JsonObject, answered: Answered): string | undefined {
  const { action, effect, by = NOBODY, content } = answered;
  const quorum = quorumOf(data);
  if (quorum.required < 2 || !isVote(effect)) return undefined;
  const before = votesIn(data);
  const given: JsonObject = content === undefined ? {} : { editedArtifactData: content };
  const vote: Vote = { voter: by, effect, of: votedFor({ action, ...given }) };
  if (action === 'edit-accept' && content === undefined) return ofAnyContent(before, vote, quorum);
  const isAgain = isRepeated(before, vote);
  const { votes, needed } = tallyOf(isAgain ? before : withVote(before, vote), vote, quorum);
  const side = effect === 'continue' ? 'for' : 'against';
  if (isAgain) return `you have voted so already: ${votes} of ${needed} ${side} it. ${STAYS}`;
  if (votes >= needed) return undefined;
  return `your vote is counted: ${votes} of ${needed} ${side} it. ${STAYS}`;
}

/** What it comes to depends on the content that is sent: each is an answer of its own. */
function ofAnyContent(
  before: readonly StandingVote[],
  { voter, effect }: Vote,
  { required }: Quorum,
): string {
  const isVoted = before.some(
    (vote) => vote.voter !== voter && vote.effect === effect && vote.action === 'edit-accept',
  );
  const counted = `your vote is counted for the content that you send: 1 of ${required} for it`;
  return isVoted
    ? `${counted}, or with the votes of others for the same content. Otherwise the question stays open.`
    : `${counted}. ${STAYS}`;
}

interface Place extends Anticipated {
  readonly nodeId: string;
  readonly graph: DefinitionGraph;
  readonly standing: Standing;
  readonly round: Round;
}

/** `open`: it depends on what is not known yet. */
type Decision = EdgeDecision | 'open';

/** Other steps may still change what they share. */
function isAlone({ round: { atWork, held, others } }: Place): boolean {
  return atWork.size === 0 && held.size === 0 && others.length === 0;
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

const IF_OTHERS_HOLD = 'if the conditions of the other steps hold';

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
  /** A loop decides it again: it is not skipped now. */
  readonly #isLeft: (id: string) => boolean;
  /** Skipped, unless a loop that may be taken decides it again. */
  readonly #doubtful = new Set<string>();
  readonly #mayBeLeft: (id: string) => boolean;

  constructor(place: Place, loops: readonly WaitingLoop[]) {
    this.#place = place;
    this.#reached = reachedFrom(place.graph, place.nodeId);
    this.#ended = place.round.ended;
    this.#isLeft = (id) => loops.some((loop) => isSure(loop) && loop.region.has(id));
    this.#mayBeLeft = (id) => loops.some(({ region }) => region.has(id));
    this.#edges = new Map(place.standing.definition.edges.map((edge) => [edge.id, edge]));
  }

  /** In the order of the graph: the sources of a step come before it. */
  pass(id: string): void {
    const place = this.#place;
    const { nodeId, standing } = place;
    if (id === nodeId) this.#decide(id, (edge) => decisionOf(place, edge));
    else if (!this.#ended.has(id)) this.#come(id);
    else if (standing.nodes[id]?.status === 'skipped') this.#skip(id);
    else this.#decide(id, (edge) => endedDecision(standing, edge));
  }

  #come(id: string): void {
    const place = this.#place;
    const { graph, standing, round } = place;
    if (round.atWork.has(id) || !this.#reached.has(id)) return;
    const sources = (graph.forwardIn.get(id) ?? []).map(({ sourceNodeId }) => sourceNodeId);
    if (sources.some((source) => this.#behind.has(source))) {
      this.#behind.add(id);
    } else if (this.#starts(id, [])) {
      if (isDisabled(standing.definition, id)) return this.#skip(id);
      this.#behind.add(id);
      this.steps.set(id, this.#told(id));
    } else if (sources.every((source) => this.#isDecided(source))) {
      if (this.#isLeft(id)) return void this.#behind.add(id);
      if (this.#mayBeLeft(id)) this.#doubtful.add(id);
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
      ...(this.#starts(id, others) ? [] : [IF_OTHERS_HOLD]),
      ...(into.some(({ sourceNodeId }) => this.#doubtful.has(sourceNodeId))
        ? ['unless a loop begins again before']
        : []),
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

/** The steps that begin because of the answer, also behind steps that are skipped for it; by node id. */
function forwardSteps(
  place: Place,
  loops: readonly WaitingLoop[],
): ReadonlyMap<string, FollowingStep> {
  const cascade = new Cascade(place, loops);
  for (const id of place.graph.order) cascade.pass(id);
  return cascade.steps;
}

interface OwnLoop extends WaitingLoop {
  /** What it depends on, in words; absent: on nothing. */
  readonly when?: string;
}

/** Loops that the answer itself takes. */
function ownLoops(place: Place): OwnLoop[] {
  const { graph, nodeId, end } = place;
  if (end.kind !== 'completed') return [];
  return (graph.backOut.get(nodeId) ?? []).flatMap((edge): OwnLoop[] => {
    const decision = decisionOf(place, edge);
    if (decision !== 'taken' && decision !== 'open') return [];
    const isOpen = decision === 'open';
    const when = isOpen ? { when: conditionsOf([edge]) } : {};
    return [{ ...loopTo(place, edge.targetNodeId, isOpen), ...when }];
  });
}

interface Begun {
  readonly own: readonly OwnLoop[];
  readonly begun: ReadonlyMap<string, FollowingStep>;
}

/** Steps that begin again: the answer leads back to them, or what they wait for rests with it. */
function loopSteps({ standing, round }: Place, { own, begun }: Begun): FollowingStep[] {
  const others = round.loops.map((loop): OwnLoop =>
    loop.isOpen ? { ...loop, when: IF_OTHERS_HOLD } : loop,
  );
  const all = [...own, ...others];
  const busy = [...round.atWork, ...round.held, ...begun.keys()];
  return standing.definition.nodes.flatMap(({ id }): FollowingStep[] => {
    const loops = all.filter(({ target }) => target === id);
    const [first] = loops;
    if (!first) return [];
    const whens = loops.flatMap(({ when }) => when ?? []);
    return [
      {
        name: nameOf(standing, id),
        isAgain: true,
        ...(first.isAtLimit ? { isAtLimit: true } : {}),
        ...(whens.length === loops.length ? { when: whens.join(', or ') } : {}),
        ...(busy.some((one) => first.region.has(one)) ? { isLater: true } : {}),
      },
    ];
  });
}

/** Only what is known to end is said to be over. */
function withoutSteps({ round: { atWork, held, others } }: Place): string {
  if (atWork.size > 0) return 'no step follows; the other running steps continue.';
  if (held.size > 0 || others.some(isSure)) return 'no step follows; other steps still begin.';
  if (others.length > 0) return 'no step follows; other steps may still begin.';
  return 'the run is complete. Nothing more is done.';
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
