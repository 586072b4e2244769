// What stays of a run whose subject's data was erased (architecture §10.1): its structure. Statuses, times, nodes and ids
// stay; what was entered, said, decided, called or answered does not.
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import type { RunInput } from './run-input.ts';

/** Stands in the place of a text. */
export const ERASED = '[ERASED]';
/** A code that is none of the house's form may be anything. */
const CODE = /^[a-z][a-z0-9_.-]{0,63}$/;

/** Of an error. */
export function keptCode(code: JsonValue | undefined): string {
  return typeof code === 'string' && CODE.test(code) ? code : ERASED;
}

/** Of the start: pins, limits and lineage. */
export function erasedInput(input: RunInput): RunInput {
  const { fork, ...kept } = without(input, ['message', 'metadata', 'tags', 'carried']);
  return {
    ...kept,
    definition: erasedDefinition(input),
    variables: {},
    configurable: {},
    ...(fork ? { fork: without(fork, ['overlay', 'inherited', 'asked']) } : {}),
  };
}

/** What a workflow was made of for one run of an agent names what was entered; any other is the operator's. */
function erasedDefinition({
  definition,
  source,
}: Pick<RunInput, 'definition' | 'source'>): RunInput['definition'] {
  if (source === 'workflow-node') return definition;
  const nodes = definition.nodes.map((node) => ({ ...node, inputs: {} }));
  return { ...definition, nodes: nodes as typeof definition.nodes, variables: [] };
}

function without<Value extends object, Name extends keyof Value>(
  value: Value,
  names: readonly Name[],
): Omit<Value, Name> {
  const kept = { ...value };
  for (const name of names) delete kept[name];
  return kept;
}

/** Members of a folded run (src/log/fold-rows.ts) that say how it went, and not what about. */
const STRUCTURE = [
  ...['startedAtMs', 'clock', 'endedAtMs', 'nodes', 'attemptsSinceMs', 'nodeAgents', 'agent'],
  ...['runOrchestrator', 'atSequence'],
];

/** Of the head's snapshot; null stays null. */
export function erasedSnapshot(snapshot: JsonValue): JsonValue {
  if (!isJsonObject(snapshot)) return null;
  const { error } = snapshot;
  const kept = STRUCTURE.flatMap((name) =>
    snapshot[name] === undefined ? [] : [[name, snapshot[name]] as const],
  );
  return {
    ...Object.fromEntries(kept),
    ...(isJsonObject(error) ? { error: erasedError(error) } : {}),
    ...{ variables: {}, channels: {}, interrupts: [] },
  };
}

function erasedError({ code }: JsonObject): JsonObject {
  return { code: keptCode(code), message: ERASED };
}
