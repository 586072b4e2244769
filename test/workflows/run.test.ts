// Runs without agents: order, edges, waits, messages, limits, endings.
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/rules/ids.ts';
import { canonicalJson } from '../../src/rules/json.ts';
import { MESSAGES, type ResolveInterruptMessage } from '../../src/rules/messages.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';
import { chain, definition, edge, node, runInput, TESTER } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import {
  askedInterrupt,
  journalOf,
  openInterruptIds,
  type JournalItem,
} from '../support/run-workflow.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  runOnce,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';
import { takes } from '../support/waiting.ts';

useWorkflowRunner();
const ACCEPT_REJECT = approvalSchema(['accept', 'reject']);

/** The code that a made-up answer is refused with; undefined: it was taken. */
function refusal(
  handle: WorkflowHandle,
  meant: Pick<ResolveInterruptMessage, 'nodeId' | 'interruptId' | 'schemaDigest'>,
): Promise<string | undefined> {
  const value = { action: 'reject' };
  const message: ResolveInterruptMessage = {
    kind: 'resolve-interrupt',
    ...meant,
    value,
    bodyDigest: '',
    resolvedBy: TESTER,
  };
  return handle.executeUpdate(MESSAGES['resolve-interrupt'].update, { args: [message] }).then(
    () => undefined,
    (error: { cause?: { type?: string } }) => error.cause?.type,
  );
}

function interruptIds(journal: readonly JournalItem[]): string[] {
  return journal.flatMap((item) =>
    item.kind === 'emit' && item.type === 'node.suspended'
      ? [item.payload.interruptId as string]
      : [],
  );
}

describe('a sequential run', () => {
  it('states run.started, each node in order and run.completed (rest-endpoints.md)', async () => {
    const run = await runBothWays({
      input: runInput(
        chain('abc', [node('a', 'core.start'), node('b', 'core.noop'), node('c', 'core.end')]),
      ),
    });
    expect(run.status).toBe('completed');
    expect(typesOf(run)).toEqual([
      'run.started',
      'node.started a',
      'node.completed a',
      'node.started b',
      'node.completed b',
      'node.started c',
      'node.completed c',
      'run.completed',
    ]);
  });

  it('has exactly the history events of a bare workflow: five for a run without activities (architecture §2.3)', async () => {
    const run = await runBothWays({
      input: runInput(chain('one', [node('a', 'core.noop')])),
      plainOnly: true,
    });
    expect(run.segments[0]).toHaveLength(5);
  });

  it('ends the run as failed when a node fails, and fails the execution (rest-endpoints.md)', async () => {
    const run = await runBothWays({
      input: runInput(
        chain('f', [node('a', 'core.fail', { config: { code: 'x_y', message: 'no' } })]),
      ),
    });
    expect(run.status).toBe('failed');
    expect(payloadsOf(run, 'node.failed')).toEqual([
      { nodeId: 'a', error: { code: 'x_y', message: 'no' }, attempts: 1 },
    ]);
    expect(payloadsOf(run, 'run.failed')).toEqual([
      { error: { code: 'x_y', message: 'no' }, failedNodeId: 'a' },
    ]);
  });

  it('core.identity echoes its ports, core.setVariable states variable.changed, core.end gives the outputs', async () => {
    const variables = [
      { name: 'payload', type: 'object' as const, defaultValue: { deep: [1, { x: 'y' }] } },
      { name: 'secret', type: 'string' as const, sensitive: true, defaultValue: 'hush' },
    ];
    const nodes = [
      node('echo', 'core.identity', {
        inputs: { payload: { type: 'variable', variableName: 'payload' } },
      }),
      node('set', 'core.setVariable', { config: { variableName: 'secret', value: 'louder' } }),
      node('end', 'core.end', {
        inputs: { result: { type: 'connection', nodeId: 'echo', outputKey: 'payload' } },
      }),
    ];
    const run = await runBothWays({ input: runInput(chain('vars', nodes, { variables })) });
    expect(payloadsOf(run, 'variable.changed')).toEqual([
      { name: 'secret', previous: '[REDACTED]', next: '[REDACTED]', nodeId: 'set' },
    ]);
    expect(payloadsOf(run, 'run.completed')).toEqual([
      { outputs: { result: { deep: [1, { x: 'y' }] } } },
    ]);
    expect(payloadsOf(run, 'run.started')[0]?.inputs).toEqual({
      payload: { deep: [1, { x: 'y' }] },
      secret: '[REDACTED]',
    });
  });

  it('a value above 32 KiB that workflow code builds fails the node with payload_too_large (architecture §2.6)', async () => {
    const nodes = [
      node('set', 'core.setVariable', { config: { variableName: 'v', value: 'x'.repeat(40_000) } }),
    ];
    const run = await runBothWays({
      input: runInput(chain('big', nodes, { variables: [{ name: 'v', type: 'string' }] })),
      plainOnly: true,
    });
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'payload_too_large' });
  });
});

describe('edges', () => {
  it('a condition takes one branch, the other is skipped and the skip propagates; the join runs (workflow-definition.schema.json)', async () => {
    const workflow = definition(
      'branch',
      [
        node('a', 'core.setVariable', { config: { variableName: 'n', value: 7 } }),
        node('yes', 'core.noop'),
        node('no', 'core.noop'),
        node('no2', 'core.noop'),
        node('join', 'core.noop'),
      ],
      [
        edge('a', 'yes', { condition: { type: 'equals', left: 'n', right: '7' } }),
        edge('a', 'no', { condition: { type: 'notEquals', left: 'outputs.value', right: 7 } }),
        edge('no', 'no2'),
        edge('yes', 'join'),
        edge('no2', 'join'),
      ],
      { variables: [{ name: 'n', type: 'number' }] },
    );
    const run = await runBothWays({ input: runInput(workflow), parallel: true });
    const types = typesOf(run);
    expect(types).toContain('node.skipped no');
    expect(types).toContain('node.skipped no2');
    expect(types).toContain('node.completed join');
    expect(run.status).toBe('completed');
  });

  it.each([
    ['its only node', [node('a', 'core.noop', { disabled: true })], []],
    [
      'all its start nodes, with what they lead to',
      [
        node('a', 'core.noop', { disabled: true }),
        node('b', 'core.noop', { disabled: true }),
        node('c', 'core.end'),
      ],
      [edge('a', 'c'), edge('b', 'c')],
    ],
  ])(
    'a run with %s disabled ends: all skipped, completed with empty outputs (workflow-definition.schema.json)',
    async (_what, nodes, edges) => {
      const run = await runBothWays({
        input: runInput(definition('off', nodes, edges)),
        plainOnly: true,
      });
      expect(run.status).toBe('completed');
      expect(typesOf(run)).toEqual([
        'run.started',
        ...nodes.map(({ id }) => `node.skipped ${id}`),
        'run.completed',
      ]);
      expect(payloadsOf(run, 'run.completed')).toEqual([{ outputs: {} }]);
    },
  );

  it('regex conditions are linear: a hostile pattern and text do not block', async () => {
    const workflow = definition(
      'regex',
      [node('a', 'core.noop'), node('b', 'core.noop')],
      [edge('a', 'b', { condition: { type: 'regex', left: 'text', right: '^(a+)+$' } })],
      { variables: [{ name: 'text', type: 'string', defaultValue: `${'a'.repeat(6000)}!` }] },
    );
    const run = await runBothWays({ input: runInput(workflow), plainOnly: true });
    expect(typesOf(run)).toContain('node.skipped b');
  });

  it('fans out and waits for all at the fan-in; delays run side by side', async () => {
    const branches = ['b1', 'b2', 'b3'];
    const workflow = definition(
      'fan',
      [
        node('a', 'core.start'),
        ...branches.map((id) => node(id, 'core.delay', { config: { ms: 100 } })),
        node('z', 'core.end'),
      ],
      branches.flatMap((id) => [edge('a', id), edge(id, 'z')]),
    );
    const types = typesOf(await runBothWays({ input: runInput(workflow), parallel: true }));
    for (const id of branches)
      expect(types.indexOf(`node.completed ${id}`)).toBeLessThan(types.indexOf('node.started z'));
    expect(types.filter((type) => type === 'node.started z')).toHaveLength(1);
  });

  it('a failure is routed by any_failed and the run completes (interrupt.md)', async () => {
    const workflow = definition(
      'routed',
      [node('gate', 'core.fail'), node('on-reject', 'core.noop'), node('on-accept', 'core.noop')],
      [
        edge('gate', 'on-reject', { triggerRule: 'any_failed' }),
        edge('gate', 'on-accept', { triggerRule: 'all_success' }),
      ],
    );
    const run = await runBothWays({ input: runInput(workflow), parallel: true });
    expect(run.status).toBe('completed');
    expect(typesOf(run)).toEqual(
      expect.arrayContaining([
        'node.failed gate',
        'node.completed on-reject',
        'node.skipped on-accept',
      ]),
    );
  });

  it('a failing branch stops the others: their nodes are cancelled before run.failed', async () => {
    const workflow = definition('stop', [
      node('slow', 'core.approvalGate'),
      node('bad', 'core.fail'),
    ]);
    const types = typesOf(await runBothWays({ input: runInput(workflow), parallel: true }));
    expect(types.indexOf('node.cancelled slow')).toBeGreaterThan(0);
    expect(types.at(-1)).toBe('run.failed');
  });
});

describe('loops and limits', () => {
  const loop = (limit: number) =>
    definition(
      'loop',
      [node('work', 'core.noop'), node('check', 'core.conditional'), node('end', 'core.end')],
      [
        edge('work', 'check'),
        edge('check', 'work', { condition: { type: 'truthy', left: 'again' } }),
        edge('check', 'end'),
      ],
      {
        variables: [{ name: 'again', type: 'boolean', defaultValue: true }],
        settings: { maxLoopbackIterations: limit },
      },
    );

  it('a back edge starts new visits up to maxLoopbackIterations, then states workflow.loopback-limit (workflow-definition.schema.json)', async () => {
    const run = await runBothWays({ input: runInput(loop(2)), parallel: true });
    expect(typesOf(run).filter((type) => type === 'node.started work')).toHaveLength(3);
    expect(payloadsOf(run, 'workflow.loopback-limit')).toEqual([
      { nodeId: 'work', iterations: 3, limit: 2 },
    ]);
    expect(run.status).toBe('completed');
  });

  it('recursionLimit: cap.breached once, the node over the limit never starts (capabilities.md §Engine-enforced limits)', async () => {
    const nodes = ['n1', 'n2', 'n3', 'n4', 'n5'].map((id) => node(id, 'core.noop'));
    const run = await runBothWays({
      input: runInput(chain('cap', nodes), { configurable: { recursionLimit: 3 } }),
    });
    expect(payloadsOf(run, 'cap.breached')).toEqual([
      { kind: 'node-executions', limit: 3, observed: 4, nodeId: 'n4' },
    ]);
    expect(typesOf(run).filter((type) => type.startsWith('node.started'))).toHaveLength(3);
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({
      code: 'recursion_limit_exceeded',
    });
  });

  it('runTimeoutMs: cap.breached run-duration, then run.failed run_timeout (capabilities.md §Engine-enforced limits)', async () => {
    const input = runInput(
      chain('long', [node('wait', 'core.delay', { config: { durationMs: 60_000 } })]),
      { configurable: { runTimeoutMs: 1000 } },
    );
    const run = await runBothWays({ input, plainOnly: true });
    expect(payloadsOf(run, 'cap.breached')[0]).toMatchObject({ kind: 'run-duration', limit: 1000 });
    expect(typesOf(run).slice(-2)).toEqual(['node.cancelled wait', 'run.failed']);
  });

  it('node retries are attempts in the log; each node.started counts from 0 (run-event-payloads.schema.json)', async () => {
    const settings = { retry: { maxAttempts: 3, initialDelayMs: 10, backoff: 1 } };
    const run = await runBothWays({
      input: runInput(chain('retry', [node('a', 'core.fail', { settings })])),
    });
    expect(payloadsOf(run, 'node.started').map(({ attempt }) => attempt)).toEqual([0, 1, 2]);
    expect(payloadsOf(run, 'node.retried').map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(payloadsOf(run, 'node.failed')[0]?.attempts).toBe(3);
  });

  it('a node timeout fails the attempt with node_timeout', async () => {
    const nodes = [
      node('a', 'core.delay', { config: { ms: 60_000 }, settings: { timeoutMs: 200 } }),
    ];
    const run = await runBothWays({ input: runInput(chain('slow', nodes)), plainOnly: true });
    expect(payloadsOf(run, 'node.failed')[0]?.error).toMatchObject({ code: 'node_timeout' });
  });
});

describe('waits and messages', () => {
  const gate = chain('gate', [
    node('gate', 'core.approvalGate', { config: { title: 'Pay?' } }),
    node('end', 'core.end'),
  ]);

  it('an approval: suspended, requested, resolved, received, resumed, in this order (interrupt.md)', async () => {
    const run = await runBothWays({
      input: runInput(gate),
      script: async (handle) =>
        void (await answer(handle, 'gate', { action: 'accept' }, ACCEPT_REJECT)),
    });
    expect(typesOf(run).slice(1)).toEqual([
      'node.started gate',
      'node.suspended gate',
      'interrupt.requested gate',
      'approval.requested gate',
      'interrupt.resolved gate',
      'approval.received gate',
      'node.resumed gate',
      'node.completed gate',
      'node.started end',
      'node.completed end',
      'run.completed',
    ]);
  });

  it('refuses: unknown node 404, second answer 409, without a history event (interrupt.md)', async () => {
    const refused: unknown[] = [];
    const run = await runBothWays({
      plainOnly: true,
      input: runInput(chain('twice', [...gate.nodes, node('gate2', 'core.approvalGate')])),
      script: async (handle) => {
        await answer(handle, 'gate', { action: 'accept' }, ACCEPT_REJECT);
        for (const nodeId of ['gate', 'gate2x']) {
          refused.push(await refusal(handle, { nodeId, interruptId: 'int-x', schemaDigest: '' }));
        }
        await answer(handle, 'gate2', { action: 'accept' }, ACCEPT_REJECT);
      },
    });
    expect(refused).toEqual(['interrupt_already_resolved', 'interrupt_not_found']);
    expect(run.status).toBe('completed');
  });

  it('an answer reaches the question it names and no other of that node, whatever its schema (interrupt.md)', async () => {
    const again = definition(
      'again',
      [node('gate', 'core.approvalGate'), node('end', 'core.end')],
      [edge('gate', 'gate', { condition: { type: 'truthy', left: 'again' } }), edge('gate', 'end')],
      {
        variables: [{ name: 'again', type: 'boolean', defaultValue: true }],
        settings: { maxLoopbackIterations: 1 },
      },
    );
    const schemaDigest = digestOf(canonicalJson(ACCEPT_REJECT));
    const refused: unknown[] = [];
    const run = await runBothWays({
      input: runInput(again),
      plainOnly: true,
      script: async (handle) => {
        await answer(handle, 'gate', { action: 'accept' }, ACCEPT_REJECT);
        const { events } = await handle.fetchHistory();
        const [first] = interruptIds(journalOf(events ?? []));
        await until(async () => (await askedInterrupt(handle, 'gate')) !== first, 'it asks again');
        refused.push(
          await refusal(handle, { nodeId: 'gate', interruptId: first ?? '', schemaDigest }),
        );
        await answer(handle, 'gate', { action: 'accept' }, ACCEPT_REJECT);
      },
    });
    expect(refused).toEqual(['interrupt_already_resolved']);
    const asked = interruptIds(run.journal);
    expect(new Set(asked).size).toBe(2);
    expect(payloadsOf(run, 'interrupt.resolved').map(({ interruptId }) => interruptId)).toEqual(
      asked,
    );
  });

  it('messages that a segment begins with and refuses leave no trace that a replay would stumble over', async () => {
    const gates = Array.from({ length: 4 }, (_, n) => node(`gate${n}`, 'core.approvalGate'));
    const run = await runOnce({
      input: { ...runInput(chain('borders', gates)), forceContinueAsNewAfter: 5 },
      script: async (handle) => {
        let over = false;
        // All the time somebody answers what nobody asks.
        const strangers = Array.from({ length: 4 }, async () => {
          while (!over)
            await refusal(handle, { nodeId: 'gate0', interruptId: 'int-x', schemaDigest: '' });
        });
        for (const { id } of gates)
          await answer(handle, id, { action: 'accept' }, ACCEPT_REJECT).catch(() => undefined);
        over = true;
        await Promise.all(strangers);
      },
    });
    expect(run.status).toBe('completed');
    expect(run.segments.length).toBeGreaterThan(1);
  });

  it('a repeat of a message with the same update id gets the first outcome, also in a later segment (architecture §4)', async () => {
    const updateId = randomUUID();
    const outcomes: unknown[] = [];
    const two = chain('repeat', [
      node('gate', 'core.approvalGate'),
      node('gate2', 'core.approvalGate'),
    ]);
    await runBothWays({
      input: runInput(two),
      script: async (handle) => {
        await until(async () => (await askedInterrupt(handle, 'gate')) !== '', 'it asks');
        const interruptId = await askedInterrupt(handle, 'gate');
        const said = () =>
          answer(handle, 'gate', { action: 'accept' }, ACCEPT_REJECT, { updateId, interruptId });
        const first = await said();
        await takes(1_500);
        outcomes.push([first, await said()]);
        await answer(handle, 'gate2', { action: 'accept' }, ACCEPT_REJECT);
      },
    });
    for (const [first, second] of outcomes as [unknown, unknown][]) expect(second).toEqual(first);
  });

  it('a gate that nobody answers never grants: timeout, interrupt_timeout (interrupt.md)', async () => {
    const workflow = chain('late', [
      node('gate', 'core.approvalGate', { config: { timeoutMs: 300, onTimeout: 'approve' } }),
    ]);
    const run = await runBothWays({ input: runInput(workflow) });
    expect(payloadsOf(run, 'approval.received')).toEqual([{ nodeId: 'gate', action: 'timeout' }]);
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'interrupt_timeout' });
  });

  it.each(['core.approvalGate', 'core.clarificationGate'])(
    '%s without a time of its own stands for the time of the run, then never grants (interrupt.md)',
    async (typeId) => {
      const config = { questions: [{ id: 'q1', question: 'Which colour?' }] };
      const more = { limits: { ...runInput(gate).limits, interruptTimeoutMs: 400 } };
      const run = await runBothWays({
        input: runInput(chain('usual', [node('gate', typeId, { config })]), more),
      });
      expect(payloadsOf(run, 'interrupt.requested')[0]?.timeoutMs).toBe(400);
      expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'interrupt_timeout' });
      const own = await runBothWays({
        input: runInput(
          chain('own', [node('gate', typeId, { config: { ...config, timeoutMs: 300 } })]),
          more,
        ),
        plainOnly: true,
      });
      expect(payloadsOf(own, 'interrupt.requested')[0]?.timeoutMs).toBe(300);
    },
  );

  it('a clarification takes answers as object or list and hands them on as an object (interrupt.md)', async () => {
    const questions = [{ id: 'q1', question: 'Which colour?' }];
    const workflow = chain('ask', [
      node('ask', 'core.clarificationGate', { config: { questions } }),
    ]);
    const schema = answersSchema(questions);
    const run = await runBothWays({
      input: runInput(workflow),
      script: async (handle) =>
        void (await answer(handle, 'ask', { answers: [{ id: 'q1', answer: 'blue' }] }, schema)),
    });
    expect(payloadsOf(run, 'clarification.resolved')).toEqual([
      { nodeId: 'ask', answers: { q1: 'blue' }, answeredBy: 'tester' },
    ]);
    expect(payloadsOf(run, 'run.completed')).toEqual([{ outputs: { answers: { q1: 'blue' } } }]);
  });

  it('a quorum needs its votes; majority rejects (interrupt-profiles.md)', async () => {
    const config = {
      requiredApprovals: 3,
      rejectionPolicy: 'majority',
      actions: ['accept', 'reject'],
    };
    const workflow = chain('quorum', [node('gate', 'core.approvalGate', { config })]);
    const vote = (voter: string, action: string) => ({ action, voter });
    const votes = approvalSchema(config.actions);
    const accepted = await runBothWays({
      input: runInput(workflow),
      script: async (handle) => {
        for (const voter of ['v1', 'v2', 'v2', 'v3'])
          await answer(handle, 'gate', vote(voter, 'accept'), votes);
      },
    });
    expect(payloadsOf(accepted, 'approval.received')).toEqual([
      { nodeId: 'gate', action: 'accept', decidedBy: 'quorum:3-of-3' },
    ]);
    const rejected = await runBothWays({
      input: runInput(workflow),
      plainOnly: true,
      script: async (handle) => {
        for (const voter of ['v1', 'v2'])
          await answer(handle, 'gate', vote(voter, 'reject'), votes);
      },
    });
    expect(rejected.status).toBe('failed');
  });

  it('in a quorum only a decision is a vote: who asked for changes may still decide (interrupt-profiles.md)', async () => {
    const actions = ['accept', 'reject', 'refine'];
    const config = { requiredApprovals: 2, actions };
    const outcomes: unknown[] = [];
    const run = await runBothWays({
      input: runInput(chain('refined', [node('gate', 'core.approvalGate', { config })])),
      plainOnly: true,
      script: async (handle) => {
        for (const [voter, action] of [
          ['v1', 'refine'],
          ['v1', 'accept'],
          ['v2', 'accept'],
        ] as const)
          outcomes.push(await answer(handle, 'gate', { action, voter }, approvalSchema(actions)));
      },
    });
    expect(outcomes).toMatchObject([
      { status: 'open' },
      { status: 'open' },
      { status: 'resolved' },
    ]);
    expect(payloadsOf(run, 'approval.received')).toEqual([
      { nodeId: 'gate', action: 'accept', decidedBy: 'quorum:2-of-2' },
    ]);
  });

  it.each(['update', 'temporal'] as const)(
    'cancel by %s: nodes cancelled, run.cancelled last, execution cancelled',
    async (way) => {
      const run = await runBothWays({
        input: runInput(gate),
        script: async (handle) => {
          await until(
            async () => (await openInterruptIds(handle, 'gate')).length === 1,
            'the gate asks',
          );
          if (way === 'temporal') await handle.cancel();
          else
            await handle.executeUpdate(MESSAGES.cancel.update, {
              args: [{ cancelledBy: 'me', reason: 'why not', bodyDigest: '' }],
            });
        },
      });
      expect(run.status).toBe('cancelled');
      expect(typesOf(run).slice(-2)).toEqual(['node.cancelled gate', 'run.cancelled']);
      expect(run.segments.at(-1)?.at(-1)?.workflowExecutionCanceledEventAttributes).toBeTruthy();
      expect(factsOf(run).filter(({ type }) => type === 'run.cancelled')).toHaveLength(1);
    },
  );
});
