// Kinds that do nothing of their own: core.start, core.end, core.noop (and core.conditional, whose edges decide),
// core.identity (node-packs.md §Reserved Core typeIds: echoes each input port to the output of the same name). None
// emits agent.* events.
import type { NodeKind } from '../context.ts';
import { bounded, inputsOf, setVariable } from '../values.ts';
import { probeMessages } from './message-probe.ts';

export const start: NodeKind = async () => ({ kind: 'completed', outputs: {} });

export const noop: NodeKind = async () => ({ kind: 'completed', outputs: {} });

/** The end's inputs are outputs of the run. */
export const end: NodeKind = async (visit) => ({ kind: 'completed', outputs: inputsOf(visit) });

export const identity: NodeKind = async (visit) => {
  if (visit.run.input.testHooks) await probeMessages(visit);
  // Before any variable is set: each one stands in the log twice, as it was and as it is.
  const outputs = bounded(inputsOf(visit), 'the outputs of the node');
  for (const variable of visit.run.input.definition.variables) {
    const value = outputs[variable.name];
    if (value !== undefined && value !== visit.run.state.variables[variable.name]) {
      setVariable(visit, variable.name, value);
    }
  }
  return { kind: 'completed', outputs };
};
