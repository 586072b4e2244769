// The compiled schemas: every payload, request and document that the host takes or gives (rest-endpoints.md,
// capabilities.md; run-event-payloads.schema.json).
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { GENERATED, generateTypes } from '../../schemas/generate.ts';
import { MAX_NODE_EXECUTIONS, MAX_RUN_DURATION_MS } from '../../src/rules/limits.ts';
import {
  EVENT_TYPE_NAMES,
  NODE_TYPE_IDS,
  schemaDocument,
  validate,
  validateEvent,
} from '../../src/wire/validators.ts';
import { nodeTypesOf } from '../../src/rules/capabilities.ts';

const agentId = 'core.demo';
const nodeId = 'n';
const error = { code: 'tool_failed', message: 'm' };
const invocation = { invocationId: 'inv-1', agentId };
const suspended = { nodeId, interruptId: 'int-1' };

const turn = (turnIndex: number) => ({
  ...{ messageId: `m${turnIndex}`, from: 'user', content: 'x', ts: 1, role: 'user', turnIndex },
});

/** One valid payload of each type; an index of what the host may emit. */
const VALID: Record<(typeof EVENT_TYPE_NAMES)[number], Record<string, unknown>> = {
  'run.started': { workflowId: 'w', inputs: {}, transport: 'rest', tags: ['t'] },
  'run.paused': { drainPolicy: 'immediate', reason: 'lunch' },
  'openwop-temporal.clock-set': { now: '2026-01-01T00:00:00.000Z', skippedMs: 0 },
  'replay.diverged': { sourceRunId: 'run-1', atSequence: 3, divergenceKind: 'output' },
  'run.resumed': { reason: 'done' },
  'run.completed': { outputs: { a: 1 }, durationMs: 5 },
  'run.failed': { error, failedNodeId: nodeId },
  'run.cancelled': { reason: 'r', cancelledBy: 'p' },
  'node.started': { nodeId, typeId: 'core.noop', attempt: 0, agent: { agentId } },
  'node.completed': { nodeId, outputs: {} },
  'node.failed': { nodeId, error, attempts: 1 },
  'node.suspended': {
    ...suspended,
    kind: 'low-confidence',
    reason: 'low-confidence',
    agentId,
    threshold: 0.7,
    observed: 0.5,
  },
  'node.resumed': { ...suspended, resumeValue: null },
  'node.retried': { nodeId, attempt: 1, delayMs: 0, lastError: error },
  'node.skipped': { nodeId, reason: 'r' },
  'node.cancelled': { nodeId, reason: 'r' },
  'node.dispatched': { childRunId: 'r', childWorkflowId: 'w', childStatus: 'completed' },
  'runOrchestrator.decided': {
    agentId,
    decision: { kind: 'next-worker', nextWorkerIds: ['w'], confidence: 1 },
    iteration: 1,
  },
  'core.workflowChain.event': {
    phase: 'child.failed',
    workerId: 'w',
    parentRunId: 'p',
    childRunId: 'r',
    error,
  },
  'core.workflowChain.confidence-escalated': {
    confidence: 0.3,
    floor: 0.5,
    escalationKind: 'escalate',
    parentRunId: 'p',
    workerId: 'w',
    originalDecision: { kind: 'terminate', reason: 'done' },
  },
  'core.dispatch.fanOut': { fanOutPolicy: 'parallel', childCount: 2, joinMode: 'wait-all' },
  'core.dispatch.join': {
    joinOutcome: 'partial',
    completedCount: 1,
    failedCount: 1,
    mergeOrder: ['r'],
    cancelledCount: 0,
  },
  'interrupt.requested': { kind: 'approval', key: 'k', data: {}, resumeSchema: {}, timeoutMs: 1 },
  'interrupt.resolved': { ...suspended, kind: 'approval', resumeValue: {}, resolvedBy: 'p' },
  'approval.requested': { nodeId, artifactId: 'a', artifactType: 't', actions: ['accept', 'edit'] },
  'approval.received': { nodeId, action: 'edit-accept', decidedBy: 'p' },
  'approval.granted': {
    ...{ gateId: nodeId, principal: 'p' },
    quorumProgress: { granted: 1, required: 2 },
  },
  'approval.rejected': { gateId: nodeId, principal: 'p', reason: 'no' },
  'openwop-temporal.voted': {
    ...{ nodeId, interruptId: 'int-1', voter: 'p', votedBy: 'p', effect: 'end' },
    ...{ resumeValue: { action: 'reject' }, votes: 1, needed: 2 },
  },
  'openwop-temporal.asked-back': {
    ...{ nodeId, interruptId: 'int-1', askedBy: 'p', action: 'ask', text: 'Why?' },
  },
  'clarification.requested': { nodeId, questions: [{ id: 'q', question: '?' }] },
  'clarification.resolved': { nodeId, answers: { q: 'a' } },
  'variable.changed': { name: 'v', previous: 1, next: null },
  'conversation.opened': {
    conversationId: 'conv',
    initialTurn: turn(0),
    capabilities: ['multi-turn'],
  },
  'conversation.exchanged': { conversationId: 'conv', turnIndex: 1, turn: turn(1) },
  'conversation.closed': {
    ...{ conversationId: 'conv', turnIndex: 2, finalTurn: turn(2) },
    outcome: null,
  },
  'channel.written': {
    channel: 'c',
    value: { value: 1, _ts: 1 },
    reducer: 'append',
    writtenAt: '2026-01-01T00:00:00.000Z',
    nodeId,
    schemaVersion: 1,
  },
  'output.chunk': { nodeId, runId: 'r', chunk: '', isLast: true, meta: { finishReason: 'stop' } },
  'workflow.loopback-limit': { nodeId, iterations: 6, limit: 5 },
  'cap.breached': { kind: 'confidence-escalation-suppressed', limit: 0.7, observed: 0.5 },
  'agent.invocation.started': { ...invocation, source: 'run-api', toolSurfaceCount: 0 },
  'agent.promptResolved': {
    nodeId,
    kind: 'system',
    chain: [{ layer: 'agent-intrinsic', applied: true }],
    resolved: null,
  },
  'prompt.composed': {
    nodeId,
    refs: ['prompt:agent.x@1.0.0'],
    kind: 'system+user',
    hash: `sha256:${'0'.repeat(64)}`,
  },
  'agent.reasoning.delta': { agentId, delta: '', sequence: 0 },
  'agent.reasoned': { agentId, reasoning: 'r', verbosity: 'summary' },
  'agent.toolCalled': {
    agentId,
    toolName: 't',
    callId: 'c',
    inputs: null,
    argsHash: 'a'.repeat(64),
    transport: 'native',
  },
  'agent.toolReturned': {
    agentId,
    toolName: 't',
    callId: 'c',
    error,
    status: 'error',
    durationMs: 1,
  },
  'agent.decided': { agentId, decision: { action: 'x' }, confidence: 1 },
  'agent.handoff': { fromAgentId: agentId, toAgentId: 'core.other' },
  'agent.invocation.completed': { ...invocation, outcome: 'escalated', confidence: 0 },
  'provider.usage': { provider: 'p', model: 'm', inputTokens: 0, outputTokens: 0 },
  'envelope.refusal': { nodeId, provider: 'p', model: 'm', refusalText: null },
  'envelope.retry.exhausted': { nodeId, totalAttempts: 1, finalReason: 'schema-violation' },
};

/** Published as closed (run-event-payloads.schema.json): an extra field makes the record invalid. */
const CLOSED = new Set([
  'openwop-temporal.clock-set',
  'openwop-temporal.voted',
  'openwop-temporal.asked-back',
  'approval.granted',
  'approval.rejected',
  'conversation.opened',
  'conversation.exchanged',
  'conversation.closed',
  'channel.written',
  'node.dispatched',
  'runOrchestrator.decided',
  'core.workflowChain.event',
  'core.workflowChain.confidence-escalated',
  'core.dispatch.fanOut',
  'core.dispatch.join',
  'interrupt.requested',
  'agent.promptResolved',
  'prompt.composed',
  'provider.usage',
  'envelope.refusal',
  'envelope.retry.exhausted',
]);

describe('run-event-payloads.schema.json: payloads', () => {
  test.each(EVENT_TYPE_NAMES)(
    '%s accepts a valid payload, and knows its required fields and whether it is closed',
    (type) => {
      const valid = VALID[type];
      expect(validate.payload(type, valid)).toMatchObject({ ok: true });
      expect(validate.payload(type, { ...valid, 'x-extra': 1 }).ok).toBe(!CLOSED.has(type));
      for (const wrong of [null, [], 'text', 1])
        expect(validate.payload(type, wrong).ok).toBe(false);
      const { $defs, properties } = schemaDocument('run-event-payloads') as {
        $defs: Record<string, { required?: string[] }>;
        properties: Record<string, { $ref: string }>;
      };
      for (const field of $defs[properties[type]?.$ref.slice('#/$defs/'.length) ?? '']?.required ??
        []) {
        const without = Object.fromEntries(
          Object.entries(valid).filter(([name]) => name !== field),
        );
        expect(validate.payload(type, without)).toMatchObject({
          ok: false,
          errors: [{ pointer: '' }],
        });
      }
    },
  );

  const INVALID: [keyof typeof VALID, object, string][] = [
    ['agent.toolReturned', { outcome: 1 }, ''],
    ['agent.toolCalled', { agentId: 'ab' }, '/agentId'],
    ['agent.toolCalled', { argsHash: 'sha256:x' }, '/argsHash'],
    ['agent.decided', { confidence: 1.1 }, '/confidence'],
    ['agent.reasoning.delta', { sequence: -1 }, '/sequence'],
    ['cap.breached', { kind: 'x-iterations' }, '/kind'],
    ['node.suspended', { kind: 'other' }, '/kind'],
    ['node.started', { attempt: 0.5 }, '/attempt'],
    ['node.started', { agent: { agentId, prompt: 'x' } }, '/agent/prompt'],
    ['approval.requested', { actions: [] }, '/actions'],
    ['approval.requested', { actions: ['edit-accept'] }, '/actions/0'],
    ['prompt.composed', { refs: ['agent.x'] }, '/refs/0'],
    ['prompt.composed', { hash: 'x' }, '/hash'],
    ['agent.promptResolved', { chain: [{ layer: 'x', applied: true }] }, '/chain/0/layer'],
    ['run.failed', { error: { code: '', message: '' } }, '/error/code'],
    ['agent.invocation.completed', { outcome: 'ok' }, '/outcome'],
  ];
  test.each(INVALID)('%s with %j is refused at %s', (type, change, pointer) => {
    expect(validate.payload(type, { ...VALID[type], ...change })).toMatchObject({
      ok: false,
      errors: [{ pointer }],
    });
  });

  test('an unknown type has no payload', () => {
    for (const type of ['run.created', 'toString', ''])
      expect(validate.payload(type, {}).ok).toBe(false);
  });
});

describe('validateEvent', () => {
  const doc = {
    ...{ eventId: 'evt-1', runId: 'r', type: 'run.completed', payload: {} },
    ...{ timestamp: '2026-01-02T03:04:05.678Z', sequence: 0 },
  };
  test.each<[string, object, string | undefined]>([
    ['a valid event', {}, undefined],
    ['a type of our own', { type: 'openwop-temporal.note', payload: 5 }, undefined],
    ['an unknown type', { type: 'run.created' }, '/payload'],
    ['a foreign vendor type', { type: 'acme.note' }, '/payload'],
    ['a wrong payload', { type: 'run.started' }, '/payload'],
    [
      'a wrong field of the payload',
      { type: 'run.completed', payload: { durationMs: -1 } },
      '/payload/durationMs',
    ],
    ['a negative sequence', { sequence: -1 }, '/sequence'],
    ['no date', { timestamp: 'yesterday' }, '/timestamp'],
    ['an empty eventId', { eventId: '' }, '/eventId'],
    ['a long nodeId', { nodeId: 'n'.repeat(129) }, '/nodeId'],
  ])('run-event.schema.json: %s', (_, change, pointer) => {
    const result = validateEvent({ ...doc, ...change });
    expect(result.ok ? undefined : result.errors[0].pointer).toBe(pointer);
  });
});

describe('rest-endpoints.md: the body of POST /v1/runs', () => {
  const deep = { a: { b: { c: { d: 1 } } } };
  test.each<[string, unknown, string | undefined]>([
    ['a workflow', { workflowId: 'w' }, undefined],
    ['an agent', { agentId }, undefined],
    [
      'everything',
      {
        workflowId: 'w',
        inputs: {},
        configurable: { own: 1, recursionLimit: 5 },
        tags: ['t'],
        metadata: { a: 1 },
      },
      undefined,
    ],
    ['neither', {}, ''],
    ['both', { workflowId: 'w', agentId }, ''],
    ['no object', [], ''],
    ['an unknown field', { workflowId: 'w', x: 1 }, '/x'],
    ['a wrong type', { workflowId: 5 }, '/workflowId'],
    ['inputs that are a list', { workflowId: 'w', inputs: [] }, '/inputs'],
    ['101 tags', { workflowId: 'w', tags: Array.from({ length: 101 }, () => 't') }, '/tags'],
    ['a long tag', { workflowId: 'w', tags: ['t'.repeat(257)] }, '/tags/0'],
    ['metadata of four levels', { workflowId: 'w', metadata: deep }, undefined],
    ['metadata of five levels', { workflowId: 'w', metadata: { z: deep } }, '/metadata'],
    ['large metadata', { workflowId: 'w', metadata: { a: 'é'.repeat(4096) } }, '/metadata'],
    [
      'a threshold above 1',
      { workflowId: 'w', configurable: { escalationThreshold: 1.5 } },
      '/configurable/escalationThreshold',
    ],
    [
      'a limit of 0',
      { workflowId: 'w', configurable: { recursionLimit: 0 } },
      '/configurable/recursionLimit',
    ],
    [
      'a limit above the ceiling',
      { workflowId: 'w', configurable: { recursionLimit: MAX_NODE_EXECUTIONS + 1 } },
      '/configurable/recursionLimit',
    ],
    [
      'a duration above the ceiling',
      { workflowId: 'w', configurable: { runTimeoutMs: MAX_RUN_DURATION_MS + 1 } },
      '/configurable/runTimeoutMs',
    ],
    [
      'the ceilings',
      {
        workflowId: 'w',
        configurable: { recursionLimit: MAX_NODE_EXECUTIONS, runTimeoutMs: MAX_RUN_DURATION_MS },
      },
      undefined,
    ],
    ['a callback that is no address', { workflowId: 'w', callbackUrl: 'here' }, '/callbackUrl'],
  ])('%s', (_, body, pointer) => {
    const result = validate.runCreateRequest(body);
    expect(result.ok ? undefined : result.errors[0].pointer).toBe(pointer);
  });
});

test('rest-endpoints.md: a large body that is wrong all over gets its first fault only, a small one all', () => {
  const wrong = (count: number) =>
    validate.runCreateRequest({ workflowId: 1, agentId: 2, tags: Array(count).fill(3), extra: 4 });
  const [large, small] = [wrong(500_000), wrong(20)];
  expect(!large.ok && large.errors).toHaveLength(1);
  expect(!small.ok && small.errors.length).toBeGreaterThan(20);
});

test('run-options.md: metadata with half a million members is refused, not a fault of the host', () => {
  const metadata = { a: Array(500_000).fill(1) };
  const checked = validate.runCreateRequest({ workflowId: 'w', metadata });
  expect(!checked.ok && checked.errors[0]).toMatchObject({
    pointer: '/metadata',
    message: expect.stringContaining('larger') as string,
  });
});

test.each<[string, (value: unknown) => { ok: boolean }, unknown, boolean]>([
  ['a resolution', validate.interruptResolveRequest, { resumeValue: null }, true],
  ['a resolution without a value', validate.interruptResolveRequest, {}, false],
  ['a resolution with more', validate.interruptResolveRequest, { resumeValue: 1, x: 1 }, false],
  ['a cancel', validate.runCancelRequest, {}, true],
  ['a cancel with a reason', validate.runCancelRequest, { reason: 'r' }, true],
  ['a cancel with more', validate.runCancelRequest, { because: 'r' }, false],
])('rest-endpoints.md: %s', (_, check, body, ok) => {
  expect(check(body).ok).toBe(ok);
});

test('one error names the fields that exclude each other', () => {
  expect(validate.runCreateRequest({})).toEqual({
    ok: false,
    errors: [{ pointer: '', message: 'must have exactly one of the fields workflowId, agentId' }],
  });
});

test('a payload schema exists for every row above, and the other way round', () => {
  expect([...EVENT_TYPE_NAMES].sort()).toEqual(Object.keys(VALID).sort());
});

test('node-packs.md §Reserved Core typeIds: every node type that runs has a config schema, and no other', () => {
  expect([...NODE_TYPE_IDS].sort()).toEqual([...nodeTypesOf({ testMode: true })].sort());
});

test('the generated types are what `npm run generate` writes', async () => {
  expect(readFileSync(GENERATED, 'utf8')).toBe(await generateTypes());
});
