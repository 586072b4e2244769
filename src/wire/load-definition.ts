// Whether a workflow definition can be run here (workflow-definition.schema.json; conformance/fixtures.md): shape,
// graph, node types, configs, conditions, schemas. One fault per place, each with its JSON pointer; nothing is repaired
// or filled in.
import { answersSchema, conversationSchema, type Question } from '../rules/answer-schemas.ts';
import { isTestDefinition, LACKING, REASONS, TEST_NODE_TYPES } from '../rules/capabilities.ts';
import { graphFaults } from '../rules/definition-graph.ts';
import type { ErrorCode } from '../rules/errors.ts';
import { jsonBytes, type JsonObject, pointerSegment } from '../rules/json.ts';
import { DEFINITION_BYTES } from '../rules/limits.ts';
import { invokesAgent, isPlanned } from '../rules/orchestrator.ts';
import { channelFaults } from './channel-faults.ts';
import type { Fault } from './checked.ts';
import { gateFaults } from './gate-faults.ts';
import { conditionPatternFault } from './linear-pattern.ts';
import { orchestrationFaults } from './orchestration-faults.ts';
import type {
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
  WorkflowVariable,
} from '../../schemas/types.generated.ts';
import { COMPOSED, compileUserSchema } from './user-schema.ts';
import { validate } from './validators.ts';

export interface DefinitionFault extends Fault {
  readonly code: Extract<
    ErrorCode,
    | 'validation_error'
    | 'capability_required'
    | 'channel_access_denied'
    | 'agent_not_found'
    | 'payload_too_large'
  >;
  readonly details?: JsonObject;
}

export type DefinitionCheck =
  | { readonly ok: true; readonly definition: WorkflowDefinition }
  | { readonly ok: false; readonly faults: readonly [DefinitionFault, ...DefinitionFault[]] };

export interface DefinitionContext {
  /** Registered typeIds. */
  readonly nodeTypes: ReadonlySet<string>;
  /** Whether an agent with this id can be invoked. */
  readonly agents: (agentId: string) => boolean;
  /**
   * Test hooks count (conformance/fixtures.md): a definition whose hook this release lacks is refused, not run without
   * it.
   */
  readonly testMode?: boolean;
}

export function checkDefinition(json: unknown, context: DefinitionContext): DefinitionCheck {
  const checked = validate.definition(json);
  if (!checked.ok) return refused(checked.errors.map(asFault));
  const definition = checked.value;
  if (jsonBytes(definition) > DEFINITION_BYTES) {
    return refused([
      {
        pointer: '',
        message: `is larger than ${DEFINITION_BYTES} bytes`,
        code: 'payload_too_large',
      },
    ]);
  }
  const faults = [
    ...graphFaults(definition).map(asFault),
    ...nameFaults(definition).map(asFault),
    ...definition.nodes.flatMap((node, index) =>
      nodeFaults(node, `/nodes/${index}`, { ...context, definition }),
    ),
    ...definition.edges.flatMap((edge, index) =>
      conditionFaults(edge.condition, `/edges/${index}/condition`),
    ),
    ...definition.variables.flatMap((variable, index) =>
      variableFaults(variable, `/variables/${index}`),
    ),
    ...triggerFaults(definition),
    ...channelFaults(definition),
    ...orchestrationFaults(definition).map(asFault),
    ...gateFaults(definition, context),
    ...rootFaults(definition),
  ];
  return faults.length === 0 ? { ok: true, definition } : refused(faults);
}

/**
 * What a run keeps by name is looked up in plain objects, in workflow code and in the fold: a name that every object has
 * would be found before it is there.
 */
function nameFaults({ nodes, edges, variables, channels }: WorkflowDefinition): Fault[] {
  const names = [
    ...nodes.flatMap((node, index): Named[] => [
      [`/nodes/${index}/id`, node.id],
      ...portNames(node, `/nodes/${index}/inputs`),
      ...mappedNames(node, `/nodes/${index}/config`),
    ]),
    ...edges.map(({ id }, index): [string, string] => [`/edges/${index}/id`, id]),
    ...variables.map(({ name }, index): [string, string] => [`/variables/${index}/name`, name]),
    ...Object.keys(channels ?? {}).map((name): [string, string] => [
      `/channels/${pointerSegment(name)}`,
      name,
    ]),
  ];
  return names
    .filter(([, name]) => isCommonName(name))
    .map(([pointer, name]) => nameFault(pointer, name));
}

/** Where a name stands, and the name. */
type Named = [pointer: string, name: string];

function portNames({ inputs }: WorkflowNode, pointer: string): Named[] {
  return Object.entries(inputs).flatMap(([name, port]): Named[] => {
    const at = `${pointer}/${pointerSegment(name)}`;
    const own: Named = [at, name];
    return port.type === 'connection' ? [own, [`${at}/outputKey`, port.outputKey]] : [own];
  });
}

/** Variables of a run and of its children, on both sides of a mapping; of workers each may have its own. */
function mappedNames({ config }: WorkflowNode, pointer: string): Named[] {
  const each = ['perWorkerInputMappings', 'perWorkerOutputMappings'].flatMap((field) =>
    Object.entries(objectOf(config[field])).map(
      ([worker, mapping]) => [`${field}/${pointerSegment(worker)}`, mapping] as const,
    ),
  );
  const all = ['inputMapping', 'outputMapping'].map((field) => [field, config[field]] as const);
  return [...all, ...each].flatMap(([place, mapping]) =>
    Object.entries(objectOf(mapping)).flatMap(([name, from]): Named[] => {
      const at = `${pointer}/${place}/${pointerSegment(name)}`;
      return [name, from].flatMap((one): Named[] => (typeof one === 'string' ? [[at, one]] : []));
    }),
  );
}

/** Of a config whose shape is another check's. */
function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

function isCommonName(name: string): boolean {
  return Object.hasOwn(Object.prototype, name);
}

function nameFault(pointer: string, name: string): Fault {
  return { pointer, message: `"${name}" is not allowed as a name` };
}

function refused(faults: DefinitionFault[]): DefinitionCheck {
  const [first, ...rest] = faults;
  if (!first) throw new Error('a refusal needs a fault');
  return { ok: false, faults: [first, ...rest] };
}

function asFault({ pointer, message }: Fault): DefinitionFault {
  return { pointer, message, code: 'validation_error' };
}

function below(pointer: string, errors: readonly Fault[]): DefinitionFault[] {
  return errors.map((fault) => asFault({ ...fault, pointer: `${pointer}${fault.pointer}` }));
}

function capabilityFault(
  pointer: string,
  requiredCapability: string,
  details: JsonObject = {},
): DefinitionFault {
  const message = `needs the capability ${requiredCapability}, which this host does not offer`;
  return {
    pointer,
    message,
    code: 'capability_required',
    details: { requiredCapability, ...details },
  };
}

/** One fault for each field that asks for what this host lacks. */
function lackingFields(
  value: object,
  fields: ReadonlyMap<string, string>,
  pointer: string,
): DefinitionFault[] {
  return asked(value, fields).map(([field, capability]) =>
    capabilityFault(`${pointer}/${field}`, capability),
  );
}

function asked(value: object, fields: ReadonlyMap<string, string>): [string, string][] {
  return [...fields].filter(
    ([field]) =>
      (value as Readonly<Record<string, unknown>>)[field] !== undefined &&
      Object.hasOwn(value, field),
  );
}

/** The fault of an input or a condition whose type this host lacks. */
function typeFault(type: string, pointer: string): DefinitionFault[] {
  const message = REASONS.valueTypes.get(type);
  return message === undefined ? [] : [asFault({ pointer, message })];
}

type NodeContext = DefinitionContext & { readonly definition: WorkflowDefinition };

function nodeFaults(node: WorkflowNode, pointer: string, context: NodeContext): DefinitionFault[] {
  const settings = validate.nodeSettings(node.settings ?? {});
  return [
    ...typeFaults(node, pointer, context),
    ...Object.entries(node.inputs).flatMap(([name, { type }]) =>
      typeFault(type, `${pointer}/inputs/${pointerSegment(name)}`),
    ),
    ...(settings.ok ? [] : below(`${pointer}/settings`, settings.errors)),
    ...agentFaults(node, pointer, context),
    ...(context.testMode ? hookFaults(node, pointer) : []),
    ...lackingFields(node, LACKING.nodeFields, pointer),
  ];
}

function typeFaults(node: WorkflowNode, pointer: string, context: NodeContext): DefinitionFault[] {
  const { typeId, id: nodeId } = node;
  const details = { offendingTypeId: typeId, nodeId };
  const ofTests = TEST_NODE_TYPES.get(typeId);
  if (ofTests && !(context.testMode && isTestDefinition(context.definition)))
    return [capabilityFault(`${pointer}/typeId`, ofTests, details)];
  if (!context.nodeTypes.has(typeId)) {
    const capability = LACKING.nodeTypes.get(typeId);
    if (capability) return [capabilityFault(`${pointer}/typeId`, capability, details)];
    return [
      {
        ...asFault({ pointer: `${pointer}/typeId`, message: `there is no node type ${typeId}` }),
        details,
      },
    ];
  }
  const config = validate.nodeConfig(typeId, node.config);
  if (!config.ok) return below(`${pointer}/config`, config.errors);
  switch (typeId) {
    case 'core.setVariable':
      return targetFaults(node, pointer, context.definition);
    case 'core.fail':
      return failFaults(node, pointer);
    case 'core.clarificationGate':
      return questionFaults(node, pointer);
    case 'core.conversationGate':
      return talkFaults(node, pointer);
    default:
      return [];
  }
}

/** Codes by which a failure is shown as a person's no. */
const DECLINING: ReadonlySet<unknown> = new Set<ErrorCode>([
  'approval_rejected',
  'escalation_rejected',
]);

function failFaults({ config: { code } }: WorkflowNode, pointer: string): DefinitionFault[] {
  if (!DECLINING.has(code)) return [];
  const message = 'this code says that a person declined: give another one';
  return [asFault({ pointer: `${pointer}/config/code`, message })];
}

function talkFaults({ config }: WorkflowNode, pointer: string): DefinitionFault[] {
  const schemas = (['turnSchema', 'outcomeSchema'] as const).flatMap((field) => {
    const compiled = config[field] === undefined ? undefined : compileUserSchema(config[field]);
    return compiled && !compiled.ok ? below(`${pointer}/config/${field}`, compiled.errors) : [];
  });
  return [
    ...(schemas.length > 0
      ? schemas
      : togetherFaults(conversationSchema(config), `${pointer}/config`)),
    ...lackingFields(config, LACKING.talkFields, `${pointer}/config`),
  ];
}

/** Of schemas that are right by themselves: by the one that the host makes of them, no answer could be checked. */
function togetherFaults(made: JsonObject, pointer: string): DefinitionFault[] {
  const compiled = compileUserSchema(made, COMPOSED);
  if (compiled.ok) return [];
  const [{ message }] = compiled.errors;
  return [
    asFault({ pointer, message: `has schemas that cannot be used in its question: ${message}` }),
  ];
}

function targetFaults(
  node: WorkflowNode,
  pointer: string,
  definition: WorkflowDefinition,
): DefinitionFault[] {
  const name = String(node.config.variableName);
  if (definition.variables.some((variable) => variable.name === name)) return [];
  if (Object.hasOwn(definition.channels ?? {}, name)) return [];
  return [
    asFault({
      pointer: `${pointer}/config/variableName`,
      message: `there is no variable "${name}"`,
    }),
  ];
}

/** Half a character has no place in a URI, which names a question's schema. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function questionFaults(node: WorkflowNode, pointer: string): DefinitionFault[] {
  const questions = node.config.questions as readonly Question[];
  const faults = questions.flatMap(({ id, schema }, index) => {
    const place = `${pointer}/config/questions/${index}`;
    const compiled = schema === undefined ? undefined : compileUserSchema(schema);
    return [
      ...(questions.findIndex((question) => question.id === id) < index
        ? [asFault({ pointer: `${place}/id`, message: `"${id}" is already used` })]
        : []),
      ...(isCommonName(id) || (schema !== undefined && LONE_SURROGATE.test(id))
        ? [asFault(nameFault(`${place}/id`, id))]
        : []),
      ...(compiled && !compiled.ok ? below(`${place}/schema`, compiled.errors) : []),
    ];
  });
  if (faults.length > 0) return faults;
  return togetherFaults(answersSchema(questions), `${pointer}/config/questions`);
}

function agentFaults(node: WorkflowNode, pointer: string, context: NodeContext): DefinitionFault[] {
  const { agent, typeId } = node;
  const { definition, testMode } = context;
  const isInvoked = invokesAgent(node) && !isPlanned(node, { definition, testHooks: testMode });
  if (!agent) {
    if (!isInvoked) return [];
    return [asFault({ pointer, message: `a node of type ${typeId} must have the field agent` })];
  }
  const faults: DefinitionFault[] = [];
  if (isInvoked && !context.agents(agent.agentId)) {
    const message = `there is no agent "${agent.agentId}"`;
    faults.push({
      pointer: `${pointer}/agent/agentId`,
      message,
      code: 'agent_not_found',
      details: { agentId: agent.agentId },
    });
  }
  faults.push(
    ...asked(agent, REASONS.refFields).map(([field, message]) =>
      asFault({ pointer: `${pointer}/agent/${field}`, message }),
    ),
  );
  if (isInvoked) faults.push(...lackingFields(agent, LACKING.agentFields, `${pointer}/agent`));
  return faults;
}

function hookFaults(node: WorkflowNode, pointer: string): DefinitionFault[] {
  return (['config', 'inputs'] as const).flatMap((place) =>
    lackingFields(node[place], LACKING.hooks, `${pointer}/${place}`),
  );
}

function conditionFaults(condition: WorkflowEdge['condition'], pointer: string): DefinitionFault[] {
  if (!condition) return [];
  const { type, left, right } = condition;
  const faults = typeFault(type, `${pointer}/type`);
  if (faults.length > 0) return faults;
  if (left === undefined) faults.push(asFault({ pointer, message: 'must have the field left' }));
  if (type === 'truthy' || type === 'falsy') return faults;
  if (right === undefined) faults.push(asFault({ pointer, message: 'must have the field right' }));
  else if (type === 'regex') {
    const message = typeof right === 'string' ? conditionPatternFault(right) : 'must be a pattern';
    if (message !== undefined) faults.push(asFault({ pointer: `${pointer}/right`, message }));
  }
  return faults;
}

function variableFaults(variable: WorkflowVariable, pointer: string): DefinitionFault[] {
  const { type, defaultValue } = variable;
  if (defaultValue === undefined || isOfType(type, defaultValue)) return [];
  return [
    asFault({
      pointer: `${pointer}/defaultValue`,
      message: `must be ${type === 'object' || type === 'array' ? 'an' : 'a'} ${type}`,
    }),
  ];
}

/** Whether a value has the declared type of a variable (workflow-definition.schema.json). */
export function isOfType(type: WorkflowVariable['type'], value: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
  }
}

function triggerFaults({ triggers }: WorkflowDefinition): DefinitionFault[] {
  return triggers.flatMap(({ type }, index) => {
    const message = REASONS.triggerTypes.get(type);
    return message === undefined ? [] : [asFault({ pointer: `/triggers/${index}/type`, message })];
  });
}

function rootFaults(definition: WorkflowDefinition): DefinitionFault[] {
  const { configurableSchema, metadata } = definition;
  const compiled =
    configurableSchema === undefined ? undefined : compileUserSchema(configurableSchema);
  return [
    ...(compiled && !compiled.ok ? below('/configurableSchema', compiled.errors) : []),
    ...lackingFields(metadata, LACKING.metadata, '/metadata'),
  ];
}
