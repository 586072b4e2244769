// The one table of what this host offers: what discovery says of it, and that nothing else says it.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  CODES,
  LACKING,
  TEST_NODE_TYPES,
  REASONS,
  capabilityKeys,
  familiesOf,
  gateFieldsOf,
  lackingOfRequest,
  nodeTypesOf,
  roundsOf,
  type HostFacts,
} from '../../src/rules/capabilities.ts';
import { ROOT } from '../support/root.ts';
import { repositoryFiles } from '../support/source-tree.ts';

const ALL: HostFacts = {
  agents: true,
  tools: true,
  live: true,
  providers: ['openai'],
  testMode: false,
  escalation: true,
  forcesExpiry: false,
};

describe('capabilities.md: families', () => {
  it('tell all that is done, in one order', () => {
    expect(familiesOf(ALL)).toEqual({
      idempotency: {
        supported: true,
        layer1RetentionSeconds: 86_400,
        crossRegion: 'single-region',
      },
      runs: {
        pauseResume: { supported: true, drainPolicies: ['drain-current-node', 'immediate'] },
      },
      replay: {
        supported: true,
        modes: ['replay', 'branch'],
        sideEffectSuppression: 'recorded-outcome',
      },
      debugBundle: { supported: true },
      agents: {
        supported: true,
        orchestratorPattern: 'single',
        reasoning: { verbosity: 'summary', tokenLimit: 512, streaming: true },
        manifestRuntime: { supported: true, handoffValidation: true, installScope: 'host' },
        liveRuntime: {
          supported: true,
          structuredOutput: true,
          confidenceEscalation: true,
          sources: ['workflow-node', 'run-api', 'chat-mention'],
        },
        reasoningEvents: true,
        toolEvents: true,
        handoffEvents: true,
        decisionEvents: true,
        orchestrator: true,
        dispatch: true,
        dispatchMapping: true,
      },
      orchestrator: { supported: true, fanOutSupported: true },
      dispatch: {
        supported: true,
        models: ['child-run'],
        fanOutSupported: true,
        fanOutPolicies: ['sequential', 'reject', 'parallel'],
        joinModes: ['wait-all', 'quorum', 'first', 'race'],
        onChildFailureModes: ['collect', 'fail-fast', 'absorb'],
        maxFanOut: 100,
        perItemInput: false,
        askUserRoutings: ['clarification', 'auto'],
      },
      multiAgent: {
        executionModel: {
          supported: true,
          version: 2,
          confidenceEscalationFloor: 0.5,
          confidenceEscalationInterruptKind: 'approval',
        },
      },
      conversationPrimitive: true,
      prompts: { supported: false, observability: 'hashed' },
      aiProviders: { supported: ['openai'], byok: [] },
      providerUsage: { supported: true, costEstimates: false },
    });
  });

  it.each<[string, Partial<HostFacts>, object]>([
    ['without tools', { tools: false }, { agents: { toolEvents: false } }],
    ['with scripts alone', { live: false }, { agents: { liveRuntime: { supported: false } } }],
    [
      'with scripts alone, in test mode',
      { live: false, testMode: true },
      { agents: { liveRuntime: { supported: true } } },
    ],
    [
      'without escalation',
      { escalation: false },
      { agents: { liveRuntime: { confidenceEscalation: false } } },
    ],
  ])('%s', (_, facts, expected) => {
    expect(familiesOf({ ...ALL, ...facts })).toMatchObject(expected);
  });

  it('without agents nothing of agents is told, part or family', () => {
    expect(Object.keys(familiesOf({ ...ALL, agents: false }))).toEqual([
      ...['idempotency', 'runs', 'replay', 'debugBundle', 'conversationPrimitive'],
    ]);
  });

  // [I96]
  it.each([false, true])(
    'interrupt-profiles.md, RFC 0051: in test mode: %s, no document names a quorum of people or who may answer',
    (testMode) => {
      const families = familiesOf({ ...ALL, testMode });
      expect(Object.keys(families)).not.toContain('interrupt');
      for (const key of capabilityKeys(families))
        expect(key).not.toMatch(/quorum|approv|interrupt/i);
    },
  );

  it('RFC 0092 keys are those of what is offered: a part of what is not is none', () => {
    const keys = capabilityKeys(familiesOf({ ...ALL, live: false }));
    expect([...keys]).toEqual([
      'idempotency',
      'idempotency.supported',
      'runs',
      'runs.pauseResume',
      'runs.pauseResume.supported',
      'replay',
      'replay.supported',
      'debugBundle',
      'debugBundle.supported',
      'agents',
      'agents.supported',
      'agents.reasoning',
      'agents.reasoning.streaming',
      'agents.manifestRuntime',
      'agents.manifestRuntime.supported',
      'agents.manifestRuntime.handoffValidation',
      'agents.reasoningEvents',
      'agents.toolEvents',
      'agents.handoffEvents',
      'agents.decisionEvents',
      'agents.orchestrator',
      'agents.dispatch',
      'agents.dispatchMapping',
      'orchestrator',
      'orchestrator.supported',
      'orchestrator.fanOutSupported',
      'dispatch',
      'dispatch.supported',
      'dispatch.fanOutSupported',
      'multiAgent',
      'multiAgent.executionModel',
      'multiAgent.executionModel.supported',
      'conversationPrimitive',
      'aiProviders',
      'providerUsage',
      'providerUsage.supported',
    ]);
  });
});

describe('what is asked for', () => {
  it('a type of nodes is registered, registered for tests, or refused by its capability', () => {
    const types = nodeTypesOf({ testMode: false });
    const inTests = nodeTypesOf({ testMode: true });
    expect([...inTests].filter((type) => !types.has(type))).toEqual([
      ...TEST_NODE_TYPES.keys(),
      ...LACKING.testNodeTypes.keys(),
    ]);
    for (const type of LACKING.nodeTypes.keys()) expect(inTests).not.toContain(type);
  });

  it('interrupt-profiles.md: fields of a gate are offered where votes can be told apart, or nowhere', () => {
    const offeredIn = (testMode: boolean): string[] =>
      [...gateFieldsOf({ testMode })].flatMap(([name, { isOffered }]) => (isOffered ? [name] : []));
    expect(offeredIn(false)).toEqual([]);
    expect(offeredIn(true)).toEqual(['requiredApprovals', 'approversList']);
    expect(gateFieldsOf({ testMode: true }).get('requiredRole')).toEqual({
      capability: 'interrupt.approverRouting',
      isOffered: false,
    });
  });

  it('a request is refused by the value that asks', () => {
    expect(lackingOfRequest({ mode: 'eval' })).toBe('agents.evalSuite');
    expect(lackingOfRequest({ mode: 'other' })).toBeUndefined();
  });

  it.each([
    ['requestFields', ['callbackUrl', 'residency', 'evalSuiteRef']],
    ['refFields', ['channel']],
    ['triggerTypes', ['channel-write']],
    ['valueTypes', ['expression']],
  ] as const)('%s are refused in words, the first of them first', (column, names) => {
    expect([...REASONS[column].keys()]).toEqual(names);
  });

  it('an option of `configurable` is refused with a code of its own', () => {
    expect([...CODES.configurableCodes]).toEqual([['mockProvider', 'unsupported_mock_provider']]);
    expect([...CODES.aiOptions]).toEqual([['credentialRef', 'credential_forbidden']]);
  });

  it.each([
    [true, { clarificationRounds: 3, schemaRounds: 2, envelopesPerTurn: 1 }],
    [false, { clarificationRounds: 1, schemaRounds: 0, envelopesPerTurn: 0 }],
  ])('capabilities.md §Engine-enforced limits: rounds with agents: %s', (agents, rounds) => {
    expect(roundsOf({ agents })).toEqual(rounds);
  });
});

/** The same words for something else, and why. */
const OTHER_MEANING = new Set([
  // What an open question knows of its turns, and no memory of an agent.
  'workflows/conversation.ts: conversation',
  // A credential is never kept, whether it may be sent or not.
  'src/runs/configurable.ts: credentialRef',
  // RFC 0131 forbids memory to a skill, whatever the host offers.
  'src/adapters/catalog/manifests.ts: conversation',
  'src/adapters/catalog/manifests.ts: longTerm',
]);
/** Rooms' own limits: of schemas of others, of platforms; and the messages of codes. */
const OTHER_REFUSALS = new Set([
  'src/wire/user-schema.ts',
  'src/system/processes.ts',
  'src/rules/errors.ts',
]);

describe('nothing but the table says what is not offered, or which types of nodes are', () => {
  const sources = repositoryFiles('src', 'workflows', 'activities')
    .filter((path) => path.endsWith('.ts') && path !== 'src/rules/capabilities.ts')
    .map((path) => ({ path, text: readFileSync(ROOT + path, 'utf8') }));

  const placesOf = (names: readonly string[], read: (name: string) => RegExp) =>
    sources
      .flatMap(({ path, text }) =>
        names.filter((name) => read(name).test(text)).map((name) => `${path}: ${name}`),
      )
      .filter((place) => !OTHER_MEANING.has(place));

  it('by the name of a capability, or of a type', () => {
    const said = new Set(Object.values(LACKING).flatMap((asked) => [...asked.values()]));
    const types = [...LACKING.nodeTypes.keys(), ...LACKING.testNodeTypes.keys()];
    const names = [...[...said].filter((name) => name.includes('.')), ...types];
    expect(placesOf(names, (name) => new RegExp(`['"\`]${name}['"\`]`))).toEqual([]);
  });

  it('by a name that asks, written out or read', () => {
    const asking = [
      ...[LACKING.metadata, LACKING.nodeFields, LACKING.hooks, LACKING.memoryShape],
      ...[LACKING.agentSharing, REASONS.requestFields, CODES.configurableCodes, CODES.aiOptions],
    ];
    const names = asking.flatMap((asked) => [...asked.keys()]);
    expect(
      placesOf(names, (name) => new RegExp(`['"\`.]${name}['"\`]|\\.${name}\\b|^ +${name}:`, 'm')),
    ).toEqual([]);
  });

  it('by a code of its own', () => {
    const codes = Object.values(CODES).flatMap((asked) => [...asked.values()]);
    expect(codes).not.toEqual([]);
    expect(placesOf(codes, (code) => new RegExp(`'${code}'`))).toEqual([]);
  });

  it('in words', () => {
    const saying = sources.filter(({ text }) =>
      /['"`][^'"`\n]*\bnot (supported|offered)\b/.test(text),
    );
    const places = saying.map(({ path }) => path).filter((path) => !OTHER_REFUSALS.has(path));
    expect(places).toEqual([]);
  });
});
