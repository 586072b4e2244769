// Variables that go into a child run and come back (RFC 0022): named by a node's config, read once when the child is
// asked for, and taken when it completed.
import type { JsonObject } from '../src/rules/json.ts';
import { NODE_INPUTS_BYTES } from '../src/rules/limits.ts';
import type { CausedBy } from '../src/rules/journal.ts';
import { hasType } from '../src/rules/variables.ts';
import type { Asked } from './child-runs.ts';
import { nodeFailure, type Visit } from './context.ts';
import { isCrowded } from './steps.ts';
import { bounded, inputsOf, keepVariable, sensitiveInputs, stateVariable } from './values.ts';

/** Names to the names that they are taken from: a child's from its parent's, or a parent's from its child's. */
type Mapping = Readonly<Record<string, string>>;

/** Each once. */
export function namesOf(mapping: Mapping): string[] {
  return [...new Set(Object.values(mapping))];
}

/** Input ports by their names, and over them what is mapped; a variable of the parent without a value maps to none. */
export function mappedInputs(
  visit: Visit,
  mapping: Mapping,
): Pick<Asked, 'inputs' | 'unset' | 'sensitive'> {
  const { variables } = visit.run.state;
  const mapped = Object.entries(mapping);
  const isSet = ([, from]: [string, string]) => variables[from] !== undefined;
  const values = mapped.filter(isSet).map(([to, from]) => [to, variables[from] ?? null] as const);
  const unset = mapped.filter((one) => !isSet(one)).map(([to]) => to);
  const inputs: JsonObject = Object.fromEntries([...Object.entries(inputsOf(visit)), ...values]);
  const sensitive = sensitiveInputs(visit, mapping);
  return {
    // One variable may be mapped to many names.
    inputs: bounded(inputs, 'what the child run is given', NODE_INPUTS_BYTES),
    ...(unset.length > 0 ? { unset } : {}),
    ...(sensitive.length > 0 ? { sensitive } : {}),
  };
}

/** What a child gives may be stated many times over, and many may end at once: asked in the breath of `takeMapped`. */
export function needsRoom({ run }: Visit): boolean {
  return isCrowded(run);
}

/**
 * Takes what a child that completed has; what it has no value for leaves the parent's as it is. Returns the names of the
 * parent that were set. Throws the node failures validation_error (another type) and payload_too_large.
 */
export function takeMapped(
  visit: Visit,
  { mapping, variables }: { readonly mapping: Mapping; readonly variables: JsonObject },
  place: { readonly step: string; readonly causedBy?: CausedBy } = { step: 'var' },
): string[] {
  const declared = new Map(
    visit.run.input.definition.variables.map((variable) => [variable.name, variable.type]),
  );
  const taken: string[] = [];
  for (const [name, from] of Object.entries(mapping)) {
    const next = variables[from];
    if (next === undefined) continue;
    const type = declared.get(name);
    if (type !== undefined && next !== null && !hasType(next, type))
      throw nodeFailure('validation_error', `The variable ${name} must be of type ${type}.`, {
        field: `/outputMapping/${name}`,
      });
    const previous = keepVariable(visit.run, name, next);
    stateVariable(visit, { name, previous, next }, { ...place, step: `${place.step}.${name}` });
    taken.push(name);
  }
  return taken;
}
