// Variables of a definition (workflow-definition.schema.json): their types, and what of them is not shown.
import { isJsonObject, type JsonValue } from './json.ts';
import type {
  PortValue,
  WorkflowDefinition,
  WorkflowNode,
  WorkflowVariable,
} from '../../schemas/types.generated.ts';

export function hasType(value: JsonValue, type: WorkflowVariable['type']): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isJsonObject(value);
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
  }
}

/**
 * Variables and channels that are declared sensitive begin with values that are as sensitive: `shown` says what stands in
 * the place of each.
 */
export function withDefaultsShown(
  definition: WorkflowDefinition,
  shown: (value: JsonValue) => JsonValue,
): WorkflowDefinition {
  const { variables, channels } = definition;
  return {
    ...definition,
    variables: variables.map((variable) =>
      variable.sensitive && variable.defaultValue !== undefined
        ? { ...variable, defaultValue: shown(variable.defaultValue as JsonValue) }
        : variable,
    ),
    ...(channels && {
      channels: Object.fromEntries(
        Object.entries(channels).map(([name, channel]) => [
          name,
          channel.sensitive && channel.default !== undefined
            ? { ...channel, default: shown(channel.default as JsonValue) }
            : channel,
        ]),
      ),
    }),
  };
}

/** Nodes whose outputs are their inputs, by name. */
const ECHOES: ReadonlySet<string> = new Set(['core.identity', 'core.end', 'core.setVariable']);

/** Whether the value of an input comes from where it is masked: a variable, a channel, or the output of a node. */
export function isSensitivePort(definition: WorkflowDefinition, port: PortValue): boolean {
  const seen = new Set<PortValue>();
  const { nodes, variables, channels = {} } = definition;
  for (let at: PortValue | undefined = port; at && !seen.has(at);) {
    seen.add(at);
    if (at.type === 'variable') {
      const { variableName: name } = at;
      const isVariable = variables.some((one) => one.name === name && one.sensitive === true);
      return isVariable || (Object.hasOwn(channels, name) && channels[name]?.sensitive === true);
    }
    if (at.type !== 'connection') return false;
    const { nodeId, outputKey }: { nodeId: string; outputKey: string } = at;
    const node: WorkflowNode | undefined = nodes.find(({ id }) => id === nodeId);
    if (node && isMarked(definition, node, outputKey)) return true;
    at = node && echoed(node, outputKey);
  }
  return false;
}

/** The input that an output of the node only repeats. */
function echoed({ typeId, inputs }: WorkflowNode, outputKey: string): PortValue | undefined {
  return ECHOES.has(typeId) && Object.hasOwn(inputs, outputKey) ? inputs[outputKey] : undefined;
}

/** An output that is declared sensitive itself, or stands for what the node writes into a variable that is. */
function isMarked(
  { variables }: WorkflowDefinition,
  node: WorkflowNode,
  outputKey: string,
): boolean {
  if (node.outputSensitivity?.[outputKey] === true) return true;
  const written = node.typeId === 'core.identity' ? outputKey : targetOf(node);
  return variables.some(({ name, sensitive }) => sensitive === true && name === written);
}

/** Whether an output is masked: it is marked so, or the node only repeats what is. */
export function isSensitiveOutput(
  definition: WorkflowDefinition,
  node: WorkflowNode,
  outputKey: string,
): boolean {
  if (isMarked(definition, node, outputKey)) return true;
  const port = echoed(node, outputKey);
  return port !== undefined && isSensitivePort(definition, port);
}

/** The node writes what its definition says into what is declared sensitive. */
const WRITTEN_BY: Readonly<Record<string, 'variableName' | 'channelName'>> = {
  'core.setVariable': 'variableName',
  'core.channelWrite': 'channelName',
};

/** Values that a definition itself has for what it declares sensitive, defaults left out. */
export function sensitiveLiterals({
  nodes,
  variables,
  channels = {},
}: WorkflowDefinition): JsonValue[] {
  const sensitive = new Set([
    ...variables.filter((variable) => variable.sensitive).map(({ name }) => name),
    ...Object.keys(channels).filter((name) => channels[name]?.sensitive),
  ]);
  return nodes
    .filter((node) => sensitive.has(targetOf(node)))
    .flatMap(({ config, inputs }) => {
      const { value } = inputs;
      return [config.value, value?.type === 'static' ? value.value : undefined].filter(
        (literal): literal is JsonValue => literal !== undefined,
      );
    });
}

function targetOf({ typeId, config }: WorkflowNode): string {
  const target = config[WRITTEN_BY[typeId] ?? ''];
  return typeof target === 'string' ? target : '';
}
