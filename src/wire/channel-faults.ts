// Whether the channels of a definition can be kept, and whether its nodes may use them as they say
// (channels-and-reducers.md). Which channel a node reads or writes stands in the definition: an access that is denied is
// known before anything runs.
import { channelOf, channelRules, entryOf, foldWrite, mayUse } from '../rules/channels.ts';
import { codeOf } from '../rules/errors.ts';
import { type JsonValue, pointerSegment } from '../rules/json.ts';
import { isReducer, type ReducerName } from '../rules/reducers.ts';
import type {
  ChannelDeclaration,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
  WorkflowVariable,
} from '../../schemas/types.generated.ts';
import type { Fault } from './checked.ts';
import type { DefinitionFault } from './load-definition.ts';
import { compileUserSchema } from './user-schema.ts';

/** Longest name of a channel in UTF-16 units (channel-written-payload.schema.json). */
const NAME_LENGTH = 256;

/** What is reduced is of one type; any other reducer keeps whatever is written. */
const TYPES: Readonly<Partial<Record<ReducerName, WorkflowVariable['type']>>> = {
  append: 'array',
  votes: 'array',
  feedback: 'array',
  message: 'array',
  counter: 'number',
  merge: 'object',
};

export function channelFaults(definition: WorkflowDefinition): DefinitionFault[] {
  return [
    ...Object.entries(definition.channels ?? {}).flatMap(([name, declared]) =>
      declarationFaults(definition, name, declared).map((fault) => refusal(fault)),
    ),
    ...definition.nodes.flatMap((node, index) => useFaults(definition, node, `/nodes/${index}`)),
    ...definition.edges.flatMap((edge, index) => readFaults(definition, edge, `/edges/${index}`)),
  ];
}

function refusal({ pointer, message }: Fault): DefinitionFault {
  return { pointer, message, code: 'validation_error' };
}

function declarationFaults(
  { variables }: WorkflowDefinition,
  name: string,
  declared: ChannelDeclaration,
): Fault[] {
  const pointer = `/channels/${pointerSegment(name)}`;
  const { reducer, schema, schemaVersion = 1, compatibleWith = [] } = declared;
  const compiled = schema === undefined ? undefined : compileUserSchema(schema);
  const faults: Fault[] = [];
  if (name.length < 1 || name.length > NAME_LENGTH)
    faults.push({ pointer, message: `a channel's name has 1 to ${NAME_LENGTH} characters` });
  if (variables.some((variable) => variable.name === name))
    faults.push({ pointer, message: `"${name}" is already the name of a variable` });
  if (!isReducer(reducer)) faults.push(reducerFault(`${pointer}/reducer`, reducer));
  if (compiled && !compiled.ok)
    faults.push(
      ...compiled.errors.map(({ message, pointer: at }) => ({
        pointer: `${pointer}/schema${at}`,
        message,
      })),
    );
  compatibleWith.forEach((version, index) => {
    if (version < 1 || version >= schemaVersion)
      faults.push({
        pointer: `${pointer}/compatibleWith/${index}`,
        message: `must be a version before ${schemaVersion}`,
      });
  });
  const message = isReducer(reducer) ? defaultFault(declared) : undefined;
  if (message !== undefined) faults.push({ pointer: `${pointer}/default`, message });
  return faults;
}

function reducerFault(pointer: string, reducer: string): Fault {
  return { pointer, message: `there is no reducer ${reducer}` };
}

/** A default is what writes could have made; none of them would have had a time. */
function defaultFault(declared: ChannelDeclaration): string | undefined {
  const value = declared.default as JsonValue | undefined;
  if (value === undefined) return undefined;
  const rules = channelRules(declared);
  if (rules.ttlMs !== undefined) return 'is not possible beside ttlMs: it has no time';
  const isList = TYPES[rules.reducer] === 'array';
  if (isList && !Array.isArray(value)) return 'must be an array';
  const writes = isList && Array.isArray(value) ? value : [value];
  return misfit(() => {
    let state: JsonValue | undefined;
    for (const write of writes) state = foldWrite(rules, state, write);
  });
}

function misfit(fold: () => unknown): string | undefined {
  try {
    fold();
    return undefined;
  } catch (error) {
    if (codeOf(error) !== 'validation_error') throw error;
    return `does not fit the reducer: ${(error as Error).message}`;
  }
}

function useFaults(
  definition: WorkflowDefinition,
  node: WorkflowNode,
  pointer: string,
): DefinitionFault[] {
  const reads = Object.entries(node.inputs).flatMap(([name, port]) =>
    port.type === 'variable'
      ? denied(definition, port.variableName, {
          ...{ node, side: 'readers' as const },
          pointer: `${pointer}/inputs/${pointerSegment(name)}/variableName`,
        })
      : [],
  );
  switch (node.typeId) {
    case 'core.setVariable':
      return [...reads, ...setFaults(definition, node, pointer)];
    case 'core.channelWrite':
      return [...reads, ...writeFaults(definition, node, pointer)];
    default:
      return reads;
  }
}

interface Use {
  readonly node: Pick<WorkflowNode, 'id' | 'typeId'>;
  readonly side: 'readers' | 'writers';
  readonly pointer: string;
}

/** channels-and-reducers.md §Channel access control. A name that is no channel's is anybody's. */
function denied(
  { channels }: WorkflowDefinition,
  channel: string,
  { node, side, pointer }: Use,
): DefinitionFault[] {
  const declared = channelOf(channels, channel);
  if (!declared || mayUse(declared.access, side, node)) return [];
  const does = side === 'readers' ? 'read' : 'write to';
  return [
    {
      pointer,
      message: `node "${node.id}" may not ${does} channel "${channel}"`,
      code: 'channel_access_denied',
      details: {
        channel,
        requestedBy: { nodeId: node.id, typeId: node.typeId },
        allowed: side,
      },
    },
  ];
}

/** A condition is read in the name of the node whose end it decides about. */
function readFaults(
  definition: WorkflowDefinition,
  { condition, sourceNodeId }: WorkflowEdge,
  pointer: string,
): DefinitionFault[] {
  const path = condition?.left?.split('.') ?? [];
  const channel = path[0] === 'variables' ? path[1] : path[0];
  const node = definition.nodes.find(({ id }) => id === sourceNodeId);
  if (!node || channel === undefined || ['outputs', 'error'].includes(path[0] ?? '')) return [];
  return denied(definition, channel, {
    ...{ node, side: 'readers' },
    pointer: `${pointer}/condition/left`,
  });
}

function setFaults(
  { channels }: WorkflowDefinition,
  { config }: WorkflowNode,
  pointer: string,
): DefinitionFault[] {
  const name = String(config.variableName);
  if (!channelOf(channels, name)) return [];
  return [
    refusal({
      pointer: `${pointer}/config/variableName`,
      message: `"${name}" is a channel: core.channelWrite writes to it`,
    }),
  ];
}

function writeFaults(
  definition: WorkflowDefinition,
  node: WorkflowNode,
  pointer: string,
): DefinitionFault[] {
  const channel = String(node.config.channelName);
  const declared = channelOf(definition.channels, channel);
  const at = `${pointer}/config`;
  if (!declared) return undeclaredFaults(definition, node, at).map(refusal);
  return [
    ...denied(definition, channel, { node, side: 'writers', pointer: `${at}/channelName` }),
    ...(['reducer', 'ttlMs'] as const).flatMap((field) =>
      node.config[field] === undefined || node.config[field] === declared[field]
        ? []
        : [refusal({ pointer: `${at}/${field}`, message: 'must be what the channel declares' })],
    ),
    ...valueFaults(declared, node, `${at}/value`).map(refusal),
  ];
}

/** A value that stands in the definition is checked once, here. */
function valueFaults(declared: ChannelDeclaration, node: WorkflowNode, pointer: string): Fault[] {
  const { value } = node.config;
  if (node.inputs.value || value === undefined || !isReducer(declared.reducer)) return [];
  const rules = channelRules(declared);
  const message = misfit(() => foldWrite(rules, undefined, entryOf(rules, value as JsonValue, 0)));
  if (message !== undefined) return [{ pointer, message }];
  const compiled = declared.schema === undefined ? undefined : compileUserSchema(declared.schema);
  const checked = compiled?.ok ? compiled.value.validate(value) : undefined;
  if (!checked || checked.ok) return [];
  return checked.errors.map((fault) => ({ ...fault, pointer: `${pointer}${fault.pointer}` }));
}

/** §Legacy mode: what is written is a variable, and its declaration holds where it has one. */
function undeclaredFaults(
  { variables }: WorkflowDefinition,
  { config }: WorkflowNode,
  pointer: string,
): Fault[] {
  const { reducer = 'append' } = config as { reducer?: string };
  if (!isReducer(reducer)) return [reducerFault(`${pointer}/reducer`, reducer)];
  const name = String(config.channelName);
  if (Object.hasOwn(Object.prototype, name))
    return [{ pointer: `${pointer}/channelName`, message: `"${name}" is not allowed as a name` }];
  const declared = variables.find((variable) => variable.name === name);
  const type = TYPES[reducer];
  if (!declared || type === undefined || declared.type === type) return [];
  const message = `the reducer ${reducer} makes an ${type}, and the variable "${name}" is a ${declared.type}`;
  return [{ pointer: `${pointer}/reducer`, message }];
}
