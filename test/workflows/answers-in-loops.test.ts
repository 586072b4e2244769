// What stands behind a gate in a loop is given what the gate was answered last (interrupt.md §approval; architecture I94).
import { describe, expect, it } from 'vitest';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import type { ApprovalGateConfig, WorkflowDefinition } from '../../schemas/types.generated.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { definition, edge, node, runInput } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { openInterruptIds } from '../support/run-workflow.ts';
import { answer, payloadsOf, runOnce, useWorkflowRunner } from './both-ways.ts';

useWorkflowRunner();

describe('what an answer leads to is given what it says, and nothing of an earlier round', () => {
  const YES_OR_NO = { actions: ['accept', 'reject'] };
  const reads = (nodeId: string) => ({
    inputs: { approved: { type: 'connection' as const, nodeId, outputKey: 'action' } },
  });
  const by = (type: 'equals' | 'notEquals', right: string) => ({
    condition: { type, left: 'outputs.action', right },
  });
  const looped = (
    workflow: WorkflowDefinition,
    answers: readonly (readonly [nodeId: string, action: string])[],
  ) =>
    runOnce({
      input: runInput(workflow),
      script: async (handle) => {
        for (const [nodeId, action] of answers) {
          await until(
            async () => (await openInterruptIds(handle, nodeId)).length === 1,
            `${nodeId} asks`,
          );
          const config = workflow.nodes.find(({ id }) => id === nodeId)?.config;
          const actions = offeredActions(config as ApprovalGateConfig).map((one) => one.action);
          await answer(handle, nodeId, { action }, approvalSchema(actions));
        }
      },
    });

  // [I94]
  it.each(['any_failed', 'all_complete'] as const)(
    'a no takes the place of a yes: %s',
    async (rule) => {
      const run = await looped(
        definition(
          'again',
          [
            node('begin', 'core.noop'),
            node('gate', 'core.approvalGate', { config: YES_OR_NO }),
            node('tell', 'core.identity', reads('gate')),
          ],
          [
            edge('begin', 'gate'),
            edge('gate', 'begin', by('equals', 'accept')),
            edge('gate', 'tell', { triggerRule: rule, ...by('notEquals', 'accept') }),
          ],
        ),
        [
          ['gate', 'accept'],
          ['gate', 'reject'],
        ],
      );
      expect(payloadsOf(run, 'run.completed')).toEqual([{ outputs: {} }]);
    },
  );

  // [I94]
  it('a gate that is skipped has no answer of an earlier round', async () => {
    const first = { actions: ['accept', { action: 'other', effect: 'continue' }] };
    const run = await looped(
      definition(
        'skipped',
        [
          node('begin', 'core.noop'),
          node('first', 'core.approvalGate', { config: first }),
          node('second', 'core.approvalGate', { config: YES_OR_NO }),
          node('tell', 'core.identity', reads('second')),
        ],
        [
          edge('begin', 'first'),
          edge('first', 'second', by('equals', 'accept')),
          edge('first', 'tell', by('equals', 'other')),
          edge('second', 'begin'),
        ],
      ),
      [
        ['first', 'accept'],
        ['second', 'accept'],
        ['first', 'other'],
      ],
    );
    expect(payloadsOf(run, 'node.completed').at(-1)).toEqual({ nodeId: 'tell', outputs: {} });
  });

  it('what was said last is read until the gate has ended again', async () => {
    const actions = ['accept', { action: 'change', effect: 'route' }];
    const run = await looped(
      definition(
        'feedback',
        [
          node('work', 'core.identity', reads('gate')),
          node('gate', 'core.approvalGate', { config: { actions } }),
        ],
        [edge('work', 'gate'), edge('gate', 'work', by('equals', 'change'))],
      ),
      [
        ['gate', 'change'],
        ['gate', 'accept'],
      ],
    );
    const worked = payloadsOf(run, 'node.completed').filter(({ nodeId }) => nodeId === 'work');
    expect(worked.map(({ outputs }) => outputs)).toEqual([{}, { approved: 'change' }]);
  });
});
