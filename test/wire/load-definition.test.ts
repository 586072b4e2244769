// Which definitions can be run here, and what is told about the others (workflow-definition.schema.json;
// conformance/fixtures.md).
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DEFINITION_BYTES } from '../../src/rules/limits.ts';
import { checkDefinition, isOfType } from '../../src/wire/load-definition.ts';
import { NODE_TYPE_IDS } from '../../src/wire/validators.ts';

const context = { nodeTypes: new Set(NODE_TYPE_IDS), agents: (id: string) => id === 'core.demo' };

const chain = JSON.parse(
  readFileSync(new URL('../fixtures/definitions/chain.json', import.meta.url), 'utf8'),
) as Record<string, unknown>;

const node = (id: string, typeId: string, more: object = {}) => ({
  ...{ id, typeId, name: id, position: { x: 0, y: 0 }, config: {}, inputs: {} },
  ...more,
});
const nodes = (...list: object[]) => ({ nodes: list, edges: [] });
const condition = (value: object) => ({
  nodes: [node('a', 'core.noop'), node('b', 'core.noop')],
  edges: [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'b', condition: value }],
});
const gate = (config: object) => nodes(node('g', 'core.approvalGate', { config }));
const ask = (questions: unknown) =>
  nodes(node('q', 'core.clarificationGate', { config: { questions } }));
const settings = (value: object) => nodes(node('a', 'core.noop', { settings: value }));

/** `pointer code` of each fault. */
function faults(change: object): string[] {
  const checked = checkDefinition({ ...chain, ...change }, context);
  return checked.ok ? [] : checked.faults.map((fault) => `${fault.pointer} ${fault.code}`);
}

describe('accepted unchanged', () => {
  const fine: Record<string, object> = {
    'the sample': {},
    'every passive node type': nodes(
      ...['core.start', 'core.noop', 'core.identity', 'core.end', 'core.fail'].map((it) =>
        node(it, it),
      ),
    ),
    'the four spellings of a delay': nodes(
      ...['ms', 'durationMs', 'delayMs'].map((name) =>
        node(name, 'core.delay', { config: { [name]: 300 } }),
      ),
      node('port', 'core.delay', { inputs: { delayMs: { type: 'static', value: 5 } } }),
    ),
    'an approval gate': gate({
      title: 't',
      actions: ['accept', 'reject', 'ask'],
      requiredApprovals: 1,
    }),
    'answers of its own, each with its effect': gate({
      actions: [
        { action: 'accept', label: 'Pay it' },
        { action: 'approve', effect: 'continue' },
        { action: 'refine', effect: 'end', label: 'Send it back' },
        { action: 'why', effect: 'ask-again' },
      ],
    }),
    'an answer that goes another way, over an edge with a condition': {
      nodes: [
        node('g', 'core.approvalGate', {
          config: { actions: ['accept', { action: 'later', effect: 'route' }] },
        }),
        node('w', 'core.noop'),
      ],
      edges: [
        {
          ...{ id: 'e', sourceNodeId: 'g', targetNodeId: 'w' },
          condition: { type: 'equals', left: 'outputs.action', right: 'later' },
        },
      ],
    },
    'a clarification gate': ask([{ id: 'q1', question: '?', schema: { type: 'string' } }]),
    'an agent node': nodes(node('a', 'core.agent', { agent: { agentId: 'core.demo' } })),
    'RFC 0002 §A a ref in the words of the RFC': nodes(
      node('a', 'core.agent', {
        agent: { agentId: 'core.demo', modelClass: 'writing', agentSharing: 'isolated' },
      }),
    ),
    'RFC 0002 §A8 a ref that shares its context': nodes(
      node('a', 'core.agent', { agent: { agentId: 'core.demo', agentSharing: 'shared:desk' } }),
    ),
    'an identity with a pin of any agent': nodes(
      node('a', 'core.identity', { agent: { agentId: 'host:anyone', name: 'n' } }),
    ),
    'every condition that is evaluated': {
      nodes: [node('a', 'core.conditional'), node('b', 'core.noop')],
      edges: ['equals', 'notEquals', 'contains', 'regex', 'truthy', 'falsy'].map((type) => ({
        ...{ id: type, sourceNodeId: 'a', targetNodeId: 'b' },
        condition: { type, left: 'outputs.x', right: '^a+$' },
      })),
    },
    'retries and a timeout': settings({
      retry: { maxAttempts: 3, initialDelayMs: 0, backoff: 2, maxDelayMs: 10 },
      timeoutMs: 5,
    }),
    'settings of other hosts': settings({ colour: 'red' }),
    'config fields of other hosts': nodes(
      node('a', 'core.identity', { config: { memoryAction: 'x' } }),
    ),
    'a trigger without an id': { triggers: [{ type: 'manual' }] },
    'a memory that no agent reads': nodes(
      node('a', 'core.identity', { agent: { agentId: 'host:anyone', memoryRef: 'm' } }),
    ),
    'a loop': {
      nodes: [node('a', 'core.noop'), node('b', 'core.noop')],
      edges: [
        { id: '1', sourceNodeId: 'a', targetNodeId: 'b' },
        { id: '2', sourceNodeId: 'b', targetNodeId: 'a' },
      ],
    },
    'a long node id': nodes(node('n'.repeat(500), 'core.noop')),
    'a configurableSchema': {
      configurableSchema: { type: 'object', properties: { mode: { enum: ['a'] } } },
    },
  };
  test.each(Object.entries(fine))('workflow-definition.schema.json: %s', (_, change) => {
    const json = { ...chain, ...change };
    const checked = checkDefinition(json, context);
    expect(checked).toEqual({ ok: true, definition: json });
  });
});

const supervisor = (id: string, agentId: string, config: object = {}) =>
  node(id, 'core.orchestrator.supervisor', { agent: { agentId }, config: { ...config } });
const dispatches = (config: object) =>
  nodes(supervisor('a', 'core.demo'), node('b', 'core.dispatch', { config: { ...config } }));

describe('refused', () => {
  const cases: Record<string, [object, string[]]> = {
    'names that every object has': [
      {
        ...nodes(
          node('constructor', 'core.noop', {
            inputs: { toString: { type: 'connection', nodeId: 'b', outputKey: 'valueOf' } },
          }),
          node('__proto__', 'core.noop'),
          node('b', 'core.noop'),
        ),
        edges: [{ id: 'hasOwnProperty', sourceNodeId: 'b', targetNodeId: 'constructor' }],
        variables: [{ name: 'isPrototypeOf', type: 'number' }],
      },
      [
        '/nodes/0/id validation_error',
        '/nodes/0/inputs/toString validation_error',
        '/nodes/0/inputs/toString/outputKey validation_error',
        '/nodes/1/id validation_error',
        '/edges/0/id validation_error',
        '/variables/0/name validation_error',
      ],
    ],
    'such names in a mapping, of which one would be a prototype': [
      nodes(
        supervisor('a', 'core.demo'),
        node('b', 'core.dispatch', {
          config: {
            inputMapping: { order: 'constructor' },
            perWorkerOutputMappings: { w: Object.fromEntries([['__proto__', 'toString']]) },
          },
        }),
        node('c', 'core.subWorkflow', {
          config: { workflowId: 'w', outputMapping: Object.fromEntries([['__proto__', 'got']]) },
        }),
      ),
      [
        '/nodes/1/config/inputMapping/order validation_error',
        '/nodes/1/config/perWorkerOutputMappings/w/__proto__ validation_error',
        '/nodes/1/config/perWorkerOutputMappings/w/__proto__ validation_error',
        '/nodes/2/config/outputMapping/__proto__ validation_error',
      ],
    ],
    'an unknown root field': [{ colour: 1 }, ['/colour validation_error']],
    'an id of the wrong form': [{ id: 'Upper' }, ['/id validation_error']],
    'no nodes': [{ nodes: [] }, ['/nodes validation_error']],
    'an unknown port type': [
      nodes(node('a', 'core.noop', { inputs: { p: { type: 'formula' } } })),
      ['/nodes/0/inputs/p/type validation_error'],
    ],
    'a port without its value': [
      nodes(node('a', 'core.noop', { inputs: { p: { type: 'static' } } })),
      ['/nodes/0/inputs/p validation_error'],
    ],
    'a dangling edge': [
      { edges: [{ id: 'e', sourceNodeId: 'start', targetNodeId: 'nowhere' }] },
      ['/edges/0/targetNodeId validation_error'],
    ],
    'a duplicate node': [
      nodes(node('a', 'core.noop'), node('a', 'core.noop')),
      ['/nodes/1/id validation_error'],
    ],
    'an unknown node type': [nodes(node('a', 'acme.magic')), ['/nodes/0/typeId validation_error']],
    'a type named like a property of objects': [
      nodes(node('a', 'toString')),
      ['/nodes/0/typeId validation_error'],
    ],
    'a test node type': [
      nodes(node('a', 'core.conformance.mock-agent')),
      ['/nodes/0/typeId capability_required'],
    ],
    'RFC 0002 §A8 a ref that shares its context with nobody': [
      nodes(node('a', 'core.agent', { agent: { agentId: 'core.demo', agentSharing: 'shared:' } })),
      ['/nodes/0/agent/agentSharing validation_error'],
    ],
    'RFC 0002 §A a ref of no class of models': [
      nodes(
        node('a', 'core.agent', { agent: { agentId: 'core.demo', modelClass: 'magic' as never } }),
      ),
      ['/nodes/0/agent/modelClass validation_error'],
    ],
    'RFC 0006 a supervisor without an agent': [
      nodes(node('a', 'core.orchestrator.supervisor')),
      ['/nodes/0 validation_error'],
    ],
    'RFC 0006 a supervisor of an agent that is not there': [
      nodes(node('a', 'core.orchestrator.supervisor', { agent: { agentId: 'local.no.body' } })),
      ['/nodes/0/agent/agentId agent_not_found'],
    ],
    'RFC 0006 CO-2 two orchestrators': [
      nodes(supervisor('a', 'core.demo'), supervisor('b', 'core.other')),
      ['/nodes/1/agent/agentId agent_not_found', '/nodes/1/agent/agentId validation_error'],
    ],
    'RFC 0006 a plan of what is no decision': [
      nodes(supervisor('a', 'core.demo', { mockDecisions: [{ kind: 'magic' }] })),
      ['/nodes/0/config/mockDecisions/0 validation_error'],
    ],
    'RFC 0007 a dispatch without a supervisor': [
      nodes(node('a', 'core.dispatch')),
      ['/nodes/0 validation_error'],
    ],
    'dispatch-config.schema.json: a member that it has not': [
      dispatches({ memoryScopeIsolation: 'isolated' }),
      ['/nodes/1/config/memoryScopeIsolation validation_error'],
    ],
    'dispatch-config.schema.json: a conversation': [
      dispatches({ askUserRouting: 'conversation' }),
      ['/nodes/1/config/askUserRouting validation_error'],
    ],
    'RFC 0118 a join of nothing parallel': [
      dispatches({ joinPolicy: { mode: 'first' }, maxConcurrency: 2 }),
      ['/nodes/1/config/joinPolicy', '/nodes/1/config/maxConcurrency'].map(
        (pointer) => `${pointer} validation_error`,
      ),
    ],
    'RFC 0118 a quorum of nobody': [
      dispatches({ fanOutPolicy: 'parallel', joinPolicy: { mode: 'quorum' } }),
      ['/nodes/1/config/joinPolicy/quorum validation_error'],
    ],
    'a conversation of some alone': [
      nodes(node('a', 'core.conversationGate', { config: { participants: [] } })),
      ['/nodes/0/config/participants capability_required'],
    ],
    'a conversation with schemas that are none': [
      nodes(
        node('a', 'core.conversationGate', {
          config: { turnSchema: { type: 'nope' }, outcomeSchema: { type: 'nope' } },
        }),
      ),
      [
        '/nodes/0/config/turnSchema validation_error',
        '/nodes/0/config/outcomeSchema validation_error',
      ],
    ],
    'a conversation of more turns than there may be': [
      nodes(node('a', 'core.conversationGate', { config: { maxTurns: 201 } })),
      ['/nodes/0/config/maxTurns validation_error'],
    ],
    'an expression port': [
      nodes(node('a', 'core.noop', { inputs: { p: { type: 'expression', expression: '1+1' } } })),
      ['/nodes/0/inputs/p validation_error'],
    ],
    'an expression condition': [
      condition({ type: 'expression', expression: 'true' }),
      ['/edges/0/condition/type validation_error'],
    ],
    'a condition without left': [
      condition({ type: 'truthy' }),
      ['/edges/0/condition validation_error'],
    ],
    'a condition without right': [
      condition({ type: 'equals', left: 'a' }),
      ['/edges/0/condition validation_error'],
    ],
    'look-ahead in a condition': [
      condition({ type: 'regex', left: 'a', right: '(?=a)' }),
      ['/edges/0/condition/right validation_error'],
    ],
    'a long pattern': [
      condition({ type: 'regex', left: 'a', right: 'a'.repeat(1025) }),
      ['/edges/0/condition/right validation_error'],
    ],
    'a pattern that takes long': [
      condition({ type: 'regex', left: 'a', right: '(a?){500}b' }),
      ['/edges/0/condition/right validation_error'],
    ],
    'a pattern that is no text': [
      condition({ type: 'regex', left: 'a', right: 5 }),
      ['/edges/0/condition/right validation_error'],
    ],
    'an agent node without agent': [nodes(node('a', 'core.agent')), ['/nodes/0 validation_error']],
    'an unknown agent': [
      nodes(node('a', 'core.agent', { agent: { agentId: 'core.none' } })),
      ['/nodes/0/agent/agentId agent_not_found'],
    ],
    'a deployment channel': [
      nodes(node('a', 'core.identity', { agent: { agentId: 'core.demo', channel: 'stable' } })),
      ['/nodes/0/agent/channel validation_error'],
    ],
    'a memory of an agent that is invoked': [
      nodes(node('a', 'core.agent', { agent: { agentId: 'core.demo', memoryRef: 'm' } })),
      ['/nodes/0/agent/memoryRef capability_required'],
    ],
    'a credential': [
      nodes(node('a', 'core.noop', { credentialsRef: 'c' })),
      ['/nodes/0/credentialsRef capability_required'],
    ],
    'a trigger by a channel': [
      { triggers: [{ type: 'channel-write', config: { channel: 'c' } }] },
      ['/triggers/0/type validation_error'],
    ],
    'a target that is not declared': [
      nodes(node('a', 'core.setVariable', { config: { variableName: 'v' } })),
      ['/nodes/0/config/variableName validation_error'],
    ],
    'a config without a required field': [
      nodes(node('a', 'core.setVariable')),
      ['/nodes/0/config validation_error'],
    ],
    'a negative delay': [
      nodes(node('a', 'core.delay', { config: { ms: -1 } })),
      ['/nodes/0/config/ms validation_error'],
    ],
    'no actions': [gate({ actions: [] }), ['/nodes/0/config/actions validation_error']],
    // [I96]
    'answers whose effect nobody declares': [
      gate({ actions: ['approve', 'deny', 'refine', 'toString'] }),
      [0, 1, 2, 3].map((at) => `/nodes/0/config/actions/${at} validation_error`),
    ],
    'another effect of an answer of the protocol': [
      gate({
        actions: [
          { action: 'reject', effect: 'continue' },
          { action: 'edit', effect: 'end' },
        ],
      }),
      [0, 1].map((at) => `/nodes/0/config/actions/${at} validation_error`),
    ],
    'an effect that there is not': [
      gate({ actions: [{ action: 'deny', effect: 'fail' }] }),
      ['/nodes/0/config/actions/0 validation_error'],
    ],
    'an answer twice, once by its old name': [
      gate({ actions: ['accept', 'edit', 'edit-accept'] }),
      ['/nodes/0/config/actions/2 validation_error'],
    ],
    'more answers than can be told apart': [
      gate({
        actions: Array.from({ length: 13 }, (_, at) => ({ action: `a${at}`, effect: 'end' })),
      }),
      ['/nodes/0/config/actions/12 validation_error'],
    ],
    'an answer that goes another way, which no edge says': [
      gate({ actions: ['accept', { action: 'later', effect: 'route' }] }),
      ['/nodes/0/config/actions/1 validation_error'],
    ],
    'votes, where nobody is told apart': [
      gate({ requiredApprovals: 2 }),
      ['/nodes/0/config/requiredApprovals capability_required'],
    ],
    'who may answer, where nobody is told apart': [
      gate({ approversList: ['ada'], approverRoleRefs: ['boss'], audience: { roles: ['boss'] } }),
      ['approversList', 'approverRoleRefs', 'audience'].map(
        (field) => `/nodes/0/config/${field} capability_required`,
      ),
    ],
    'no approvals': [
      gate({ requiredApprovals: 0 }),
      ['/nodes/0/config/requiredApprovals validation_error'],
    ],
    'more questions than a human is asked at once': [
      ask(Array.from({ length: 51 }, (_, at) => ({ id: `q${at}`, question: '?' }))),
      ['/nodes/0/config/questions validation_error'],
    ],
    ...Object.fromEntries(
      ['approval_rejected', 'escalation_rejected'].map((code) => [
        `a failure that says of itself that a person declined: ${code}`,
        [
          nodes(node('a', 'core.fail', { config: { code } })),
          ['/nodes/0/config/code validation_error'],
        ],
      ]),
    ),
    'no questions': [ask([]), ['/nodes/0/config/questions validation_error']],
    'a question twice': [
      ask([1, 2].map(() => ({ id: 'q', question: '?' }))),
      ['/nodes/0/config/questions/1/id validation_error'],
    ],
    'a question named as what every object has': [
      ask([{ id: '__proto__', question: '?' }]),
      ['/nodes/0/config/questions/0/id validation_error'],
    ],
    'a question with a wrong schema': [
      ask([{ id: 'q', question: '?', schema: { $ref: 'http://x.test' } }]),
      ['/nodes/0/config/questions/0/schema/$ref validation_error'],
    ],
    'no attempts': [
      settings({ retry: { maxAttempts: 0 } }),
      ['/nodes/0/settings/retry/maxAttempts validation_error'],
    ],
    'a misspelt retry': [
      settings({ retry: { attempts: 2 } }),
      ['/nodes/0/settings/retry/attempts validation_error'],
    ],
    'a time limit of 0': [
      settings({ timeoutMs: 0 }),
      ['/nodes/0/settings/timeoutMs validation_error'],
    ],
    'a default of another type': [
      { variables: [{ name: 'v', type: 'array', defaultValue: {} }] },
      ['/variables/0/defaultValue validation_error'],
    ],
    'a wrong configurableSchema': [
      { configurableSchema: { type: 'text' } },
      ['/configurableSchema validation_error'],
    ],
    'a large definition': [
      { metadata: { note: 'a'.repeat(DEFINITION_BYTES) } },
      [' payload_too_large'],
    ],
    'several faults at once': [
      nodes(
        node('a', 'acme.magic'),
        node('b', 'core.agent'),
        node('c', 'core.noop', { settings: { timeoutMs: -1 } }),
      ),
      [
        '/nodes/0/typeId validation_error',
        '/nodes/1 validation_error',
        '/nodes/2/settings/timeoutMs validation_error',
      ],
    ],
  };
  test.each(Object.entries(cases))(
    'workflow-definition.schema.json: %s',
    (_, [change, expected]) => {
      expect(faults(change)).toEqual(expected);
    },
  );

  test('workflow-definition.schema.json: a missing root field', () => {
    const without = Object.fromEntries(
      Object.entries(chain).filter(([name]) => name !== 'settings'),
    );
    expect(checkDefinition(without, context)).toMatchObject({
      ok: false,
      faults: [{ pointer: '', code: 'validation_error' }],
    });
  });

  test('capabilities.md §Refusal: a gated type names its capability, itself and its node', () => {
    const checked = checkDefinition(
      { ...chain, ...nodes(node('a', 'core.conformance.mock-agent')) },
      context,
    );
    expect(checked).toMatchObject({
      faults: [
        {
          details: {
            requiredCapability: 'conformance.mockAgent',
            offendingTypeId: 'core.conformance.mock-agent',
            nodeId: 'a',
          },
        },
      ],
    });
  });

  test.each([null, [], 'text', 5, {}])('what is no definition: %j', (json) => {
    expect(checkDefinition(json, context).ok).toBe(false);
  });
});

test.each([
  ['string', 'a', true],
  ['string', 1, false],
  ['number', 1, true],
  ['number', '1', false],
  ['boolean', false, true],
  ['boolean', 0, false],
  ['array', [], true],
  ['array', {}, false],
  ['object', {}, true],
  ['object', [], false],
  ['object', null, false],
] as const)('workflow-definition.schema.json: type %s and %j: %j', (type, value, expected) => {
  expect(isOfType(type, value)).toBe(expected);
});

describe('conformance/fixtures.md: in test mode', () => {
  const pointers = (change: object): string[] => {
    const checked = checkDefinition({ ...chain, ...change }, { ...context, testMode: true });
    return checked.ok ? [] : checked.faults.map((fault) => `${fault.pointer} ${fault.code}`);
  };

  test('a hook that this release lacks is refused, not ignored', () => {
    const config = { memoryAction: 'write-then-read', emitDuplicateMessageId: true };
    const inputs = { memoryAction: { type: 'static', value: 'ttl-probe' } };
    expect(pointers(nodes(node('a', 'core.identity', { config, inputs })))).toEqual([
      '/nodes/0/config/memoryAction capability_required',
      '/nodes/0/inputs/memoryAction capability_required',
    ]);
  });

  test('nodes made for tests are for definitions made for tests, in test mode (node-packs.md)', () => {
    const mocked = nodes(
      node('a', 'core.conformance.mock-agent', { config: { mockConfidence: 1 } }),
    );
    const ofTests = { ...mocked, id: 'conformance-mine' };
    expect(pointers(ofTests)).toEqual([]);
    expect(pointers(mocked)).toEqual(['/nodes/0/typeId capability_required']);
    expect(faults(ofTests)).toEqual(['/nodes/0/typeId capability_required']);
  });

  test.each<[string, object, boolean]>([
    ['a call with a result', { mockToolCalls: [{ toolId: 't', result: 1 }] }, true],
    [
      'a call that fails',
      { mockToolCalls: [{ toolId: 't', error: { error: 'e', message: '' } }] },
      true,
    ],
    ['a call with neither', { mockToolCalls: [{ toolId: 't' }] }, false],
    [
      'a call with both',
      { mockToolCalls: [{ toolId: 't', result: 1, error: { error: 'e', message: '' } }] },
      false,
    ],
    ['reasoning without a summary', { mockReasoning: { trace: 't' } }, false],
    ['reasoning that is false', { mockReasoning: false }, false],
    ['a confidence above one', { mockConfidence: 1.1 }, false],
    ['a short agentId', { agentId: 'ab' }, false],
    ['a decision without a decision', { mockDecision: { confidence: 1 } }, false],
    ['a handoff to nobody', { mockHandoff: {} }, false],
    ['a field that it does not know', { mockEverything: true }, false],
  ])('RFC 0023, the closed config of core.conformance.mock-agent: %s', (_, config, ok) => {
    const mocked = nodes(node('a', 'core.conformance.mock-agent', { config: { ...config } }));
    expect(pointers({ ...mocked, id: 'conformance-mine' }).length === 0).toBe(ok);
  });

  test('what must be installed for the run is refused in every mode', () => {
    const change = { metadata: { requiresAgentId: 'core.demo' } };
    expect(pointers(change)).toEqual(['/metadata/requiresAgentId capability_required']);
    expect(faults(change)).toEqual(['/metadata/requiresAgentId capability_required']);
  });
});
