// What a person is told that follows from an answer (architecture §11, I95); test/workflows/follows.test.ts holds it
// against what the run then does.
import { describe, expect, it } from 'vitest';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { choicesOf } from '../../src/words/choices.ts';
import { followsOf, type Standing } from '../../src/words/follows.ts';
import type { OpenQuestion } from '../../src/words/question.ts';
import type {
  EdgeCondition,
  WorkflowDefinition,
  WorkflowEdge,
} from '../../schemas/types.generated.ts';
import {
  approvalQuestion,
  decisionQuestion,
  doubtQuestion,
  turnQuestion,
} from '../../workflows/questions.ts';
import { definition, edge, node } from '../support/definitions.ts';
import { standingVote } from '../support/votes.ts';

type Asked = Pick<OpenQuestion, 'nodeId' | 'kind' | 'data'>;

const CHOICES = offeredActions({
  actions: [
    ...(['accept', 'edit-accept', 'reject', 'ask'] as const),
    { action: 'approve', effect: 'continue' },
    { action: 'deny', effect: 'end' },
    { action: 'later', effect: 'route' },
  ],
});
const gate = (data: JsonObject = {}): Asked => ({
  ...{ nodeId: 'gate', kind: 'approval' },
  data: { choices: CHOICES, ...data },
});
const unsure = (decision: JsonObject): Asked => ({
  ...{ nodeId: 'gate', kind: 'low-confidence' },
  data: { ...decisionQuestion('a'), decision },
});
const is = (left: string, right: string): { condition: EdgeCondition } => ({
  condition: { type: 'equals', left, right },
});
const onFailure = { triggerRule: 'any_failed' } as const;

/** The story of the founding fault: a payment, and what is done where there is none. */
const PAYMENT = definition(
  'payment',
  [node('gate', 'core.approvalGate'), node('pay', 'core.noop'), node('tell', 'core.noop')],
  [edge('gate', 'pay'), edge('gate', 'tell', onFailure)],
);
const told = (
  open: Asked,
  workflow: WorkflowDefinition,
  standing: Partial<Standing> = {},
): Record<string, string> =>
  Object.fromEntries(
    choicesOf(open).map((choice) => {
      const { steps, words } = followsOf(open, choice, {
        ...{ definition: workflow, nodes: {}, variables: {} },
        ...standing,
      });
      const named = steps.map(({ name, when, isLater, isAgain }) =>
        [name, isAgain && 'again', when, isLater && 'later'].filter(Boolean).join(' '),
      );
      return [choice.action, words ?? named.join(', ')];
    }),
  );

const STANDS = 'the question stays open; its deadline does not change.';
const DECLINED = 'the run ends as failed, because no step takes a no.';
const COMPLETE = 'the run is complete. Nothing more is done.';

describe('what follows from an answer', () => {
  // [I95]
  it('of a gate: a yes leads to the payment alone, a no never does', () => {
    expect(told(gate(), PAYMENT)).toEqual({
      accept: 'pay',
      'edit-accept': 'pay',
      reject: 'tell',
      ask: STANDS,
      approve: 'pay',
      deny: 'tell',
      later: COMPLETE,
    });
  });

  it('of a gate whose no nobody takes up: the run fails', () => {
    const workflow = definition(
      'plain',
      [node('gate', 'core.approvalGate'), node('pay', 'core.noop')],
      [edge('gate', 'pay')],
    );
    expect(told(gate(), workflow)).toMatchObject({ accept: 'pay', reject: DECLINED });
  });

  it('by conditions over the answer: those that are known are decided, the others are told', () => {
    const workflow = definition(
      'choices',
      [
        node('gate', 'core.approvalGate'),
        node('pay', 'core.noop'),
        node('wait', 'core.noop'),
        node('note', 'core.noop'),
      ],
      [
        edge('gate', 'pay', is('outputs.action', 'approve')),
        edge('gate', 'wait', is('outputs.action', 'later')),
        edge('gate', 'note', is('outputs.feedback', 'urgent')),
      ],
    );
    expect(told(gate(), workflow)).toMatchObject({
      approve: 'pay, note if feedback is urgent',
      accept: 'note if feedback is urgent',
      later: 'wait, note if feedback is urgent',
      deny: DECLINED,
    });
  });

  it('of a decision: by what was decided; of a changed one by what may be', () => {
    const workflow = definition(
      'desk',
      [node('gate', 'core.agent'), node('pay', 'core.noop'), node('refuse', 'core.noop')],
      [
        edge('gate', 'pay', is('outputs.decision.action', 'pay')),
        edge('gate', 'refuse', is('outputs.decision.action', 'refuse')),
      ],
    );
    expect(told(unsure({ action: 'pay' }), workflow)).toEqual({
      accept: 'pay',
      'edit-accept': 'pay if action is pay, refuse if action is refuse',
      answers: 'the agent decides again.',
      reject: DECLINED,
    });
  });

  it('by variables, while nobody else is at work; of a sensitive one nothing is known', () => {
    const workflow: WorkflowDefinition = {
      ...definition(
        'variables',
        [node('gate', 'core.approvalGate'), node('pay', 'core.noop'), node('other', 'core.noop')],
        [edge('gate', 'pay', is('limit', 'high'))],
      ),
      variables: [{ name: 'limit', type: 'string' }],
    };
    const variables = { limit: 'high' };
    const accept = (standing: Partial<Standing>, of = workflow) =>
      told(gate(), of, { nodes: { other: { status: 'completed' } }, ...standing }).accept;
    expect(accept({ variables })).toBe('pay');
    expect(accept({ variables: { limit: 'low' } })).toBe(COMPLETE);
    expect(accept({ variables, nodes: { other: { status: 'running' } } })).toBe(
      'pay if limit is high',
    );
    // It is to begin, and something holds it back.
    expect(accept({ variables, nodes: {} })).toBe('pay if limit is high');
    const hidden = [{ name: 'limit', type: 'string', sensitive: true } as const];
    expect(accept({ variables }, { ...workflow, variables: hidden })).toBe('pay if limit is high');
  });

  it('by channels, unless one is sensitive', () => {
    const accept = (sensitive: boolean) =>
      told(
        gate(),
        {
          ...definition(
            'channel',
            [node('gate', 'core.approvalGate'), node('pay', 'core.noop')],
            [edge('gate', 'pay', is('limit', 'high'))],
          ),
          channels: { limit: { reducer: 'set', sensitive } },
        },
        { variables: { limit: '[sensitive]' } },
      ).accept;
    expect([accept(false), accept(true)]).toEqual([COMPLETE, 'pay if limit is high']);
  });

  it('by conditions of other steps: what they came to does not stand in their status', () => {
    const workflow = definition(
      'beside',
      [node('check', 'core.noop'), node('gate', 'core.approvalGate'), node('pay', 'core.noop')],
      [
        edge('check', 'pay', { ...is('outputs.ok', 'yes'), triggerRule: 'any_success' }),
        edge('gate', 'pay', { ...is('outputs.action', 'approve'), triggerRule: 'any_success' }),
      ],
    );
    const nodes = { check: { status: 'completed' } };
    expect(told(gate(), workflow, { nodes })).toMatchObject({
      approve: 'pay',
      accept: 'pay if the conditions of the other steps hold',
    });
  });

  it('of votes: one that does not decide is counted', () => {
    const votes = (more: JsonObject) =>
      told(gate({ requiredApprovals: 3, rejectionPolicy: 'majority', ...more }), PAYMENT);
    expect(votes({})).toMatchObject({
      accept: 'your vote is counted: 1 of 3 for it. The question stays open.',
      deny: 'your vote is counted: 1 of 2 against it. The question stays open.',
      ask: STANDS,
    });
    const given = ['a', 'b'].map((voter) => standingVote(voter, { action: 'accept' }, {}));
    const all = [...given, standingVote('c', { action: 'reject' }, {})];
    expect(votes({ votes: all })).toMatchObject({
      accept: 'pay',
      deny: 'tell',
      approve: 'your vote is counted: 1 of 3 for it. The question stays open.',
    });
  });

  // [I95]
  it('of a vote: each answer and each content counts for itself, and of each voter the last one', () => {
    const edited = { action: 'edit-accept', editedArtifactData: { amount: 5 } };
    const open = gate({
      ...{ requiredApprovals: 2 },
      votes: [
        standingVote('a', { action: 'approve' }, {}),
        standingVote('b', edited, {}),
        standingVote('c', { action: 'edit-accept', editedArtifactData: null }, {}),
      ],
    });
    const standing = { definition: PAYMENT, nodes: {}, variables: {} };
    const follows = (action: string, by?: string, content?: JsonValue) => {
      const { effect } = CHOICES.find((choice) => choice.action === action)!;
      const { steps, words } = followsOf(open, { action, effect, by, content }, standing);
      return words ?? steps.map(({ name }) => name);
    };
    const counted = (votes: number) =>
      `your vote is counted: ${votes} of 2 for it. The question stays open.`;
    expect(follows('accept')).toBe(counted(1));
    expect(follows('approve')).toEqual(['pay']);
    expect(follows('approve', 'b')).toEqual(['pay']);
    expect(follows('approve', 'a')).toBe(
      'you have voted so already: 1 of 2 for it. The question stays open.',
    );
    expect(follows('edit-accept', 'a', { amount: 5 })).toEqual(['pay']);
    expect(follows('edit-accept', 'a', null)).toEqual(['pay']);
    expect(follows('edit-accept', 'a', { amount: 6 })).toBe(counted(1));
    const sent = 'your vote is counted for the content that you send: 1 of 2 for it';
    expect(follows('edit-accept')).toBe(
      `${sent}, or with the votes of others for the same content. Otherwise the question stays open.`,
    );
    const own = gate({ requiredApprovals: 2, votes: [standingVote('b', edited, {})] });
    const choice = { action: 'edit-accept', effect: 'continue', by: 'b' } as const;
    expect(followsOf(own, choice, standing).words).toBe(`${sent}. The question stays open.`);
    expect(follows('deny')).toEqual(['tell']);
    const votes = [standingVote('a', { action: 'reject' }, {})];
    const many = gate({ requiredApprovals: 3, rejectionPolicy: 'majority', votes });
    const no = { action: 'deny', effect: 'end' } as const;
    expect(followsOf(many, { ...no, by: 'b' }, standing).steps.map(({ name }) => name)).toEqual([
      'tell',
    ]);
    expect(followsOf(many, { ...no, by: 'a' }, standing).words).toBe(
      'your vote is counted: 1 of 2 against it. The question stays open.',
    );
  });

  it('by a pattern: its condition is told', () => {
    const workflow = definition(
      'pattern',
      [node('gate', 'core.approvalGate'), node('pay', 'core.noop')],
      [edge('gate', 'pay', { condition: { type: 'regex', left: 'outputs.action', right: 'a.*' } })],
    );
    expect(told(gate(), workflow).accept).toBe('pay if action matches a.*');
  });

  it('with steps beside it: what waits for them comes later, and what they have decided counts', () => {
    const workflow = definition(
      'join',
      [node('gate', 'core.approvalGate'), node('check', 'core.noop'), node('pay', 'core.noop')],
      [edge('gate', 'pay'), edge('check', 'pay')],
    );
    const accept = (status: string) =>
      told(gate(), workflow, { nodes: { check: { status } } }).accept;
    expect(accept('running')).toBe('pay later');
    expect(accept('completed')).toBe('pay');
    expect(accept('skipped')).toBe('pay');
    expect(accept('failed')).toBe(COMPLETE);
    const aside = definition(
      'aside',
      [node('gate', 'core.approvalGate'), node('check', 'core.noop')],
      [],
    );
    expect(told(gate(), aside, { nodes: { check: { status: 'running' } } }).accept).toBe(
      'no step follows; the other running steps continue.',
    );
  });

  it('over an edge that leads back: the step comes again', () => {
    const workflow = definition(
      'loop',
      [node('draft', 'core.noop'), node('gate', 'core.approvalGate'), node('send', 'core.noop')],
      [
        edge('draft', 'gate'),
        edge('gate', 'send', is('outputs.action', 'accept')),
        edge('gate', 'draft', is('outputs.action', 'later')),
      ],
    );
    const nodes = { draft: { status: 'completed' } };
    expect(told(gate(), workflow, { nodes })).toMatchObject({
      ...{ accept: 'send', later: 'draft again' },
    });
  });

  it('beside a step that is held back: other steps still begin', () => {
    const workflow = definition(
      'held',
      [node('start', 'core.noop'), node('gate', 'core.approvalGate'), node('pay', 'core.noop')],
      [edge('start', 'gate'), edge('start', 'pay')],
    );
    const accept = (nodes: Standing['nodes']) => told(gate(), workflow, { nodes }).accept;
    const start = { status: 'completed' };
    expect(accept({ start })).toBe('no step follows; other steps still begin.');
    expect(accept({ start, pay: { status: 'skipped' } })).toBe(COMPLETE);
  });

  describe('beside a loop', () => {
    const seen = (status: string, changedAt: number, begunAt = changedAt - 1) => ({
      ...{ status, changedAt, begunAt, visits: 1 },
    });
    const loop = (more: Partial<WorkflowEdge> = {}, forward: Partial<WorkflowEdge> = {}) =>
      definition(
        'loop',
        ['start', 'gate', 'check', 'pay'].map((id) =>
          node(id, id === 'gate' ? 'core.approvalGate' : 'core.noop'),
        ),
        [
          ...[edge('start', 'check'), edge('check', 'gate', forward), edge('start', 'pay')],
          edge('check', 'start', more),
        ],
      );
    const accept = (workflow: WorkflowDefinition, nodes: Standing['nodes'] = {}) =>
      told(gate(), workflow, {
        nodes: {
          ...{ start: seen('completed', 2), check: seen('completed', 4) },
          ...{ gate: seen('suspended', 6), pay: seen('completed', 8), ...nodes },
        },
      }).accept;

    it('that waits for the question: it begins again, once all others of it rest', () => {
      expect(accept(loop())).toBe('start again');
      expect(accept(loop(), { pay: seen('running', 8) })).toBe('start again later');
      expect(accept(loop(), { start: { ...seen('completed', 2), visits: 11 } })).toBe(
        'start again',
      );
    });

    it('whose condition is not known: it may', () => {
      expect(accept(loop(is('outputs.ok', 'no')))).toBe(
        'start again if the conditions of the other steps hold',
      );
    });

    it.each([
      [is('outputs.ok', 'no'), is('outputs.ok', 'yes')],
      [
        is('outputs.ok', 'yes'),
        { condition: { type: 'notEquals', left: 'outputs.ok', right: 'yes' } },
      ],
      [
        { condition: { type: 'falsy', left: 'outputs.ok' } },
        { condition: { type: 'truthy', left: 'outputs.ok' } },
      ],
    ] as const)('that what has begun rules out: nothing more is done: %j', (back, forward) => {
      expect(accept(loop(back, forward))).toBe(COMPLETE);
    });

    it('that leads elsewhere, and whose first step may be held back', () => {
      const workflow = (more: Partial<WorkflowEdge>) =>
        definition(
          'aside',
          ['gate', 'start', 'check', 'pay'].map((id) =>
            node(id, id === 'gate' ? 'core.approvalGate' : 'core.noop'),
          ),
          [
            ...[edge('start', 'check'), edge('check', 'start', more)],
            ...[edge('check', 'pay'), edge('gate', 'pay')],
          ],
        );
      const nodes = { pay: undefined };
      expect(accept(workflow({}), nodes)).toBe('pay later');
      expect(accept(workflow(is('outputs.ok', 'no')), nodes)).toBe('pay later');
      const apart = (more: Partial<WorkflowEdge>) => ({
        ...workflow(more),
        edges: workflow(more).edges.filter(({ targetNodeId }) => targetNodeId !== 'pay'),
      });
      expect(accept(apart({}))).toBe('no step follows; other steps still begin.');
      expect(accept(apart(is('outputs.ok', 'no')))).toBe(
        'no step follows; other steps may still begin.',
      );
    });

    it('in a loop: of the round before nothing counts, however often each came', () => {
      const workflow = definition(
        'nested',
        ['outer', 'gate', 'inner', 'check', 'pay'].map((id) =>
          node(id, id === 'gate' ? 'core.approvalGate' : 'core.noop'),
        ),
        [
          ...[edge('outer', 'gate'), edge('outer', 'inner'), edge('inner', 'check')],
          ...[
            edge('check', 'inner', is('outputs.ok', 'no')),
            edge('gate', 'outer', is('outputs.action', 'later')),
          ],
        ],
      );
      const nodes = {
        outer: { status: 'completed', visits: 2, begunAt: 20, changedAt: 21 },
        inner: { status: 'completed', visits: 3, begunAt: 12, changedAt: 13 },
        check: { status: 'completed', visits: 3, begunAt: 14, changedAt: 15 },
        gate: { status: 'suspended', visits: 2, begunAt: 22, changedAt: 23 },
      };
      expect(told(gate(), workflow, { nodes }).accept).toBe(
        'no step follows; other steps still begin.',
      );
    });

    it('that is to be taken: what it decides again is not skipped for the answer', () => {
      const workflow = definition(
        'left',
        ['start', 'gate', 'pay', 'note'].map((id) =>
          node(id, id === 'gate' ? 'core.approvalGate' : 'core.noop'),
        ),
        [
          ...[edge('start', 'gate'), edge('gate', 'pay', is('outputs.action', 'accept'))],
          edge('pay', 'note', { triggerRule: 'any_success' }),
          edge('start', 'note', { triggerRule: 'any_success' }),
          edge('gate', 'start', is('outputs.action', 'approve')),
        ],
      );
      const nodes = { start: seen('completed', 2), gate: seen('suspended', 4) };
      expect(told(gate(), workflow, { nodes })).toMatchObject({
        ...{ accept: 'pay', approve: 'start again', 'edit-accept': 'note' },
      });
    });
  });

  it('of a call, a doubt and what an orchestrator says, in words', () => {
    const asked = (artifactType: string, data: JsonObject): Asked => ({
      ...{ nodeId: 'gate', kind: 'approval' },
      data: { artifactType, ...data },
    });
    const goesOn = 'the agent goes on.';
    expect(told(asked('tool-call', approvalQuestion('a', 'a/pay')), PAYMENT)).toEqual({
      accept: goesOn,
      reject: goesOn,
    });
    expect(told(asked('effect-in-doubt', doubtQuestion('a/pay', 'Cut.')), PAYMENT)).toEqual({
      ...{ accept: goesOn, reject: goesOn },
      'edit-accept': goesOn,
    });
    expect(told(asked('orchestrator-decision', turnQuestion('a')), PAYMENT)).toEqual({
      accept: 'the orchestrator’s decision is carried out.',
      reject: 'tell',
    });
  });

  it('of a clarification and a conversation', () => {
    const workflow = definition(
      'ask',
      [node('gate', 'core.noop'), node('next', 'core.noop')],
      [edge('gate', 'next')],
    );
    const asked = (kind: string): Asked => ({ nodeId: 'gate', kind, data: {} });
    expect(told(asked('clarification'), workflow)).toEqual({ answers: 'next' });
    const ofAgent = { ...asked('clarification'), data: { agentId: 'a' } };
    expect(told(ofAgent, workflow)).toEqual({ answers: 'the agent goes on.' });
    expect(told(asked('conversation.exchange'), workflow)).toEqual({
      say: 'the conversation goes on.',
      close: 'next',
    });
  });
});
