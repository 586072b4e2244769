// The outputs of a run: what its last nodes gave, each in its last visit, with what is marked as sensitive masked
// (observability.md).
import type { WorkflowHandle } from '@temporalio/client';
import { expect, it } from 'vitest';
import type { PortValue, WorkflowEdge, WorkflowNode } from '../../schemas/types.generated.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';
import { chain, definition, edge, node, runInput } from '../support/definitions.ts';
import { openWorkflowLab } from '../support/workflow-lab.ts';
import { replayWhole } from '../support/whole-replay.ts';
import { answer, payloadsOf, runBothWays, useWorkflowRunner } from './both-ways.ts';

useWorkflowRunner();

const given = (value: string) => ({ type: 'static' as const, value });

// [I66]
it('of a run mask what a last node marks, or only repeats of what is masked', async () => {
  const end = node('end', 'core.end', {
    inputs: {
      marked: given('hush'),
      repeated: { type: 'variable', variableName: 'secret' },
      plain: given('seen'),
    },
    outputSensitivity: { marked: true },
  });
  const variables = [
    { name: 'secret', type: 'string' as const, sensitive: true, defaultValue: 'louder' },
  ];
  const run = await runBothWays({ input: runInput(chain('masked', [end], { variables })) });
  const outputs = { marked: '[REDACTED]', repeated: '[REDACTED]', plain: 'seen' };
  expect(payloadsOf(run, 'node.completed')).toEqual([{ nodeId: 'end', outputs }]);
  expect(payloadsOf(run, 'run.completed')).toEqual([{ outputs }]);
});

const isDone = { type: 'truthy', left: 'done' } as const;
const isNotDone = { type: 'falsy', left: 'done' } as const;
/** Two rounds: `done` is set at the end of the first. */
const twoRounds = definition(
  'two-rounds',
  [
    node('work', 'core.noop'),
    node('first', 'core.end', { inputs: { first: given('1') } }),
    node('second', 'core.end', { inputs: { second: given('2') } }),
    node('once', 'core.identity', { inputs: { x: given('of the first round') } }),
    node('each', 'core.end', {
      inputs: {
        each: given('round'),
        once: { type: 'connection', nodeId: 'once', outputKey: 'x' },
      },
    }),
    node('mark', 'core.setVariable', { config: { variableName: 'done', value: true } }),
  ],
  [
    edge('work', 'first', { condition: isNotDone }),
    edge('work', 'second', { condition: isDone }),
    edge('work', 'once', { condition: isNotDone }),
    edge('work', 'each', { triggerRule: 'all_complete' }),
    edge('once', 'each', { triggerRule: 'all_complete' }),
    edge('work', 'mark'),
    edge('mark', 'work', { condition: isDone }),
  ],
  {
    variables: [{ name: 'done', type: 'boolean', defaultValue: false }],
    settings: { maxLoopbackIterations: 1 },
  },
);

// [I94]
it('of a run are what each last node gave in its last visit; one that was skipped since gives nothing', async () => {
  const outputs = { second: '2', each: 'round', value: true };
  const lab = await openWorkflowLab();
  try {
    // The second way carries the first round over a segment's border.
    for (const more of [{}, { forceContinueAsNewAfter: 4 }]) {
      const input = runInput(twoRounds, more);
      const run = await lab.run({ input });
      await run.replay();
      expect(payloadsOf(run, 'run.completed')).toEqual([{ outputs }]);
      const replayed = await replayWhole(lab, run, input);
      expect(payloadsOf(replayed, 'replay.diverged')).toEqual([]);
      expect(payloadsOf(replayed, 'run.completed')).toEqual([{ outputs }]);
    }
  } finally {
    await lab.close();
  }
});

/** Two rounds of a planned orchestrator: it asks the user, and then ends the run; `others` run beside its dispatch. */
const terminated = (others: WorkflowNode[], edges: WorkflowEdge[]) =>
  runInput(
    definition(
      'conformance-terminated',
      [
        node('boss', 'core.orchestrator.supervisor', {
          config: {
            mockDispatchPlan: [
              { kind: 'ask-user', prompt: 'Go on?' },
              { kind: 'terminate', reason: 'done' },
            ],
          },
        }),
        node('dispatch', 'core.dispatch'),
        ...others,
      ],
      [edge('boss', 'dispatch'), ...edges, edge('dispatch', 'boss')],
      { settings: { maxLoopbackIterations: 1 } },
    ),
    { testHooks: true },
  );

const goOn = (handle: WorkflowHandle) =>
  answer(
    handle,
    'dispatch',
    { answers: { answer: 'yes' } },
    answersSchema([{ id: 'answer', question: 'Go on?' }]),
  );

// [I94]
it('of a run that its orchestrator ends are none of an earlier visit of a gate that stands open again', async () => {
  const gate = node('gate', 'core.approvalGate', { config: { actions: ['accept', 'reject'] } });
  const run = await runBothWays({
    input: terminated([gate], [edge('boss', 'gate')]),
    parallel: true,
    script: async (handle) => {
      await answer(handle, 'gate', { action: 'accept' }, approvalSchema(['accept', 'reject']));
      await goOn(handle);
    },
  });
  expect(payloadsOf(run, 'node.completed')).toContainEqual({
    nodeId: 'gate',
    outputs: expect.objectContaining({ action: 'accept' }) as unknown,
  });
  expect(payloadsOf(run, 'node.suspended').filter(({ nodeId }) => nodeId === 'gate')).toHaveLength(
    2,
  );
  expect(payloadsOf(run, 'run.completed')).toEqual([{ outputs: { reason: 'done' } }]);
});

// [I94]
it('of a run that its orchestrator ends are none of a last node that completes after that', async () => {
  const said: PortValue = { type: 'connection', nodeId: 'boss', outputKey: 'decision' };
  const others = [node('before', 'core.noop'), node('late', 'core.end', { inputs: { said } })];
  const run = await runBothWays({
    input: terminated(others, [edge('boss', 'before'), edge('before', 'late')]),
    plainOnly: true,
    script: async (handle) => void (await goOn(handle)),
  });
  const late = payloadsOf(run, 'node.completed').filter(({ nodeId }) => nodeId === 'late');
  expect(late).toHaveLength(2);
  expect(payloadsOf(run, 'run.completed')).toEqual([{ outputs: { reason: 'done' } }]);
});
