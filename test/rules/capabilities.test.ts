// The one table of what this host offers: what discovery says of it, and that nothing else says it.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  LACKING,
  capabilityKeys,
  familiesOf,
  lackingOfRequest,
  nodeTypesOf,
  roundsOf,
  type HostFacts,
} from '../../src/rules/capabilities.ts';
import { ROOT, repositoryFiles } from '../support/source-tree.ts';

const ALL: HostFacts = {
  agents: true,
  tools: true,
  live: true,
  providers: ['openai'],
  testMode: false,
  escalation: true,
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
      agents: {
        supported: true,
        orchestratorPattern: 'single',
        reasoning: { verbosity: 'summary', tokenLimit: 512, streaming: true },
        manifestRuntime: { supported: true, handoffValidation: true, installScope: 'host' },
        liveRuntime: {
          supported: true,
          structuredOutput: true,
          confidenceEscalation: true,
          sources: ['workflow-node', 'run-api'],
        },
        reasoningEvents: true,
        toolEvents: true,
        handoffEvents: true,
        decisionEvents: true,
      },
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
    expect(Object.keys(familiesOf({ ...ALL, agents: false }))).toEqual(['idempotency', 'runs']);
  });

  it('RFC 0092 keys are those of what is offered: a part of what is not is none', () => {
    const keys = capabilityKeys(familiesOf({ ...ALL, live: false }));
    expect([...keys]).toEqual([
      'idempotency',
      'idempotency.supported',
      'runs',
      'runs.pauseResume',
      'runs.pauseResume.supported',
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
      ...LACKING.testNodeTypes.keys(),
    ]);
    for (const type of LACKING.nodeTypes.keys()) expect(inTests).not.toContain(type);
  });

  it('a request is refused by the value that asks', () => {
    expect(lackingOfRequest({ mode: 'eval' })).toBe('agents.evalSuite');
    expect(lackingOfRequest({ mode: 'other' })).toBeUndefined();
  });

  it.each([
    [true, { clarificationRounds: 3, schemaRounds: 2, envelopesPerTurn: 1 }],
    [false, { clarificationRounds: 1, schemaRounds: 0, envelopesPerTurn: 0 }],
  ])('capabilities.md §Engine-enforced limits: rounds with agents: %s', (agents, rounds) => {
    expect(roundsOf({ agents })).toEqual(rounds);
  });
});

it('nothing but the table says what is not offered, or which types of nodes are', () => {
  const said = new Set(Object.values(LACKING).flatMap((asked) => [...asked.values()]));
  const types = [...LACKING.nodeTypes.keys(), ...LACKING.testNodeTypes.keys()];
  const names = [...[...said].filter((name) => name.includes('.')), ...types];
  const places = repositoryFiles('src', 'workflows', 'activities')
    .filter((path) => path.endsWith('.ts') && path !== 'src/rules/capabilities.ts')
    .flatMap((path) => {
      const text = readFileSync(ROOT + path, 'utf8');
      return names.filter((name) => text.includes(`'${name}'`)).map((name) => `${path}: ${name}`);
    });
  expect(places).toEqual([]);
});
