// What stays of the input of a run whose subject's data was erased (architecture §10.1): nothing that the caller entered, a name
// neither.
import { describe, expect, it } from 'vitest';
import { erasedInput } from '../../src/rules/erased.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { agentDefinition } from '../../src/runs/input.ts';
import { runInput } from '../contract/given.ts';
import { chain, node } from '../support/definitions.ts';

const ENTERED = 'peppermint';

const agentRun = (source: RunInput['source']): RunInput => ({
  ...runInput('run', 'default'),
  source,
  definition: agentDefinition('local.desk.clerk', { [ENTERED]: 'x', [`${ENTERED}-2`]: 5 }),
  variables: { [ENTERED]: 'x', [`${ENTERED}-2`]: 5 },
});

describe('architecture §10.1 the input of an erased run', () => {
  it.each(['run-api', 'chat-mention'] as const)(
    'that runs one agent (%s) names none of its inputs, and keeps its agent',
    (source) => {
      const erased = erasedInput(agentRun(source));
      expect(JSON.stringify(erased)).not.toContain(ENTERED);
      expect(erased.definition).toMatchObject({
        id: 'agent:local.desk.clerk',
        nodes: [{ id: 'agent', agent: { agentId: 'local.desk.clerk' }, inputs: {} }],
        variables: [],
      });
    },
  );

  it('of a workflow keeps its definition', () => {
    const definition = chain(
      'refunds',
      [node('gate', 'core.approvalGate', { config: { title: 'Send it?' } })],
      { variables: [{ name: 'order', type: 'string' }] },
    );
    const input = { ...runInput('run', 'default'), definition, variables: { order: ENTERED } };
    expect(erasedInput(input).definition).toEqual(definition);
    expect(JSON.stringify(erasedInput(input))).not.toContain(ENTERED);
  });
});
