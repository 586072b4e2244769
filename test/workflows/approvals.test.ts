// What an answer to a gate does (interrupt.md §approval; interrupt-profiles.md §quorum): its declared effect, and what a
// person was told that follows from it.
import type { WorkflowHandle } from '@temporalio/client';
import { describe, expect, it } from 'vitest';
import { EMPTY_RUN, foldRow, type FoldedRun, type OpenInterrupt } from '../../src/log/fold-rows.ts';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { votesIn } from '../../src/rules/votes.ts';
import { choicesOf } from '../../src/words/choices.ts';
import { followsOf } from '../../src/words/follows.ts';
import type { ApprovalGateConfig } from '../../schemas/types.generated.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { definition, edge, node, runInput } from '../support/definitions.ts';
import type { FinishedRun } from '../support/run-workflow.ts';
import { drawsOf } from '../support/model/draws.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  runOnce,
  useWorkflowRunner,
  type Fact,
} from './both-ways.ts';

useWorkflowRunner();

const CONFIG: ApprovalGateConfig = {
  actions: [
    ...(['accept', 'edit', 'reject', 'ask'] as const),
    { action: 'approve', effect: 'continue' },
    { action: 'deny', effect: 'end' },
    { action: 'later', effect: 'route' },
    { action: 'never', effect: 'route' },
  ],
};
const ACTIONS = offeredActions(CONFIG).map(({ action }) => action);

/** `pay` stands behind the gate without a condition: no answer but a yes may lead there. */
const PAYMENT = definition(
  'payment',
  [
    node('gate', 'core.approvalGate', { config: { ...CONFIG } }),
    ...['pay', 'tell', 'wait'].map((id) => node(id, 'core.noop')),
  ],
  [
    edge('gate', 'pay'),
    edge('gate', 'tell', { triggerRule: 'any_failed' }),
    edge('gate', 'wait', {
      condition: { type: 'equals', left: 'outputs.action', right: 'later' },
    }),
  ],
);

const startedBehind = (run: FinishedRun): unknown[] =>
  payloadsOf(run, 'node.started')
    .map(({ nodeId }) => nodeId)
    .filter((nodeId) => nodeId !== 'gate');

const say = (handle: WorkflowHandle, value: JsonObject, schema = approvalSchema(ACTIONS)) =>
  answer(handle, 'gate', { ...value }, schema);

/** Of a quorum of two, until it is decided. */
const voted = (...votes: readonly [voter: string, action: string, more?: JsonObject][]) =>
  votedBy(
    { requiredApprovals: 2 },
    votes.map(([voter, action, more]) => ({ action, voter, ...more })),
  );

const votedBy = (quorum: ApprovalGateConfig, values: readonly JsonObject[]) => {
  const config = { ...quorum, actions: CONFIG.actions };
  return runOnce({
    input: runInput(definition('quorum', [node('gate', 'core.approvalGate', { config })])),
    script: async (handle) => {
      for (const value of values) {
        const said = await say(handle, value, approvalSchema(ACTIONS));
        if ((said as { status: string }).status === 'resolved') return;
      }
    },
  });
};

const VOTED = 'openwop-temporal.voted';

const endsWait = ({ type }: Fact): boolean => type === 'interrupt.resolved';

/** The gate's question as the page reads it. */
function openAt(facts: readonly Fact[]): OpenInterrupt {
  const { interrupts } = facts.reduce<FoldedRun>(
    (run, { type, nodeId = '', payload }, sequence) =>
      foldRow(run, { type, nodeId, payload, sequence, timeMs: 0 }, {}),
    EMPTY_RUN,
  );
  const [open] = interrupts;
  if (!open) throw new Error('Nothing is asked.');
  return open;
}

describe('interrupt.md: an answer does what its effect says', () => {
  // [I94], [I95]
  it.each([
    ['accept', ['pay'], 'accept'],
    ['edit-accept', ['pay'], 'edit-accept'],
    ['approve', ['pay'], 'accept'],
    ['reject', ['tell'], 'reject'],
    ['deny', ['tell'], 'reject'],
    ['later', ['wait'], 'reject'],
    ['never', [], 'reject'],
  ])('%s leads to %j, and to nothing else', async (action, led, received) => {
    const run = await runOnce({
      input: runInput(PAYMENT),
      script: async (handle) => void (await say(handle, { action, feedback: 'So be it.' })),
    });
    expect(run.status).toBe('completed');
    expect(startedBehind(run)).toEqual(led);
    expect(payloadsOf(run, 'approval.received')).toEqual([
      {
        ...{ nodeId: 'gate', action: received, decidedBy: 'tester', feedback: 'So be it.' },
        ...(received === action ? {} : { answer: action }),
      },
    ]);
    const [asked] = payloadsOf(run, 'interrupt.requested');
    const question = { nodeId: 'gate', kind: 'approval', data: asked?.data as JsonObject };
    const choice = choicesOf(question).find((one) => one.action === action);
    if (!choice) throw new Error(`${action} is not offered`);
    const standing = { definition: PAYMENT, nodes: {}, variables: {} };
    expect(followsOf(question, choice, standing).steps.map(({ name }) => name)).toEqual(led);
  });

  it('where nobody takes up a no, the run ends with it, by its name', async () => {
    const workflow = definition('plain', [
      node('gate', 'core.approvalGate', { config: { ...CONFIG } }),
    ]);
    const run = await runOnce({
      input: runInput(workflow),
      script: async (handle) => void (await say(handle, { action: 'deny' })),
    });
    expect(payloadsOf(run, 'run.failed')).toMatchObject([
      { error: { code: 'approval_rejected', message: 'A human answered "deny".' } },
    ]);
  });

  it.each<[JsonObject, string]>([
    [{}, 'A human said no.'],
    [{ reason: 'ok' }, 'A human said no: ok'],
  ])('a no of the protocol says who said it, and then why: %j', async (why, message) => {
    const run = await runOnce({
      input: runInput(PAYMENT),
      script: async (handle) => void (await say(handle, { action: 'reject', ...why })),
    });
    expect(payloadsOf(run, 'node.failed')).toMatchObject([
      { error: { code: 'approval_rejected', message } },
    ]);
  });

  it('what is asked back is kept, and the question stands, over segments', async () => {
    const run = await runBothWays({
      input: runInput(PAYMENT),
      script: async (handle) => {
        for (const feedback of ['For whom?', 'And when?'])
          expect(await say(handle, { action: 'ask', feedback })).toMatchObject({ status: 'open' });
        await say(handle, { action: 'accept' });
      },
    });
    expect(payloadsOf(run, 'openwop-temporal.asked-back')).toMatchObject([
      { askedBy: 'tester', action: 'ask', text: 'For whom?' },
      { askedBy: 'tester', action: 'ask', text: 'And when?' },
    ]);
    expect(payloadsOf(run, 'interrupt.resolved')).toHaveLength(1);
    expect(startedBehind(run)).toEqual(['pay']);
  });

  it('of questions back there is a limit, above which one is refused; an answer is not', async () => {
    const refusals: unknown[] = [];
    const run = await runOnce({
      input: runInput(PAYMENT),
      script: async (handle) => {
        for (let asked = 0; asked < 52; asked++)
          await say(handle, { action: 'ask', feedback: `${asked}` }).catch((error: unknown) => {
            refusals.push((error as { cause?: { type?: string } }).cause?.type);
          });
        await say(handle, { action: 'accept' });
      },
    });
    expect(payloadsOf(run, 'openwop-temporal.asked-back')).toHaveLength(50);
    expect(refusals).toEqual(Array(2).fill('conversation_limit_exceeded'));
    expect(run.status).toBe('completed');
  });

  // [I117]
  it('a vote is an event, one for each voter, and tells how far the quorum is', async () => {
    const config = { requiredApprovals: 2, rejectionPolicy: 'majority', actions: CONFIG.actions };
    const schema = approvalSchema(ACTIONS);
    const workflow = definition('quorum', [node('gate', 'core.approvalGate', { config })]);
    const run = await runBothWays({
      input: runInput(workflow),
      script: async (handle) => {
        for (const [voter, action] of [
          ['ada', 'approve'],
          ['ada', 'approve'],
          ['bob', 'deny'],
          ['eve', 'approve'],
        ] as const)
          await say(handle, { action, voter, feedback: 'Hm.' }, schema);
      },
    });
    expect(payloadsOf(run, 'approval.granted')).toEqual([
      { gateId: 'gate', principal: 'ada', quorumProgress: { granted: 1, required: 2 } },
      { gateId: 'gate', principal: 'eve', quorumProgress: { granted: 2, required: 2 } },
    ]);
    expect(payloadsOf(run, 'approval.rejected')).toEqual([
      { gateId: 'gate', principal: 'bob', reason: 'Hm.' },
    ]);
    const vote = (voter: string, action: string, effect: string, votes: number) => ({
      ...{ nodeId: 'gate', interruptId: expect.any(String) as string, voter, votedBy: 'tester' },
      ...{ effect, resumeValue: { action, voter, feedback: 'Hm.' }, votes, needed: 2 },
    });
    expect(payloadsOf(run, 'openwop-temporal.voted')).toEqual([
      vote('ada', 'approve', 'continue', 1),
      vote('bob', 'deny', 'end', 1),
      vote('eve', 'approve', 'continue', 2),
    ]);
    expect(payloadsOf(run, 'approval.received')).toMatchObject([
      { action: 'accept', answer: 'approve', decidedBy: 'quorum:2-of-2' },
    ]);
  });

  // [I117]
  it('a vote for the same with another reason is stated and counts once, and a repeat is not stated', async () => {
    const no = { action: 'deny', voter: 'ada' };
    const run = await votedBy({ requiredApprovals: 3, rejectionPolicy: 'majority' }, [
      { ...no, feedback: 'Too dear.' },
      { ...no, reason: 'Too dear.', decidedAt: 1 },
      { ...no, feedback: 'Too late.' },
      { ...no, feedback: 'Too late.', comment: 'Sorry.' },
      { action: 'deny', voter: 'bob' },
    ]);
    const stated = payloadsOf(run, VOTED) as { resumeValue: JsonObject; votes: number }[];
    expect(
      stated.map(({ resumeValue: { voter, feedback, comment }, votes }) => [
        ...[voter, feedback, comment, votes],
      ]),
    ).toEqual([
      ['ada', 'Too dear.', undefined, 1],
      ['ada', 'Too late.', undefined, 1],
      ['ada', 'Too late.', 'Sorry.', 1],
      ['bob', undefined, undefined, 2],
    ]);
    const told = payloadsOf(run, 'approval.rejected').map(({ principal }) => principal);
    expect(told).toEqual(['ada', 'bob']);
    const { data } = openAt(factsOf(run).slice(0, factsOf(run).findIndex(endsWait)));
    expect(votesIn(data)).toMatchObject([
      { voter: 'ada', reason: 'Too late.', comment: 'Sorry.' },
      { voter: 'bob' },
    ]);
  });

  // [I94]
  it('of voters and of the votes of each there is a limit; a vote that decides is taken', async () => {
    const refused: unknown[] = [];
    const config = { requiredApprovals: 3, actions: CONFIG.actions };
    const run = await runOnce({
      input: runInput(definition('quorum', [node('gate', 'core.approvalGate', { config })])),
      script: async (handle) => {
        const vote = (voter: string, content: number) =>
          say(handle, { action: 'edit-accept', voter, editedArtifactData: content }).catch(
            (error: unknown) => {
              refused.push([voter, content, (error as { cause?: { type?: string } }).cause?.type]);
            },
          );
        for (let at = 0; at < 101; at++) await vote(`voter-${at}`, at);
        for (let times = 2; times < 22; times++) await vote('voter-9', -times);
        // Repeated, it is the vote that it was.
        await vote('voter-9', -20);
        await vote('voter-1', 0);
        await vote('late', 0);
      },
    });
    const code = 'conversation_limit_exceeded';
    expect(refused).toEqual([
      ['voter-100', 100, code],
      ['voter-9', -21, code],
    ]);
    expect(payloadsOf(run, VOTED).at(-1)).toMatchObject({ voter: 'late', votes: 3, needed: 3 });
    expect(run.status).toBe('completed');
  });

  // [I94]
  it('who changes a vote and changes it back has voted so: the last one counts', async () => {
    const run = await votedBy({ requiredApprovals: 3, rejectionPolicy: 'majority' }, [
      ...['deny', 'approve', 'deny'].map((action) => ({ action, voter: 'ada' })),
      { action: 'deny', voter: 'bob' },
    ]);
    expect(
      payloadsOf(run, 'openwop-temporal.voted').map(({ voter, votes, needed }) => [
        ...[voter, votes, needed],
      ]),
    ).toEqual([
      ...[1, 1, 1].map((votes, at) => ['ada', votes, at === 1 ? 3 : 2]),
      ...[['bob', 2, 2]],
    ]);
    expect(run.status).toBe('failed');
  });

  // [I95]
  it('of drawn votes: what a person is told of a vote is what comes of it', async () => {
    const draws = drawsOf('41', 'votes');
    const one = (): JsonObject => {
      const action = draws.pick(['approve', 'accept', 'deny', 'reject', 'edit-accept']);
      const voter = draws.pick(['ada', 'bob', 'cyd', 'dan']);
      const edited = { editedArtifactData: draws.pick([null, { amount: 5 }]) };
      return { action, voter, ...(action === 'edit-accept' ? edited : {}) };
    };
    for (const requiredApprovals of [2, 3, 3]) {
      const config = { requiredApprovals, rejectionPolicy: 'majority' } as const;
      const values = Array.from({ length: 40 }, one);
      const facts = factsOf(await votedBy(config, values));
      let at = 0;
      let isDecided = false;
      for (const { action, voter, editedArtifactData: content } of values) {
        const next = facts.findIndex(({ type }, place) => place >= at && type === VOTED);
        const { words } = followsOf(
          openAt(facts.slice(0, next < 0 ? at : next)),
          {
            ...{ action: action as string, by: voter as string, content },
            effect: action === 'deny' || action === 'reject' ? 'end' : 'continue',
          },
          {
            definition: definition('quorum', [node('gate', 'core.noop')]),
            nodes: {},
            variables: {},
          },
        );
        if (words?.startsWith('you have voted so already')) continue;
        const told = facts[next]?.payload as { voter: string; votes: number; needed: number };
        expect(told.voter).toBe(voter);
        const { votes, needed } = told;
        expect(/: (\d) of (\d) /.exec(words ?? '')?.slice(1) ?? 'decides').toEqual(
          votes < needed ? [`${votes}`, `${needed}`] : 'decides',
        );
        at = next + 1;
        isDecided = votes >= needed;
        if (isDecided) break;
      }
      expect(isDecided).toBe(true);
    }
  });

  it('a vote may be changed: a no counts also behind a yes', async () => {
    const run = await voted(['ada', 'approve'], ['ada', 'deny'], ['bob', 'approve']);
    expect(payloadsOf(run, 'approval.granted')).toHaveLength(1);
    expect(payloadsOf(run, 'approval.received')).toMatchObject([{ action: 'reject' }]);
    expect(run.status).toBe('failed');
  });

  // [I117]
  it.each<[string, JsonObject]>([
    ['feedback', { feedback: 'Too dear.' }],
    ['reason', { reason: 'Too dear.' }],
    ['reason beside an empty feedback', { feedback: '', reason: 'Too dear.' }],
    ['both, where they are the same', { feedback: 'Too dear.', reason: 'Too dear.' }],
  ])('why somebody says no is in every event of it, and in the error: %s', async (_, why) => {
    const run = await voted(['ada', 'deny', why]);
    expect(payloadsOf(run, 'approval.rejected')).toEqual([
      { gateId: 'gate', principal: 'ada', reason: 'Too dear.' },
    ]);
    expect(payloadsOf(run, 'approval.received')).toMatchObject([
      { action: 'reject', answer: 'deny', feedback: 'Too dear.' },
    ]);
    expect(payloadsOf(run, 'run.failed')).toMatchObject([
      { error: { code: 'approval_rejected', message: 'A human answered "deny": Too dear.' } },
    ]);
  });

  // [I117]
  it('so is why of a yes, and what is asked back as a reason', async () => {
    const run = await runOnce({
      input: runInput(PAYMENT),
      script: async (handle) => {
        await say(handle, { action: 'ask', reason: 'For whom?' });
        await say(handle, { action: 'accept', reason: 'It is fair.' });
      },
    });
    expect(payloadsOf(run, 'openwop-temporal.asked-back')).toMatchObject([{ text: 'For whom?' }]);
    expect(payloadsOf(run, 'approval.received')).toMatchObject([
      { action: 'accept', feedback: 'It is fair.' },
    ]);
  });

  // [I117]
  it('why is an output of the gate under both names, whichever it was sent by', async () => {
    const actions = (['refine', 'later'] as const).map((action) => ({
      ...{ action, effect: 'route' as const },
    }));
    const when = (left: string) => ({
      condition: { type: 'equals' as const, left, right: 'Say less.' },
    });
    const workflow = definition(
      'reasons',
      [
        node('gate', 'core.approvalGate', { config: { actions } }),
        ...['one', 'other', 'none'].map((id) => node(id, 'core.noop')),
      ],
      [
        edge('gate', 'one', when('outputs.feedback')),
        edge('gate', 'other', when('outputs.reason')),
        edge('gate', 'none', { condition: { type: 'falsy', left: 'outputs.feedback' } }),
      ],
    );
    const why = 'Say less.';
    for (const [action, said] of [
      ['later', { feedback: why }],
      ['later', { reason: why }],
      ['later', { feedback: '', reason: why }],
      ['refine', { reason: why }],
      ['refine', { refineFeedback: { scope: 'whole', text: why } }],
    ] as const) {
      const run = await runOnce({
        input: runInput(workflow),
        script: async (handle) =>
          void (await say(handle, { action, ...said }, approvalSchema(['refine', 'later']))),
      });
      const [{ outputs } = {}] = payloadsOf(run, 'node.completed');
      expect(outputs).toEqual({ action, ...said, feedback: why, reason: why });
      expect(startedBehind(run).toSorted()).toEqual(['one', 'other']);
    }
  });

  // [I117]
  it('what should change is why, where it is all that was said', async () => {
    const actions = [{ action: 'refine', effect: 'end' }] as const;
    const run = await runOnce({
      input: runInput(
        definition('refined', [
          node('gate', 'core.approvalGate', { config: { actions: [...actions] } }),
        ]),
      ),
      script: async (handle) => {
        const value = { action: 'refine', refineFeedback: { scope: 'whole', text: 'Say less.' } };
        await say(handle, value, approvalSchema(['refine']));
      },
    });
    expect(payloadsOf(run, 'run.failed')).toMatchObject([
      { error: { message: 'A human answered "refine": Say less.' } },
    ]);
  });

  it.each<[string, readonly [string, JsonObject], readonly [string, JsonObject]]>([
    ['answers', ['approve', {}], ['accept', {}]],
    [
      'contents, of which one is null',
      ['edit-accept', { editedArtifactData: null }],
      ['accept', {}],
    ],
  ])('votes for two %s are not votes for one', async (_, [one, content], [other, more]) => {
    const run = await voted(['ada', one, content], ['bob', other, more], ['eve', one, content]);
    expect(payloadsOf(run, 'approval.granted').map(({ quorumProgress }) => quorumProgress)).toEqual(
      [1, 1, 2].map((granted) => ({ granted, required: 2 })),
    );
    expect(payloadsOf(run, 'interrupt.resolved')).toMatchObject([{ resumeValue: { action: one } }]);
  });

  it('votes for two values are not votes for one', async () => {
    const edited = { editedArtifactData: { amount: 5 } };
    const run = await voted(
      ['ada', 'edit-accept', edited],
      ['bob', 'accept'],
      ['eve', 'edit-accept', edited],
    );
    expect(payloadsOf(run, 'approval.granted').map(({ quorumProgress }) => quorumProgress)).toEqual(
      [1, 1, 2].map((granted) => ({ granted, required: 2 })),
    );
    expect(payloadsOf(run, 'approval.received')).toMatchObject([
      { action: 'edit-accept', decidedBy: 'quorum:2-of-2', ...edited },
    ]);
  });
});

describe('a run whose definition no loader of today checked, as a pinned one', () => {
  // [I94]
  it('an answer whose effect nobody declared ends the step', async () => {
    const actions = ['approve', 'deny'];
    const workflow = definition(
      'unchecked',
      [node('gate', 'core.approvalGate', { config: { actions } }), node('pay', 'core.noop')],
      [edge('gate', 'pay')],
    );
    for (const action of actions) {
      const run = await runOnce({
        input: runInput(workflow),
        script: async (handle) => void (await say(handle, { action }, approvalSchema(actions))),
      });
      expect(run.status).toBe('failed');
      expect(startedBehind(run)).toEqual([]);
      expect(payloadsOf(run, 'run.failed')).toMatchObject([
        { error: { code: 'approval_rejected', message: `A human answered "${action}".` } },
      ]);
    }
  });
});
