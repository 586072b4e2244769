// What every prefix of a run's log must be, whatever happened to the run: a pure fold over its entries that throws at
// the first one which may not stand where it stands (architecture §2, §4, §5; RFC 0077 §B; interrupt.md).
import { isTerminalEvent } from '../../../src/rules/status.ts';
import { TERMINAL_KEY } from '../../../src/rules/ids.ts';
import type { JsonObject } from '../../../src/rules/json.ts';
import type { CausedBy } from '../../../src/rules/journal.ts';

export interface LegalEntry {
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly causedBy?: CausedBy;
  readonly payload: JsonObject;
}

interface Bracket {
  readonly invocationId: string;
  readonly agentId: string;
  isDecided: boolean;
  /** Whom it handed over to. */
  successor?: string;
}

interface NodeLife {
  /** The attempt under way. */
  running?: number;
  /** The attempt that the node's next start must have, besides 0 for a new visit. */
  next: number;
  bracket?: Bracket;
  isCancelled?: true;
}

interface Asked {
  readonly nodeId: string;
  /** `node.resumed` is stated. */
  isResumed: boolean;
  /** How it ended; absent: it is open. */
  ended?: 'answered' | 'left';
}

/** What has been stated so far. */
export interface Legality {
  /** Takes the next entry; throws an Error that names it and the rule. */
  take(entry: LegalEntry): void;
  readonly isClosed: () => boolean;
  /** Questions that nobody has answered and that no end of their node closed. */
  readonly openInterrupts: () => string[];
}

type Rule = (entry: LegalEntry, log: Log) => string | undefined | false;

/** Facts of an agent at work: between the two ends of a bracket. */
const AT_WORK =
  /^(agent\.(promptResolved|reasoned|toolCalled|toolReturned|decided|handoff)|prompt\.composed|provider\.usage|envelope\..*)$/;
const BEGINNINGS = new Set(['node.started', 'agent.invocation.started', 'agent.toolCalled']);

class Log {
  readonly keys = new Set<string>();
  readonly nodes = new Map<string, NodeLife>();
  /** By callId: the key of its call, and whether it returned. */
  readonly calls = new Map<string, { key?: string; nodeId: string; isReturned: boolean }>();
  readonly interrupts = new Map<string, Asked>();
  /** Child runs, and what was last told of each that an orchestrator ordered. */
  readonly children = new Map<string, string>();
  /** By the key of its node.dispatched. */
  readonly dispatched = new Map<string, string>();
  isPaused = false;
  count = 0;
  isClosed = false;

  node(nodeId: string): NodeLife {
    const known = this.nodes.get(nodeId) ?? { next: 0 };
    this.nodes.set(nodeId, known);
    return known;
  }

  openCalls(nodeId?: string): string[] {
    return [...this.calls]
      .filter(([, call]) => !call.isReturned && (nodeId === undefined || call.nodeId === nodeId))
      .map(([callId]) => callId);
  }

  openInterrupts(nodeId?: string): string[] {
    return [...this.interrupts]
      .filter(([, asked]) => !asked.ended && (nodeId === undefined || asked.nodeId === nodeId))
      .map(([interruptId]) => interruptId);
  }
}

const idOf = (payload: JsonObject, name: string): string => {
  const value = payload[name];
  return typeof value === 'string' ? value : '';
};

/** What holds of every entry. */
const OF_ALL: readonly Rule[] = [
  (_, log) => log.isClosed && 'nothing follows the end',
  ({ key }, log) => log.keys.has(key) && 'a key names one fact',
  ({ type }, { count }) =>
    (type === 'run.started') !== (count === 0) && 'run.started is first, and once',
  ({ causedBy }, log) =>
    typeof causedBy === 'string' &&
    !log.keys.has(causedBy) &&
    !isCall(log, causedBy) &&
    'a cause stands before its effect',
  ({ type }, { isPaused }) => isPaused && BEGINNINGS.has(type) && 'nothing begins in a paused run',
  (entry, log) => AT_WORK.test(entry.type) && outsideBracket(entry, log),
];

function isCall(log: Log, key: string): boolean {
  return [...log.calls.values()].some((call) => call.key === key);
}

/** What an agent does stands in its bracket. */
function outsideBracket(
  { nodeId = '', type, payload }: LegalEntry,
  log: Log,
): string | false | undefined {
  const { bracket, running } = log.node(nodeId);
  // A node that begins tells who passed control to it (workflows/handoff.ts).
  if (!bracket && type === 'agent.handoff') return running === undefined && 'its node does not run';
  if (!bracket) return 'the bracket of its agent is not open';
  const who = payload[type === 'agent.handoff' ? 'fromAgentId' : 'agentId'];
  if (who !== undefined && who !== bracket.agentId)
    return 'it is of another agent than its bracket';
  if (bracket.successor !== undefined) return 'it has handed over';
  if (bracket.isDecided && type !== 'agent.handoff') return 'its agent has decided';
  return type === 'agent.handoff' && !bracket.isDecided && 'nothing was decided';
}

/** What a node leaves open when an attempt of it is over. */
function leftOpen(nodeId: string, log: Log): string | undefined {
  if (log.openCalls(nodeId).length > 0) return 'a call of it has not returned';
  if (log.node(nodeId).bracket) return 'a bracket of it is open';
  return log.openInterrupts(nodeId).length > 0 ? 'a question of it is open' : undefined;
}

function startNode({ nodeId = '', payload }: LegalEntry, log: Log): string | undefined {
  const life = log.node(nodeId);
  const attempt = payload.attempt as number;
  // An attempt that a pause cut has no event that ends it: the next one takes its place.
  const isCut = life.running !== undefined && attempt === life.running + 1;
  if (life.running !== undefined && !isCut) return `attempt ${life.running} of it is under way`;
  if (!isCut && attempt !== 0 && attempt !== life.next) return `attempt ${life.next} comes next`;
  const left = leftOpen(nodeId, log);
  if (left) return left;
  life.running = attempt;
  life.next = attempt + 1;
  return undefined;
}

function endNode({ type, nodeId = '', payload }: LegalEntry, log: Log): string | undefined {
  const life = log.node(nodeId);
  // Of a node that failed while it waited for its next attempt, and of one that was cancelled with its run, the
  // questions end with the run.
  if (life.running === undefined) return 'no attempt of it is under way';
  const left = type === 'node.cancelled' ? undefined : leftOpen(nodeId, log);
  if (left) return left;
  if (type === 'node.retried' && payload.attempt !== life.running + 1)
    return 'the next attempt is the next number';
  life.running = undefined;
  if (type === 'node.cancelled') life.isCancelled = true;
  return undefined;
}

/** What is told of an orchestrator's worker, and behind what. */
const COMES_BEHIND: Readonly<Record<string, ReadonlySet<string>>> = {
  'dispatch.succeeded': new Set(['dispatched']),
  'child.completed': new Set(['dispatch.succeeded']),
  'child.failed': new Set(['dispatch.succeeded']),
  'child.cancelled': new Set(['dispatch.succeeded']),
  'output.harvested': new Set(['child.completed']),
};

/** What a type does to the log, and why it may not; types that are not here may stand anywhere. */
const OF_TYPES: Readonly<Record<string, Rule>> = {
  'node.started': startNode,
  'node.completed': endNode,
  'node.failed': endNode,
  'node.retried': endNode,
  'node.cancelled': endNode,
  'node.skipped': ({ nodeId = '' }, log) => log.node(nodeId).running !== undefined && 'it runs',
  'agent.invocation.started': ({ nodeId = '', payload }, log) => {
    const life = log.node(nodeId);
    if (life.running === undefined) return 'its node does not run';
    if (life.bracket) return 'the bracket before it is open';
    const { invocationId, agentId } = payload as Record<string, string>;
    life.bracket = { invocationId: invocationId ?? '', agentId: agentId ?? '', isDecided: false };
    return undefined;
  },
  'agent.invocation.completed': ({ nodeId = '', payload }, log) => {
    const life = log.node(nodeId);
    if (life.bracket?.invocationId !== payload.invocationId) return 'it closes no open bracket';
    if (log.openCalls(nodeId).length > 0) return 'a call in it has not returned';
    if (payload.outcome === 'completed' && !life.bracket?.isDecided) return 'nothing was decided';
    const { successor } = life.bracket ?? {};
    if ((payload.outcome === 'handed-off') !== (successor !== undefined))
      return 'who hands over closes its bracket as handed off, and nobody else does';
    life.bracket = undefined;
    return undefined;
  },
  'agent.decided': ({ nodeId = '' }, log) => {
    const { bracket } = log.node(nodeId);
    if (log.openCalls(nodeId).length > 0) return 'a call before it has not returned';
    if (bracket) bracket.isDecided = true;
    return undefined;
  },
  'agent.handoff': ({ nodeId = '', payload }, log) => {
    const { bracket } = log.node(nodeId);
    if (bracket) bracket.successor = idOf(payload, 'toAgentId');
    return undefined;
  },
  'agent.toolCalled': ({ key, nodeId = '', payload }, log) => {
    const callId = idOf(payload, 'callId');
    if (log.calls.has(callId)) return 'its callId was used';
    log.calls.set(callId, { key, nodeId, isReturned: false });
    return undefined;
  },
  'agent.toolReturned': ({ nodeId = '', causedBy, payload }, log) => {
    const callId = idOf(payload, 'callId');
    const call = log.calls.get(callId);
    // A call outside the surface is refused and was never made.
    if (!call && payload.status !== 'forbidden') return 'it was not called';
    if (call?.isReturned) return 'it has returned';
    if (call && call.key !== causedBy) return 'its call is its cause';
    log.calls.set(callId, { ...call, nodeId, isReturned: true });
    return undefined;
  },
  'node.suspended': ({ nodeId = '', payload }, log) => {
    const interruptId = idOf(payload, 'interruptId');
    if (log.interrupts.has(interruptId)) return 'it was asked before';
    if (log.node(nodeId).running === undefined) return 'its node does not run';
    log.interrupts.set(interruptId, { nodeId, isResumed: false });
    return undefined;
  },
  'interrupt.resolved': ({ payload }, log) => {
    const asked = log.interrupts.get(idOf(payload, 'interruptId'));
    if (!asked) return 'it was never asked';
    if (asked.ended) return 'it is closed';
    asked.ended = payload.resolvedBy === undefined ? 'left' : 'answered';
    return undefined;
  },
  'node.resumed': ({ payload }, log) => {
    const asked = log.interrupts.get(idOf(payload, 'interruptId'));
    if (asked?.ended !== 'answered') return 'nobody answered';
    if (asked.isResumed) return 'it is resumed already';
    asked.isResumed = true;
    return undefined;
  },
  'node.dispatched': ({ key, nodeId = '', causedBy, payload }, log) => {
    const childRunId = idOf(payload, 'childRunId');
    if (log.children.has(childRunId)) return 'it is there already';
    if (log.node(nodeId).running === undefined) return 'its node does not run';
    // In a fork one goes on in the place of another: what was told of that stands.
    const before = typeof causedBy === 'string' ? log.dispatched.get(causedBy) : undefined;
    log.dispatched.set(key, childRunId);
    log.children.set(childRunId, log.children.get(before ?? '') ?? 'dispatched');
    return undefined;
  },
  'core.workflowChain.event': ({ payload }, log) => {
    const { phase, childRunId } = payload as { phase: string; childRunId?: string };
    if (childRunId === undefined) return false;
    const before = log.children.get(childRunId) ?? 'nothing';
    log.children.set(childRunId, phase);
    return !COMES_BEHIND[phase]?.has(before) && `${before} was told of it before`;
  },
  'run.paused': (_, log) => {
    if (log.isPaused) return 'it is paused';
    log.isPaused = true;
    return undefined;
  },
  'run.resumed': (_, log) => {
    if (!log.isPaused) return 'it is not paused';
    log.isPaused = false;
    return undefined;
  },
};

function isAskedInVain(nodeId: string, log: Log): boolean {
  return log.openInterrupts(nodeId).length > 0 && log.node(nodeId).isCancelled !== true;
}

function endRun({ key, type }: LegalEntry, log: Log): string | undefined {
  if (key !== TERMINAL_KEY) return 'the end has its key';
  if (log.openCalls().length > 0) return 'a call has not returned';
  for (const [nodeId, { running, bracket }] of log.nodes) {
    if (bracket) return `the bracket of ${nodeId} is open`;
    if (running !== undefined) return `${nodeId} runs`;
  }
  // As a cancel, an orchestrator's end ends the questions of others with them.
  if (
    type === 'run.completed' &&
    [...log.nodes.keys()].some((nodeId) => isAskedInVain(nodeId, log))
  )
    return 'a question is open';
  log.isClosed = true;
  return undefined;
}

export function openLegality(): Legality {
  const log = new Log();
  return {
    take(entry) {
      const rules = [...OF_ALL, OF_TYPES[entry.type] ?? (() => undefined)];
      const broken =
        rules.map((rule) => rule(entry, log)).find(Boolean) ||
        (isTerminalEvent(entry.type) && endRun(entry, log));
      if (broken) throw new Error(`${entry.type} ${entry.key} may not stand here: ${broken}`);
      log.keys.add(entry.key);
      log.count++;
    },
    isClosed: () => log.isClosed,
    openInterrupts: () => log.openInterrupts(),
  };
}
