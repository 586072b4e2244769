// Which node runs next (architecture §4): src/rules/routing.ts decides over edges, and here is done what follows. A node's
// trigger rule is decided once all its forward in-edges are. A back edge starts a new visit when everything that the last visit set going has come to
// rest: visits of one node never overlap.
import { CancellationScope, isCancellation } from '@temporalio/workflow';
import { emissionKey } from '../src/rules/ids.ts';
import { jsonBytes } from '../src/rules/json.ts';
import { RUN_OUTPUTS_BYTES } from '../src/rules/limits.ts';
import {
  edgeDecision,
  isTriggered,
  reachedFrom,
  ruleOf,
  skippedDecision,
  takesFailures,
  type Decided,
  type EdgeDecision,
} from '../src/rules/routing.ts';
import type { WorkflowEdge } from '../schemas/types.generated.ts';
import { beginCauses, causeOf, endCauses, inTheWakeOf } from './causes.ts';
import { endRun, loopLimit, loopsLeft, nodeState, type Run } from './context.ts';
import { newFrame, type Frame, type NodeError } from './frames.ts';
import { emit } from './journal.ts';
import { failureOf, unlessFault } from './failures.ts';
import { passOver, takeOver } from './handoff.ts';
import { dropOutputs, readable, runOutputs } from './values.ts';
import { beginAnew, visitNode, type VisitEnd } from './visit.ts';

function decidedIn(run: Run): Decided {
  return {
    graph: run.graph,
    decisionOf: (edgeId) => run.state.edges[edgeId],
    isSkipped: (nodeId) => run.state.nodes[nodeId]?.outcome === 'skipped',
  };
}

/** Starts the run's first nodes, or in a later segment the frames that were under way. */
export function startFrames(run: Run): void {
  if (run.state.segment > 0) return enterFrames(run);
  for (const nodeId of run.graph.starts) begin(run, nodeId);
  // Where every first node is disabled, nothing runs that could end the run.
  endAtRest(run);
}

/** Each goes on from where its state says. */
export function enterFrames(run: Run): void {
  for (const frame of Object.values(run.state.frames)) launch(run, frame);
  endAtRest(run);
}

/** An orchestrator's last word: the run is complete, whatever else of it is under way (RFC 0006). */
function terminate(run: Run, nodeId: string): void {
  if (!giveOutputs(run, nodeId)) return;
  endRun(run, { kind: 'completed' });
  run.scope.cancel();
}

/** The run is complete when nothing runs, nothing waits and no loop is pending. */
function endAtRest(run: Run): void {
  const { frames, pendingLoops } = run.state;
  if (run.ending || Object.keys(frames).length > 0 || pendingLoops.length > 0) return;
  endRun(run, { kind: 'completed' });
}

function begin(run: Run, nodeId: string): void {
  const node = run.nodes.get(nodeId);
  if (run.ending || !node) return;
  const state = nodeState(run, nodeId);
  state.visits++;
  if (node.disabled) return skip(run, nodeId, 'disabled');
  const frame = newFrame(nodeId, state.visits);
  const passedBy = takeOver(run, nodeId);
  if (passedBy.length > 0) frame.passedBy = passedBy;
  run.state.frames[nodeId] = frame;
  beginCauses(nodeId);
  launch(run, frame);
}

function launch(run: Run, frame: Frame): void {
  const scope = new CancellationScope({ cancellable: true, parent: run.scope });
  run.scopes.set(frame.nodeId, scope);
  const work = scope
    .run(() => visitNode(run, frame))
    .then(
      (end) => unlessFault(() => settle(run, frame, end)),
      (error: unknown) => unlessFault(() => settleError(run, frame, error)),
    );
  run.active.set(frame.nodeId, work);
}

/** A bug of our own fails the run in the open instead of failing its workflow task for ever. */
function settleError(run: Run, frame: Frame, error: unknown): void {
  run.active.delete(frame.nodeId);
  run.progress++;
  if (run.ending && isCancellation(error)) return;
  if (frame.isCut && isCancellation(error)) {
    beginAnew(run, frame);
    return launch(run, frame);
  }
  const failure = failureOf(error);
  const message = failure?.message ?? 'Something went wrong inside the host.';
  const found = { code: failure?.code ?? 'internal_error', message };
  const { nodeId } = frame;
  inTheWakeOf(causeOf(nodeId), () =>
    endRun(run, { kind: 'failed', error: found, failedNodeId: nodeId }),
  );
}

function settle(run: Run, frame: Frame, end: VisitEnd | undefined): void {
  run.active.delete(frame.nodeId);
  run.progress++;
  if (!end) return;
  delete run.state.frames[frame.nodeId];
  endCauses(frame.nodeId);
  // What it gave came after the outputs of the run were measured.
  if (run.ending) return forgetOutputs(run, frame.nodeId);
  inTheWakeOf(endKey(frame, end), () => {
    if (end.kind === 'completed' && end.endsRun) return terminate(run, frame.nodeId);
    decideEdges(run, frame, end);
    startLoops(run);
    endAtRest(run);
  });
}

/** Key of the event that a visit ended with. */
function endKey({ nodeId, visit, attempt }: Frame, { kind }: VisitEnd): string {
  return emissionKey(`node.${kind}`, { nodeId, visit, attempt, step: 'node' });
}

function decide(run: Run, edge: WorkflowEdge, end: VisitEnd): EdgeDecision {
  return edgeDecision(edge, end, readable(run));
}

function decideEdges(run: Run, frame: Frame, end: VisitEnd): void {
  const { nodeId } = frame;
  const out = run.graph.forwardOut.get(nodeId) ?? [];
  for (const edge of out) {
    const decision = decide(run, edge, end);
    run.state.edges[edge.id] = decision;
    if (decision === 'taken') passOver(run, edge, frame);
  }
  if (end.kind === 'failed' && !isRouted(run, out)) {
    return endRun(run, { kind: 'failed', error: end.error, failedNodeId: nodeId });
  }
  if (end.kind === 'completed') {
    if (out.length === 0 && !giveOutputs(run, nodeId)) return;
    for (const edge of run.graph.backOut.get(nodeId) ?? [])
      if (takeBackEdge(run, edge, end)) passOver(run, edge, frame);
  }
  for (const edge of out) consider(run, edge.targetNodeId);
}

/** The outputs of a last node are outputs of the run; together they are bounded, or the run fails. */
function giveOutputs(run: Run, nodeId: string): boolean {
  forgetOutputs(run, nodeId);
  run.state.lastNodes = [...(run.state.lastNodes ?? []), nodeId];
  const bytes = jsonBytes(runOutputs(run));
  if (bytes <= RUN_OUTPUTS_BYTES) return true;
  const message = `The outputs of the run are larger than ${RUN_OUTPUTS_BYTES} bytes.`;
  const error = { code: 'payload_too_large', message, details: { bytes } };
  endRun(run, { kind: 'failed', error, failedNodeId: nodeId });
  return false;
}

/** Whatever the node gave is no output of the run. */
function forgetOutputs({ state }: Run, nodeId: string): void {
  state.lastNodes = (state.lastNodes ?? []).filter((other) => other !== nodeId);
}

/** A failure is routed when an edge that it decided leads to a node whose rule accepts failures. */
function isRouted(run: Run, out: readonly WorkflowEdge[]): boolean {
  return out.some((edge) => {
    const isHandedOver = run.state.edges[edge.id] === 'failed';
    return isHandedOver && takesFailures(ruleOf(run.graph, edge.targetNodeId));
  });
}

/** Starts or skips the node if its rule is decided now and it was not visited since its in-edges were. */
function consider(run: Run, nodeId: string): void {
  if (run.ending || run.state.frames[nodeId] || nodeState(run, nodeId).outcome) return;
  const decision = isTriggered(decidedIn(run), nodeId);
  if (decision === true) begin(run, nodeId);
  else if (decision === false && !isPending(run, nodeId)) skip(run, nodeId, 'branch_not_taken');
}

/** A node that a pending loop will decide anew is not skipped now. */
function isPending(run: Run, nodeId: string): boolean {
  return run.state.pendingLoops.some((target) => reachedFrom(run.graph, target).has(nodeId));
}

function skip(run: Run, nodeId: string, reason: string): void {
  const state = nodeState(run, nodeId);
  state.outcome = 'skipped';
  dropOutputs(run, nodeId);
  state.skips = (state.skips ?? 0) + 1;
  takeOver(run, nodeId);
  const key = emissionKey('node.skipped', {
    nodeId,
    visit: state.visits,
    attempt: 0,
    step: `skip${state.skips}`,
  });
  emit('node.skipped', { nodeId, reason }, { key, nodeId });
  const decision = skippedDecision(decidedIn(run), nodeId);
  inTheWakeOf(key, () => {
    for (const edge of run.graph.forwardOut.get(nodeId) ?? []) {
      run.state.edges[edge.id] = decision;
      consider(run, edge.targetNodeId);
    }
  });
}

/** True: taken. Its condition holds, and its bound is not reached (settings.maxLoopbackIterations). */
function takeBackEdge(run: Run, edge: WorkflowEdge, end: VisitEnd): boolean {
  if (decide(run, edge, end) !== 'taken') return false;
  const limit = loopLimit(run);
  const iterations = limit - loopsLeft(run, edge);
  if (iterations >= limit) {
    const nodeId = edge.targetNodeId;
    const { visits } = nodeState(run, edge.sourceNodeId);
    const key = emissionKey('workflow.loopback-limit', {
      nodeId,
      visit: visits,
      attempt: 0,
      step: `loop.${edge.id}`,
    });
    emit('workflow.loopback-limit', { nodeId, iterations: iterations + 1, limit }, { key, nodeId });
    return false;
  }
  run.state.loops[edge.id] = iterations + 1;
  if (!run.state.pendingLoops.includes(edge.targetNodeId))
    run.state.pendingLoops.push(edge.targetNodeId);
  return true;
}

/** Starts pending visits whose region has come to rest: its nodes and edges are undecided again. */
function startLoops(run: Run): void {
  for (const target of [...run.state.pendingLoops]) {
    const region = [...reachedFrom(run.graph, target)];
    if (region.some((nodeId) => run.state.frames[nodeId])) continue;
    run.state.pendingLoops = run.state.pendingLoops.filter((pending) => pending !== target);
    for (const nodeId of region) {
      nodeState(run, nodeId).outcome = undefined;
      for (const edge of run.graph.forwardOut.get(nodeId) ?? []) {
        delete run.state.edges[edge.id];
        delete run.state.passing?.[edge.id];
      }
    }
    begin(run, target);
  }
}

/** The error that a run fails with when its time is over (capabilities.md §Engine-enforced limits run-duration). */
export function durationError(limitMs: number, elapsedMs: number): NodeError {
  return {
    code: 'run_timeout',
    message: `The run took longer than ${limitMs} ms.`,
    details: { limitMs, elapsedMs },
  };
}
