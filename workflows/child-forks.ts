// Children that are under way where a fork leaves its source (architecture §6): the source's are none of its own. From
// there on each goes by the id that the fork's own has, which lives on from where that was or is begun anew, and the log
// says so. What waits for one waits for the other.
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
  for (const { child } of run.kin) {
    if (child.phase === 'refused') continue;
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
    const { runId: childRunId, workflowId: childWorkflowId, step, phase } = child;
    if (phase !== 'running' || childWorkflowId === undefined) continue;
    emitFact(visit, 'node.dispatched', {
      step: `${step}.again${times}`,
      payload: { childRunId, childWorkflowId },
      causedBy: emissionKey('node.dispatched', tupleOf(visit, step)),
    });
  }
  return names;
}

/** What has a time of its own ends so much later. */
export function shiftChildren(run: Run, laterMs: number): void {
  for (const { child } of run.kin) if (child.deadlineMs !== undefined) child.deadlineMs += laterMs;
}
