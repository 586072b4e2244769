// What the HTTP suite runs: one small workflow per behaviour, and one agent on the scripted model.
import type { BuiltIn } from '../../src/app/parts.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';

export const AGENT = 'local.suite.refund.triage';
/** Asks twice before it decides, each time in another form. */
export const ASKING_AGENT = 'local.suite.refund.asking';
/** Said by the agent, entered as an input: looked for in raw history under encryption. */
export const MARKER = 'marker-peppermint-4711';

const manifestOf = (agentId: string) => ({
  agentId,
  persona: 'Refund clerk',
  modelClass: 'general' as const,
  systemPrompt: 'Decide on refunds.',
  toolAllowlist: ['core:json.query'],
});

const asks = (id: string) => ({
  type: 'clarification.request',
  payload: { questions: [{ id, question: `What is ${id}?` }] },
});

const gate = { title: 'Ship it?', actions: ['accept', 'reject'] };

export const SUITE: Partial<BuiltIn> = {
  definitions: [
    chain('noop', [node('only', 'core.noop')]),
    chain('three', [node('a', 'core.noop'), node('b', 'core.noop'), node('c', 'core.noop')]),
    chain(
      'identity',
      [
        node('echo', 'core.identity', {
          inputs: { payload: { type: 'variable', variableName: 'payload' } },
        }),
      ],
      {
        variables: [{ name: 'payload', type: 'object' }],
      },
    ),
    // One variable of each type: what a form that starts a run is made of.
    chain('typed', [node('only', 'core.noop')], {
      variables: [
        { name: 'note', type: 'string', required: true, format: 'text' },
        { name: 'count', type: 'number', defaultValue: 1 },
        { name: 'gift', type: 'boolean' },
        { name: 'order', type: 'object' },
        { name: 'lines', type: 'array', required: true },
        { name: 'pin', type: 'string', sensitive: true },
        { name: 'a/b~c', type: 'string' },
      ],
    }),
    chain('failing', [node('bad', 'core.fail')]),
    chain('sleeping', [node('sleep', 'core.delay', { config: { ms: 3_600_000 } })]),
    chain('resting', [
      node('rest', 'core.delay', { config: { ms: 1_500 } }),
      node('after', 'core.noop'),
    ]),
    chain('approval', [node('gate', 'core.approvalGate', { config: gate })]),
    chain('quorum', [
      node('gate', 'core.approvalGate', { config: { ...gate, requiredApprovals: 2 } }),
    ]),
    chain('quorum-of-three', [
      node('gate', 'core.approvalGate', {
        config: { ...gate, requiredApprovals: 3, rejectionPolicy: 'majority' },
      }),
    ]),
    // What is paid stands behind the gate without a condition: only a yes leads there.
    definition(
      'payment',
      [
        node('gate', 'core.approvalGate', {
          config: {
            title: 'Pay the refund?',
            actions: [
              { action: 'approve', label: 'Pay it', effect: 'continue' },
              { action: 'deny', label: 'Do not pay', effect: 'end' },
            ],
          },
        }),
        node('pay', 'core.noop'),
        node('tell', 'core.noop'),
      ],
      [edge('gate', 'pay'), edge('gate', 'tell', { triggerRule: 'any_failed' })],
    ),
    // Asks the same question again and again: an answer to one must not reach the next.
    definition(
      'asking-again',
      [node('gate', 'core.approvalGate', { config: gate })],
      [edge('gate', 'gate', { condition: { type: 'truthy', left: 'again' } })],
      {
        variables: [{ name: 'again', type: 'boolean', defaultValue: true }],
        settings: { maxLoopbackIterations: 3 },
      },
    ),
    chain('expiring', [node('gate', 'core.approvalGate', { config: { ...gate, timeoutMs: 300 } })]),
    // Long enough for a page to be opened meanwhile.
    chain('expiring-later', [
      node('gate', 'core.approvalGate', { config: { ...gate, timeoutMs: 3_000 } }),
    ]),
    chain('clarify', [
      node('ask', 'core.clarificationGate', {
        config: { questions: [{ id: 'q1', question: 'Which colour?' }] },
      }),
    ]),
    definition(
      'two-gates',
      [
        node('start', 'core.start'),
        node('left', 'core.approvalGate', { config: gate }),
        node('right', 'core.approvalGate', { config: gate }),
      ],
      [edge('start', 'left'), edge('start', 'right')],
    ),
    chain('asking-twice', [agentNode('desk', ASKING_AGENT)]),
    chain(
      'refund',
      [
        agentNode('triage', AGENT, {
          inputs: { order: { type: 'variable', variableName: 'order' } },
        }),
      ],
      {
        variables: [{ name: 'order', type: 'string', required: true }],
      },
    ),
  ],
  agents: [AGENT, ASKING_AGENT].map((agentId) => ({
    manifest: manifestOf(agentId),
    packName: 'suite',
    packVersion: '1.0.0',
    systemPrompt: 'Decide on refunds.',
  })),
  scripts: {
    [ASKING_AGENT]: {
      turns: [
        { final: { decision: asks('q1') } },
        { final: { decision: asks('q2') } },
        { final: { decision: 'refund', confidence: 0.95 } },
      ],
    },
    [AGENT]: {
      turns: [
        {
          chunks: ['I look ', 'at the ', `order, ${MARKER}. `],
          final: { decision: { action: 'refund', note: MARKER }, confidence: 0.55 },
          usage: { inputTokens: 10, outputTokens: 5 },
        },
      ],
    },
  },
};
