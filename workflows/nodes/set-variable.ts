// core.setVariable: `config.variableName` gets the value of the input port `value`, else `config.value`.
import type { NodeKind } from '../context.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { inputsOf, setVariable } from '../values.ts';

export const setVariableNode: NodeKind = async (visit) => {
  const { variableName, value } = visit.node.config as { variableName: string; value?: JsonValue };
  const next = inputsOf(visit).value ?? value ?? null;
  setVariable(visit, variableName, next);
  return { kind: 'completed', outputs: { value: next } };
};
