// Children that are under way where a fork leaves its source (architecture §6): the source's are none of its own. From
// there on each goes by the id that the fork's own has, which lives on from where that was or is begun anew, and the log
// says so. What waits for one waits for the other. A branch by recorded tools has none that lives: each comes to what it
// came to in the record.
import { childRunIdOf, emissionKey } from '../src/rules/ids.ts';
import { emitFact, tupleOf, type Run } from './context.ts';

/**
 * `livedAs`: the run that lives from now on; `times`: sources that it has left by now. Returns the new ids by the old
 * ones.
 */
export function renameChildren(
  run: Run,
  { livedAs, times }: { readonly livedAs: string; readonly times: number },
): Map<string, string> {
  const names = new Map<string, string>();
  run.livedAs = livedAs;
  if (run.state.overlay?.recordedTools) holdChildren(run);
  for (const { child } of run.kin) {
    if (child.phase === 'refused' || child.phase === 'held' || child.recordedOf) continue;
    const own = childRunIdOf(livedAs, child.callId, 0);
    names.set(child.runId, own);
    child.runId = own;
  }
  const { children } = run.state;
  if (children)
    run.state.children = Object.fromEntries(
      Object.entries(children).map(([runId, child]) => [names.get(runId) ?? runId, child]),
    );
  for (const { visit, child } of run.kin) {
    const { runId: childRunId, workflowId: childWorkflowId, step, phase, recordedOf } = child;
    if (phase !== 'running' || childWorkflowId === undefined || recordedOf) continue;
    emitFact(visit, 'node.dispatched', {
      step: `${step}.again${times}`,
      payload: { childRunId, childWorkflowId },
      causedBy: emissionKey('node.dispatched', tupleOf(visit, step)),
    });
  }
  return names;
}

/** Those whose ends are not told yet: what waits for one asks the record (child-runs.ts). */
function holdChildren(run: Run): void {
  const { children = {} } = run.state;
  for (const { child } of run.kin) {
    const open = children[child.runId];
    if (child.phase !== 'running' || !open || open.hasEnded) continue;
    child.phase = 'held';
    delete children[child.runId];
  }
}

/** What has a time of its own ends so much later. */
export function shiftChildren(run: Run, laterMs: number): void {
  for (const { child } of run.kin) if (child.deadlineMs !== undefined) child.deadlineMs += laterMs;
}
