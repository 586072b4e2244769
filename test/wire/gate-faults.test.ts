// Which approval gates can be run here (interrupt.md §approval; interrupt-profiles.md §quorum; RFC 0051): what is accepted
// is honoured, so that a field without an effect is refused.
import { describe, expect, it } from 'vitest';
import { nodeTypesOf } from '../../src/rules/capabilities.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { checkDefinition } from '../../src/wire/load-definition.ts';
import type {
  EdgeCondition,
  PortValue,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../schemas/types.generated.ts';
import { chain, definition, edge, node } from '../support/definitions.ts';

/** Where it is loaded, and whether its id is one of definitions made for tests. */
type Place = 'outside test mode' | 'in test mode' | 'made for tests';
const PLACES = ['outside test mode', 'in test mode', 'made for tests'] as const;

function faultsOf(workflow: WorkflowDefinition, place: Place): readonly string[] {
  const testMode = place !== 'outside test mode';
  const checked = checkDefinition(
    place === 'made for tests' ? { ...workflow, id: 'conformance-gate' } : workflow,
    { nodeTypes: nodeTypesOf({ testMode }), agents: () => true, testMode },
  );
  if (checked.ok) return [];
  return checked.faults.map(({ pointer, code, message }) => `${pointer} ${code}: ${message}`);
}

const gated = (config: JsonObject) => chain('gated', [node('g', 'core.approvalGate', { config })]);
const QUORUM = { requiredApprovals: 2 };

type Expected = 'loaded' | 'capability_required' | 'validation_error';
const LOADED = 'loaded';
const LACKING = 'capability_required';
const UNKNOWN = 'validation_error';

/** The last field is what is meant. */
const FIELDS: readonly (readonly [JsonObject, ...Expected[]])[] = [
  [{ title: 't' }, LOADED, LOADED, LOADED],
  [{ timeoutMs: 5 }, LOADED, LOADED, LOADED],
  // Of a quorum: what it takes to tell votes apart is there in test mode.
  [{ requiredApprovals: 2 }, LACKING, LOADED, LOADED],
  [{ requiredApprovals: 100 }, LACKING, LOADED, LOADED],
  [{ requiredApprovals: 101 }, LACKING, UNKNOWN, UNKNOWN],
  [{ approversList: ['ada'] }, LACKING, LOADED, LOADED],
  [{ rejectionPolicy: 'majority' }, UNKNOWN, UNKNOWN, LOADED],
  [{ requiredApprovals: 1, rejectionPolicy: 'majority' }, UNKNOWN, UNKNOWN, LOADED],
  // Of who may answer (RFC 0051): nowhere.
  [{ approverGroupRefs: ['g'] }, LACKING, LACKING, LACKING],
  [{ approverRoleRefs: ['boss'] }, LACKING, LACKING, LACKING],
  [{ audience: { roles: ['boss'] } }, LACKING, LACKING, LACKING],
  [{ overrideBypassesQuorum: true }, LACKING, LACKING, LACKING],
  [{ requiredRole: 'cfo' }, LACKING, LACKING, LACKING],
  [{ requiredScope: 'payments:approve' }, LACKING, LACKING, LACKING],
  [{ quorum: 2 }, LACKING, LACKING, LACKING],
  [{ override: { requiredRole: 'cfo', audited: true } }, LACKING, LACKING, LACKING],
  // What asks for nothing is no question of people.
  [{ requiredApprovals: 1 }, LOADED, LOADED, LOADED],
  [{ overrideBypassesQuorum: false }, LOADED, LOADED, LOADED],
  [{ approversList: [] }, LOADED, LOADED, LOADED],
  [{ approverRoleRefs: [] }, LOADED, LOADED, LOADED],
  [{ quorum: 1 }, LOADED, LOADED, LOADED],
  // What no code reads; fixtures of the ecosystem send it.
  [{ profile: 'openwop-interrupt-auth-required' }, UNKNOWN, UNKNOWN, LOADED],
  [{ onTimeout: 'approve' }, UNKNOWN, UNKNOWN, LOADED],
  [{ timeoutSec: 5 }, UNKNOWN, UNKNOWN, LOADED],
  [{ escalationTimeoutMs: 5 }, UNKNOWN, UNKNOWN, LOADED],
  [{ resumeSchema: { type: 'object' } }, UNKNOWN, UNKNOWN, LOADED],
  // Misspelt.
  [{ requiredApproval: 2 }, UNKNOWN, UNKNOWN, LOADED],
  [{ approvers: ['ada'] }, UNKNOWN, UNKNOWN, LOADED],
  [{ toString: 1 }, UNKNOWN, UNKNOWN, LOADED],
];

describe('fields of a gate: each has an effect, or is refused', () => {
  // [I96]
  it.each(
    FIELDS.flatMap(([config, ...expected]) =>
      PLACES.map((place, at) => [config, place, expected[at] ?? LOADED] as const),
    ),
  )('%j, %s: %s', (config, place, expected) => {
    const name = Object.keys(config).at(-1) ?? '';
    const faults = faultsOf(gated(config), place);
    if (expected === 'loaded') expect(faults).toEqual([]);
    else expect(faults).toEqual([expect.stringMatching(`^/nodes/0/config/${name} ${expected}: `)]);
  });

  it('with a quorum a policy of rejection has an effect', () => {
    const config = { ...QUORUM, rejectionPolicy: 'majority' };
    expect(faultsOf(gated(config), 'in test mode')).toEqual([]);
    expect(faultsOf(gated(config), 'outside test mode')).toEqual([
      expect.stringMatching('^/nodes/0/config/requiredApprovals capability_required'),
    ]);
  });

  it.each<[JsonObject, Place, string]>([
    [{ approvers: ['ada'] }, 'outside test mode', 'title, description, actions, timeoutMs$'],
    [{ approvers: ['ada'] }, 'in test mode', 'requiredApprovals, approversList, rejectionPolicy$'],
    [{ requiredRole: 'cfo' }, 'in test mode', 'whoever has the key may answer \\(interrupt\\.'],
    [{ rejectionPolicy: 'majority' }, 'in test mode', 'without requiredApprovals above 1$'],
  ])('%j, %s: the message says what there is', (config, place, message) => {
    expect(faultsOf(gated(config), place)).toEqual([expect.stringMatching(message)]);
  });
});

describe('an answer that asks for changes is never a yes', () => {
  const refine = (effect: string) =>
    definition(
      'refined',
      [
        node('g', 'core.approvalGate', {
          config: { actions: ['accept', { action: 'refine', effect }] },
        }),
        node('pay', 'core.noop'),
        node('again', 'core.noop'),
      ],
      [
        edge('g', 'pay'),
        edge('g', 'again', {
          condition: { type: 'equals', left: 'outputs.action', right: 'refine' },
        }),
      ],
    );

  it.each(PLACES)('%s', (place) => {
    for (const effect of ['route', 'end', 'ask-again'])
      expect(faultsOf(refine(effect), place)).toEqual([]);
    expect(faultsOf(refine('continue'), place)).toEqual([
      expect.stringMatching(
        '^/nodes/0/config/actions/1 validation_error: an answer that asks for changes does not let the run go on',
      ),
    ]);
  });

  it('what is offered in its place is what it may have', () => {
    const [fault] = faultsOf(gated({ actions: ['refine'] }), 'outside test mode');
    expect(fault).toContain('"end"');
    expect(fault).not.toContain('"continue"');
  });
});

describe('an answer that leads on elsewhere leads somewhere', () => {
  const routed = (...conditions: (EdgeCondition | undefined)[]) =>
    definition(
      'routed',
      [
        node('g', 'core.approvalGate', {
          config: {
            actions: [
              'accept',
              ...['later', 'never'].map((action) => ({ action, effect: 'route' })),
            ],
          },
        }),
        ...conditions.map((_, at) => node(`n${at}`, 'core.noop')),
      ],
      conditions.map((condition, at) => edge('g', `n${at}`, condition ? { condition } : {})),
    );
  const when = (type: EdgeCondition['type'], right?: string, left = 'outputs.action') => ({
    ...{ type, left },
    ...(right === undefined ? {} : { right }),
  });
  const NEEDED = 'the effect "route" needs an edge from "g" with a condition that holds where';
  const STEP = 'to a step that is not disabled and does not wait for a failure (any_failed)';
  const faultsAt = (...actions: string[]) =>
    actions.map((action) => {
      const at = action === 'later' ? 1 : 2;
      return `/nodes/0/config/actions/${at} validation_error: ${NEEDED} outputs.action is "${action}", ${STEP}`;
    });

  // [I96]
  it.each<[string, (EdgeCondition | undefined)[], string[]]>([
    ['each by its name', [when('equals', 'later'), when('equals', 'never')], []],
    ['every one but a yes', [when('notEquals', 'accept')], []],
    ['whatever it is', [when('truthy')], []],
    ['by what is known only then', [when('equals', 'now', 'speed')], []],
    ['by what was said with it', [when('truthy', undefined, 'outputs.feedback')], []],
    ['by patterns', [when('regex', '^l'), when('regex', 'r$')], []],
    ['a pattern of another name', [when('regex', '^accept$')], ['later', 'never']],
    ['a pattern of one of them', [when('regex', '^l')], ['never']],
    ['a pattern that everything fits', [when('regex', '')], []],
    [
      'a pattern of an error that it is not',
      [when('regex', 'x', 'error.code')],
      ['later', 'never'],
    ],
    ['no edge', [], ['later', 'never']],
    ['an edge without a condition', [undefined], ['later', 'never']],
    ['by another name', [when('equals', 'accept')], ['later', 'never']],
    ['one of them alone', [undefined, when('equals', 'later')], ['never']],
    ['by an error that it is not', [when('truthy', undefined, 'error.code')], ['later', 'never']],
  ])('%s', (_, conditions, faulty) => {
    expect(faultsOf(routed(...conditions), 'outside test mode')).toEqual(faultsAt(...faulty));
  });

  // [I96]
  it.each<[string, Partial<WorkflowNode>, Partial<WorkflowEdge>, string[]]>([
    ['one that starts', {}, {}, []],
    ['one that starts whatever came before', {}, { triggerRule: 'all_complete' }, []],
    ['one that is disabled', { disabled: true }, {}, ['later', 'never']],
    ['one that waits for a failure', {}, { triggerRule: 'any_failed' }, ['later', 'never']],
  ])('the step that it leads to: %s', (_, target, rule, faulty) => {
    const workflow = routed(when('notEquals', 'accept'));
    const [g, n0] = workflow.nodes;
    const [out] = workflow.edges;
    if (!g || !n0 || !out) throw new Error('incomplete');
    const changed: WorkflowDefinition = {
      ...workflow,
      nodes: [g, { ...n0, ...target }],
      edges: [{ ...out, ...rule }],
    };
    expect(faultsOf(changed, 'outside test mode')).toEqual(faultsAt(...faulty));
  });
});

describe('changed content is read, or nobody may change it', () => {
  const reads = (outputKey: string, nodeId = 'g') => ({
    inputs: { paid: { type: 'connection', nodeId, outputKey } as const },
  });
  const edits = (pay: object, condition?: object, action = 'edit-accept') =>
    definition(
      'edited',
      [
        node('before', 'core.noop'),
        node('g', 'core.approvalGate', { config: { actions: ['accept', 'reject', action] } }),
        node('pay', 'core.identity', pay),
      ],
      [
        edge('before', 'g'),
        edge('g', 'pay', condition ? { condition: { type: 'truthy', ...condition } } : {}),
      ],
    );

  it.each<[string, WorkflowDefinition]>([
    ['by a port', edits(reads('editedArtifactData'))],
    ['by its old name', edits(reads('editedArtifactData'), undefined, 'edit')],
    ['by a condition', edits({}, { left: 'outputs.editedArtifactData' })],
    ['by a condition on a member', edits({}, { left: 'outputs.editedArtifactData.amount' })],
  ])('%s', (_, workflow) => {
    expect(faultsOf(workflow, 'outside test mode')).toEqual([]);
  });

  it.each<[string, WorkflowDefinition]>([
    ['nowhere', edits({})],
    ['by its old name', edits({}, undefined, 'edit')],
    ['of another output', edits(reads('feedback'))],
    ['of another node', edits(reads('editedArtifactData', 'before'))],
    ['by a disabled step', edits({ ...reads('editedArtifactData'), disabled: true })],
    ['by a condition on another output', edits({}, { left: 'outputs.editedArtifactDataToo' })],
    ['by a condition on a variable', edits({}, { left: 'editedArtifactData' })],
  ])('changed content that nobody reads: %s', (_, workflow) => {
    expect(faultsOf(workflow, 'outside test mode')).toEqual([
      expect.stringMatching(
        '^/nodes/1/config/actions/2 validation_error: no step reads the changed content',
      ),
    ]);
    expect(faultsOf(workflow, 'in test mode')).toEqual([]);
  });
});

describe('what is approved is what was seen', () => {
  const base = (port: object, more: Partial<WorkflowNode> = {}) => ({
    ...definition(
      'masked',
      [
        node('before', 'core.identity', {
          inputs: { x: { type: 'variable', variableName: 'pin' }, y: { type: 'static', value: 1 } },
          ...more,
        }),
        node('g', 'core.approvalGate', { inputs: { shown: port as PortValue } }),
      ],
      [edge('before', 'g'), edge('g', 'before')],
    ),
    variables: [
      { name: 'pin', type: 'string' as const, sensitive: true },
      { name: 'amount', type: 'number' as const },
    ],
    channels: { heard: { reducer: 'replace', sensitive: true }, told: { reducer: 'replace' } },
  });
  const variable = (variableName: string) => ({ type: 'variable', variableName });
  const output = (outputKey: string) => ({ type: 'connection', nodeId: 'before', outputKey });

  // [I60]
  it.each<[boolean, string, object, Partial<WorkflowNode>?]>([
    [true, 'a variable', variable('amount')],
    [true, 'a channel', variable('told')],
    [true, 'an output', output('y')],
    [true, 'a value of the definition', { type: 'static', value: 'x' }],
    [false, 'a sensitive variable', variable('pin')],
    [false, 'a sensitive channel', variable('heard')],
    [false, 'an output that is marked', output('y'), { outputSensitivity: { y: true } }],
    [false, 'an output that repeats a sensitive variable', output('x')],
    [
      false,
      'what a node writes into a sensitive variable',
      output('value'),
      { typeId: 'core.setVariable', config: { variableName: 'pin', value: 'x' }, inputs: {} },
    ],
    [
      false,
      'an output by which a sensitive variable is set',
      output('pin'),
      { inputs: { pin: { type: 'static', value: 'x' } } },
    ],
    [true, 'an output of the same name that repeats nothing', output('x'), { typeId: 'core.noop' }],
    [
      true,
      'an output that repeats itself',
      output('z'),
      { inputs: { z: output('z') as PortValue } },
    ],
  ])('%s: a gate that asks about %s is loaded', (isLoaded, _, port, more) => {
    for (const place of PLACES)
      expect(faultsOf(base(port, more), place)).toEqual(
        isLoaded
          ? []
          : [
              expect.stringMatching(
                '^/nodes/1/inputs/shown validation_error: a gate shows its inputs to people and in the log',
              ),
            ],
      );
  });
});
