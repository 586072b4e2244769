// The protocol's checklist by HTTP: the life of a run, its snapshot and log, cancel, human waits, limits
// (rest-endpoints.md, run-event.schema.json, interrupt.md, RFC 0002 §A, capabilities.md §Engine-enforced limits,
// run-snapshot.schema.json).
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import { ended, expectLawful, readLog, types, waiting } from '../facade/suite-parts.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeFixtures, type SERVED } from './definitions.ts';

let host: TestHost;
let folder = '';
const started: string[] = [];

beforeAll(async () => {
  folder = await writeFixtures();
  host = await startTestHost({ fixturesDir: folder });
});

/** Whatever a test looked at, its runs are lawful. */
afterEach(async () => {
  for (const runId of started.splice(0)) {
    const { events, isComplete } = await readLog(host, runId);
    if (isComplete) expectLawful(events);
    await checkInvariants(host, runId);
  }
});

afterAll(async () => {
  await host.stop();
  await rm(folder, { recursive: true });
});

interface Envelope {
  readonly error: string;
  readonly details?: Record<string, unknown>;
}

async function start(id: (typeof SERVED)[number], more: object = {}): Promise<string> {
  const runId = await host.startRun({ workflowId: `conformance-${id}`, ...more });
  started.push(runId);
  return runId;
}

const log = async (runId: string): Promise<RunEventDoc[]> => (await readLog(host, runId)).events;

/** The payload of the only event of a type. */
function only(events: readonly RunEventDoc[], type: string): Record<string, unknown> {
  const found = events.filter((event) => event.type === type);
  expect([type, found.length]).toEqual([type, 1]);
  return found[0]?.payload as Record<string, unknown>;
}

function resolve(runId: string, nodeId: string, resumeValue: unknown) {
  return host.api<Envelope & { status: string }>(`/v1/runs/${runId}/interrupts/${nodeId}`, {
    body: { resumeValue },
  });
}

const snapshotOf = async (runId: string): Promise<RunSnapshot> =>
  (await host.api<RunSnapshot>(`/v1/runs/${runId}`)).body;

describe('conformance/fixtures.md: an orchestrator of a definition from a folder', () => {
  it('has one worker run, and ends the run', async () => {
    const runId = await start('orchestrator-dispatch');
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'completed' });
    const { childRunId } = only(await log(runId), 'node.dispatched') as { childRunId: string };
    expect(await snapshotOf(childRunId)).toMatchObject({ workflowId: 'conformance-noop' });
  });
});

describe('node-packs.md §subWorkflow contract: a definition from a folder', () => {
  it('runs another one as a child, waits, and takes its variable', async () => {
    const runId = await start('subworkflow-parent');
    const parent = await host.waitFor(runId, ended);
    expect(parent).toMatchObject({
      status: 'completed',
      variables: { childOutcome: 'child-completed' },
    });
    const { childRunId } = only(await log(runId), 'node.dispatched') as { childRunId: string };
    expect(await snapshotOf(childRunId)).toMatchObject({
      status: 'completed',
      parentRunId: runId,
      parentNodeId: 'subwf-call',
    });
    const ancestry = await host.api(`/v1/runs/${childRunId}/ancestry`);
    expect(ancestry.body).toMatchObject({ parent: { runId, cause: 'core.subWorkflow' } });
  });
});

describe('rest-endpoints.md: run lifecycle and snapshot', () => {
  it('a no-op run: 201, found at once, four events, completed with its times', async () => {
    const created = await host.api<{ runId: string; status: string }>('/v1/runs', {
      body: { workflowId: 'conformance-noop' },
    });
    expect(created.status).toBe(201);
    expect(validate.runCreateResponse(created.body)).toMatchObject({ ok: true });
    expect(created.headers.get('openwop-idempotent-replay') ?? 'false').toBe('false');
    const { runId } = created.body;
    expect((await host.api(`/v1/runs/${runId}`)).status).toBe(200);
    const snapshot = await host.waitFor(runId, ended);
    expect(validate.snapshot(snapshot)).toMatchObject({ ok: true });
    expect(snapshot).toMatchObject({ runId, workflowId: 'conformance-noop', status: 'completed' });
    expect(snapshot).not.toHaveProperty('currentNodeId');
    expect(snapshot).not.toHaveProperty('error');
    expect(Date.parse(String(snapshot.completedAt))).toBeGreaterThanOrEqual(
      Date.parse(String(snapshot.startedAt)),
    );
    expect(snapshot.endedAt).toBe(snapshot.completedAt);
    expect(types(await log(runId))).toEqual([
      ...['run.started', 'node.started', 'node.completed', 'run.completed'],
    ]);
  });

  it('nested inputs arrive deep-equal; tags, metadata and configurable come back as given', async () => {
    const payload = { deep: { list: [1, 'two', { three: null }], 'k e y': 'ü€😀' }, empty: {} };
    const more = {
      tags: ['a', 'b'],
      metadata: { by: { who: 'me' } },
      configurable: { temperature: 0.5, 'x.y': [1] },
    };
    const runId = await start('identity', { inputs: { payload }, ...more });
    const snapshot = await host.waitFor(runId, ended);
    expect(snapshot).toMatchObject({ status: 'completed', variables: { payload }, ...more });
  });

  it('a failing node: node.failed, run.failed, the error as an object everywhere', async () => {
    const runId = await start('failure');
    const snapshot = await host.waitFor(runId, ended);
    const error = { code: 'conformance_test_failure', message: expect.any(String) as string };
    expect(snapshot).toMatchObject({ status: 'failed', error });
    const events = await log(runId);
    expect(types(events)).toEqual(['run.started', 'node.started', 'node.failed', 'run.failed']);
    expect(only(events, 'node.failed')).toMatchObject({ nodeId: 'boom', error, attempts: 1 });
    expect(only(events, 'run.failed')).toMatchObject({ error });
  });

  it('a sleeping run says running, by its default and by its input', async () => {
    const runId = await start('delay');
    await host.waitFor(runId, ({ nodeStates }) => nodeStates?.wait !== undefined);
    expect((await snapshotOf(runId)).status).toBe('running');
    const quick = await start('delay', { inputs: { delayMs: 1 } });
    expect((await host.waitFor(quick, ended)).status).toBe('completed');
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
  });

  it('a chain completes in its order, each node between its own start and end', async () => {
    const runId = await start('multi-node');
    await host.waitFor(runId, ended);
    const steps = (await log(runId)).filter(({ nodeId }) => nodeId !== undefined);
    expect(steps.map(({ type, nodeId }) => `${type} ${nodeId}`)).toEqual(
      ['a', 'b', 'c'].flatMap((id) => [`node.started ${id}`, `node.completed ${id}`]),
    );
  });

  it('a node that needs what nobody provides never starts; the run fails and names it', async () => {
    const runId = await start('capability-missing');
    const { status, error } = await host.waitFor(runId, ended);
    expect([status, error?.code]).toEqual(['failed', 'capability_not_provided']);
    expect(error?.message).toContain('conformance.never-provided');
    expect(types(await log(runId))).toEqual(['run.started', 'node.failed', 'run.failed']);
  });

  it('configurable is held to the schema of the workflow before anything runs', async () => {
    const workflowId = 'conformance-configurable-schema';
    for (const configurable of [
      undefined,
      {},
      { mode: 1 },
      { mode: 'a', temperature: 9 },
      { mode: 'a', x: 1 },
    ]) {
      const { status, body } = await host.api<Envelope>('/v1/runs', {
        body: { workflowId, configurable },
      });
      expect([status, body.error]).toEqual([400, 'validation_error']);
    }
    const runId = await start('configurable-schema', {
      configurable: { mode: 'a', temperature: 1 },
    });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const { body } = await host.api('/v1/workflows/conformance-configurable-schema');
    expect(body).toHaveProperty('configurableSchema.required', ['mode']);
  });

  it('a required variable without a default must be given; with one it may be left out', async () => {
    const missing = await host.api<Envelope>('/v1/runs', {
      body: { workflowId: 'conformance-idempotent' },
    });
    expect([missing.status, missing.body.error]).toEqual([400, 'validation_error']);
    const runId = await start('idempotent', { inputs: { nonce: 'n-1' } });
    expect(await host.waitFor(runId, ended)).toMatchObject({ variables: { nonce: 'n-1' } });
    const slept = await start('cancellable');
    expect((await snapshotOf(slept)).variables).toEqual({ delayMs: 30_000 });
    await host.api(`/v1/runs/${slept}/cancel`, { method: 'POST' });
    await host.waitFor(slept, ended);
  });

  it('an engine version nobody advertised changes nothing', async () => {
    const runId = await host.startRun(
      { workflowId: 'conformance-version-fold' },
      { 'x-force-engine-version': '1' },
    );
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
  });

  it('the pin of a node is on the snapshot; a memory that this host lacks is never named', async () => {
    const pinned = await start('agent-identity', { inputs: { payload: { a: 1 } } });
    const agent = {
      agentId: 'core.conformance.agent',
      name: 'Agent',
      modelClass: 'chat',
      version: '1.0.0',
    };
    const snapshot = await host.waitFor(pinned, ended);
    expect(snapshot).toMatchObject({ status: 'completed', agent });
    expect(validate.snapshot(snapshot)).toMatchObject({ ok: true });
    const memory = await start('agent-memory-pin');
    expect((await host.waitFor(memory, ended)).agent).toEqual({
      agentId: 'core.conformance.agent',
    });
    expect((await readLog(host, memory)).text).not.toContain('memory:tenant:agent');
  });
});

describe('run-event.schema.json: event log', () => {
  it('every event is whole, dense and the same at every read; inputs nobody declared are in none', async () => {
    const runId = await start('multi-node', { inputs: { stranger: 'unseen-value' } });
    await host.waitFor(runId, ended);
    const first = await readLog(host, runId);
    for (const event of first.events) {
      expect(event).toMatchObject({ runId, eventId: expect.stringMatching(/^evt-/) as string });
      expect(new Date(event.timestamp).toISOString()).toBe(event.timestamp);
      expect(event).toHaveProperty('payload');
    }
    expect((await readLog(host, runId)).text).toBe(first.text);
    expect(first.text).not.toContain('unseen-value');
    const poll = await host.api<{ events: RunEventDoc[] }>(`/v1/runs/${runId}/events/poll`);
    expect(JSON.stringify(poll.body.events)).toBe(JSON.stringify(first.events));
  });

  it('poll: exclusive cursor, long-poll bound, and never 4xx past the end', async () => {
    const runId = await start('approval');
    await host.waitFor(runId, waiting);
    interface Poll {
      readonly events: RunEventDoc[];
      readonly isComplete: boolean;
    }
    const poll = async (query: string): Promise<Poll> => {
      const { status, body } = await host.api<Poll>(`/v1/runs/${runId}/events/poll?${query}`);
      expect([query, status]).toEqual([query, 200]);
      return body;
    };
    const open = await poll('');
    expect(open).toMatchObject({
      isComplete: false,
      events: [{ sequence: 0, type: 'run.started' }, {}, {}, {}, {}],
    });
    const last = open.events.length - 1;
    expect((await poll('lastSequence=-1')).events.length).toBe(open.events.length);
    expect((await poll('lastSequence=0')).events[0]?.sequence).toBe(1);
    expect(await poll(`lastSequence=${last}&timeout=1`)).toMatchObject({
      events: [],
      isComplete: false,
    });
    const next = poll(`lastSequence=${last}&timeout=20`);
    await resolve(runId, 'gate', { action: 'accept' });
    expect((await next).events[0]?.sequence).toBe(last + 1);
    await host.waitFor(runId, ended);
    for (const beyond of [last + 50, 2_000_000_000])
      expect(await poll(`lastSequence=${beyond}`)).toMatchObject({ events: [], isComplete: true });
  });

  it('JSON by Accept, at once also while the run is open; the query is checked first', async () => {
    const runId = await start('approval');
    await host.waitFor(runId, waiting);
    const read = (accept: string, query = '') =>
      host.api<{ events: RunEventDoc[]; error?: string }>(`/v1/runs/${runId}/events${query}`, {
        headers: { accept },
      });
    for (const accept of ['application/json', 'application/json, */*;q=0.1', 'text/plain']) {
      const { status, body } = await read(accept);
      expect([accept, status, body.events.length]).toEqual([accept, 200, 5]);
    }
    for (const query of [
      '?streamMode=nothing',
      '?streamMode=values,debug',
      '?bufferMs=5001',
      '?bufferMs=x',
    ])
      expect([query, (await read('application/json', query)).status]).toEqual([query, 400]);
    await resolve(runId, 'gate', { action: 'accept' });
    await host.waitFor(runId, ended);
  });
});

describe('rest-endpoints.md: cancel', () => {
  it.each(['cancellable', 'approval'] as const)(
    'of %s: 200, run.cancelled last, again 200',
    async (id) => {
      const runId = await start(id);
      await host.waitFor(runId, ({ nodeStates }) => Object.keys(nodeStates ?? {}).length > 0);
      const answer = await host.api<{ runId: string; status: string }>(`/v1/runs/${runId}/cancel`, {
        body: { reason: 'enough' },
      });
      expect([answer.status, answer.body.runId]).toEqual([200, runId]);
      expect(['cancelled', 'cancelling']).toContain(answer.body.status);
      expect((await host.waitFor(runId, ended)).status).toBe('cancelled');
      expect((await log(runId)).at(-1)).toMatchObject({
        type: 'run.cancelled',
        payload: { reason: 'enough' },
      });
      const again = await host.api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      expect([again.status, again.body]).toEqual([200, { runId, status: 'cancelled' }]);
    },
  );

  it('of a finished run changes nothing; of an unknown one is 404', async () => {
    const runId = await start('failure');
    await host.waitFor(runId, ended);
    const before = await readLog(host, runId);
    const answer = await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect([answer.status, answer.body]).toEqual([200, { runId, status: 'failed' }]);
    expect((await readLog(host, runId)).text).toBe(before.text);
    expect((await host.api('/v1/runs/run-unknown/cancel', { body: {} })).status).toBe(404);
  });
});

describe('interrupt.md: human waits', () => {
  it('approval: the events of one interrupt in order, and the run completes', async () => {
    const runId = await start('approval');
    const snapshot = await host.waitFor(runId, waiting);
    expect(snapshot).toMatchObject({
      ...{ status: 'waiting-approval', currentNodeId: 'gate' },
      interrupt: { kind: 'approval', nodeId: 'gate', actions: ['accept', 'reject'] },
    });
    expect((await resolve(runId, 'gate', { action: 'accept' })).status).toBe(200);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const events = await log(runId);
    expect(types(events).slice(2, -2)).toEqual([
      ...['node.suspended', 'interrupt.requested', 'approval.requested'],
      ...['interrupt.resolved', 'approval.received', 'node.resumed'],
    ]);
    const { interruptId } = only(events, 'node.suspended') as { interruptId: string };
    expect(only(events, 'node.suspended')).toMatchObject({ nodeId: 'gate', kind: 'approval' });
    expect(only(events, 'approval.requested')).toMatchObject({
      ...{
        nodeId: 'gate',
        artifactId: expect.any(String) as string,
        artifactType: expect.any(String) as string,
      },
      actions: ['accept', 'reject'],
    });
    expect(only(events, 'interrupt.resolved')).toMatchObject({ nodeId: 'gate', interruptId });
    const received = only(events, 'approval.received');
    expect(received).toMatchObject({
      nodeId: 'gate',
      action: 'accept',
      decidedBy: expect.any(String) as string,
    });
  });

  it('an action that is not offered is 400 and the run waits on; an unknown node is 404', async () => {
    const runId = await start('approval');
    await host.waitFor(runId, waiting);
    for (const value of [{ action: 'edit-accept' }, { action: 'ACCEPT' }, {}, null, 'accept'])
      expect((await resolve(runId, 'gate', value)).status).toBe(400);
    expect((await resolve(runId, 'other', { action: 'accept' })).status).toBe(404);
    expect(
      (await host.api(`/v1/runs/${runId}/approvals/gate`, { body: { resumeValue: {} } })).status,
    ).toBe(404);
    expect((await snapshotOf(runId)).status).toBe('waiting-approval');
    expect((await resolve(runId, 'gate', { action: 'reject' })).status).toBe(200);
    expect(await host.waitFor(runId, ended)).toMatchObject({
      status: 'failed',
      error: { code: 'approval_rejected' },
    });
    expect((await resolve(runId, 'gate', { action: 'accept' })).status).toBe(409);
  });

  it('a question back leaves the interrupt open and stands with it; of the protocol’s events it is none', async () => {
    const runId = await start('approval-ask');
    await host.waitFor(runId, waiting);
    const before = await readLog(host, runId);
    const asked = await resolve(runId, 'gate', { action: 'ask', feedback: 'Why?' });
    expect([asked.status, asked.body.status]).toEqual([200, 'open']);
    const added = (await log(runId)).slice(before.events.length);
    expect(types(added)).toEqual(['openwop-temporal.asked-back']);
    expect((await snapshotOf(runId)).interrupt).toMatchObject({
      askedBack: [{ by: expect.any(String) as string, text: 'Why?' }],
    });
    expect((await resolve(runId, 'gate', { action: 'accept' })).body.status).toBe('resolved');
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
  });

  it.each([
    ['an object', { answers: { q1: 'blue' } }],
    ['a list', { answers: [{ id: 'q1', answer: 'blue' }] }],
  ])('8.3 clarification, answers as %s', async (_form, value) => {
    const runId = await start('clarification');
    expect(await host.waitFor(runId, waiting)).toMatchObject({
      status: 'waiting-input',
      currentNodeId: 'ask',
    });
    expect((await resolve(runId, 'ask', { answers: {} })).status).toBe(400);
    expect((await resolve(runId, 'ask', value)).status).toBe(200);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const events = await log(runId);
    expect(only(events, 'clarification.requested').questions).toEqual([
      { id: 'q1', question: 'Which colour?' },
    ]);
    expect(only(events, 'clarification.resolved')).toMatchObject({
      nodeId: 'ask',
      answers: { q1: 'blue' },
    });
  });

  it('cancel against answer: well-formed answers, at least one succeeds, the run ends', async () => {
    for (let round = 0; round < 4; round++) {
      const runId = await start('approval');
      await host.waitFor(runId, waiting);
      const [cancel, answer] = await Promise.all([
        host.api(`/v1/runs/${runId}/cancel`, { method: 'POST' }),
        resolve(runId, 'gate', { action: 'accept' }),
      ]);
      expect([200, 202, 409]).toContain(cancel.status);
      expect([200, 202, 400, 404, 409, 410, 422]).toContain(answer.status);
      expect([cancel.status, answer.status]).toContain(200);
      const { status } = await host.waitFor(runId, ended);
      if (answer.status !== 200) expect(status).toBe('cancelled');
    }
  });

  it('quorum: three votes of three voters; a vote twice counts once; two rejections of three fail the run', async () => {
    const vote = async (runId: string, action: string, voter: string): Promise<void> => {
      expect((await resolve(runId, 'gate', { action, voter: `approver-${voter}` })).status).toBe(
        200,
      );
    };
    const accepted = await start('interrupt-quorum');
    await host.waitFor(accepted, waiting);
    for (const voter of ['1', '2', '2']) {
      await vote(accepted, 'accept', voter);
      const snapshot = await snapshotOf(accepted);
      expect(snapshot.status).toBe('waiting-approval');
      expect(snapshot.interrupt).toMatchObject({
        quorumProgress: { granted: Number(voter), rejected: 0 },
      });
    }
    await vote(accepted, 'accept', '3');
    expect((await host.waitFor(accepted, ended)).status).toBe('completed');
    const rejected = await start('interrupt-quorum');
    await host.waitFor(rejected, waiting);
    await vote(rejected, 'accept', '1');
    await vote(rejected, 'reject', '2');
    expect((await snapshotOf(rejected)).status).toBe('waiting-approval');
    await vote(rejected, 'reject', '3');
    expect((await host.waitFor(rejected, ended)).status).toBe('failed');
  });

  it.each(['approval-timeout', 'approval-timeout-approve'] as const)(
    '%s never grants',
    async (id) => {
      const runId = await start(id);
      const snapshot = await host.waitFor(runId, ended);
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'interrupt_timeout' } });
      expect(only(await log(runId), 'approval.received')).toMatchObject({
        nodeId: 'gate',
        action: 'timeout',
      });
      expect((await resolve(runId, 'gate', { action: 'accept' })).status).toBe(410);
    },
  );

  it('a rejection is routed by any_failed, an acceptance by all_success', async () => {
    for (const [action, taken, left] of [
      ['reject', 'on-reject', 'on-accept'],
      ['accept', 'on-accept', 'on-reject'],
    ] as const) {
      const runId = await start('approval-reject-routed');
      await host.waitFor(runId, waiting);
      await resolve(runId, 'gate', { action });
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
      const steps = (await log(runId)).map(({ type, nodeId }) => `${type} ${nodeId}`);
      expect(steps).toContain(`node.completed ${taken}`);
      expect(steps).toContain(`node.skipped ${left}`);
    }
  });
});

describe('capabilities.md §Engine-enforced limits: limits', () => {
  it('recursionLimit: one cap.breached before run.failed, the node over the limit never starts', async () => {
    const runId = await start('cap-breach', { configurable: { recursionLimit: 3 } });
    const snapshot = await host.waitFor(runId, ended);
    expect(snapshot).toMatchObject({
      status: 'failed',
      error: { code: 'recursion_limit_exceeded' },
    });
    const events = await log(runId);
    expect(only(events, 'cap.breached')).toEqual({
      kind: 'node-executions',
      limit: 3,
      observed: 4,
      nodeId: 'n4',
    });
    expect(types(events).filter((type) => type === 'node.started').length).toBe(3);
    expect(types(events).slice(-2)).toEqual(['cap.breached', 'run.failed']);
    const free = await start('cap-breach');
    expect((await host.waitFor(free, ended)).status).toBe('completed');
  });

  it('runTimeoutMs: cap.breached run-duration, then run_timeout', async () => {
    const runId = await start('run-duration-breach', { configurable: { runTimeoutMs: 1_000 } });
    expect(await host.waitFor(runId, ended)).toMatchObject({
      status: 'failed',
      error: { code: 'run_timeout' },
    });
    const breached = only(await log(runId), 'cap.breached') as { limit: number; observed: number };
    expect(breached).toMatchObject({ kind: 'run-duration', limit: 1_000 });
    expect(breached.observed).toBeGreaterThan(breached.limit);
  });
});

describe('channels-and-reducers.md: channels', () => {
  it('conformance-channel-ttl: entries have their times, and the fourth write leaves itself alone', async () => {
    const runId = await start('channel-ttl');
    const { variables } = await host.waitFor(runId, ended);
    expect(variables).toEqual({ events: [{ value: 'd', _ts: expect.any(Number) as number }] });
  });

  it('conformance-message-reducer: one entry of each messageId, on both surfaces', async () => {
    const runId = await start('message-reducer');
    const { channels, variables } = await host.waitFor(runId, ended);
    const { messages } = channels as { messages: { messageId: string }[] };
    expect(messages).toHaveLength(2);
    expect(new Set(messages.map(({ messageId }) => messageId)).size).toBe(2);
    expect(variables).toMatchObject({ messages });
    expect((await log(runId)).filter(({ type }) => type === 'channel.written')).toHaveLength(3);
  });
});

describe('RFC 0005: conversations', () => {
  it('conformance-conversation-lifecycle: opened, exchanged, closed under one id', async () => {
    const runId = await start('conversation-lifecycle');
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const told = (await log(runId)).filter(({ type }) => type.startsWith('conversation.'));
    expect(types(told)).toEqual([
      ...['conversation.opened', 'conversation.exchanged'],
      ...['conversation.exchanged', 'conversation.closed'],
    ]);
    const ids = told.map(({ payload }) => (payload as { conversationId: string }).conversationId);
    expect(new Set(ids).size).toBe(1);
  });

  it('people talk until one closes; what they said stands with the question; afterwards nothing can be said', async () => {
    const runId = await start('conversation');
    const say = (content: string) =>
      resolve(runId, 'talk', { operation: 'exchange', turn: { content } });
    const asked = await host.waitFor(runId, waiting);
    expect(asked).toMatchObject({ status: 'waiting-approval', currentNodeId: 'talk' });
    expect((await say('yes')).body.status).toBe('open');
    expect((await say('yes')).body.status).toBe('open');
    const { interrupt, status } = (await snapshotOf(runId)) as unknown as {
      interrupt: { turns: { content: string; role: string }[]; turnIndex: number };
      status: string;
    };
    expect([status, interrupt.turnIndex]).toEqual(['waiting-approval', 3]);
    expect(interrupt.turns.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      ...['system: Which colour?', 'user: yes', 'user: yes'],
    ]);
    const green = await resolve(runId, 'talk', { operation: 'close', outcome: 'green' });
    expect([green.status, green.body.error]).toEqual([400, 'validation_error']);
    expect((await resolve(runId, 'talk', { operation: 'close', outcome: 'blue' })).status).toBe(
      200,
    );
    const done = await host.waitFor(runId, ended);
    expect(done).toMatchObject({ status: 'completed', outputs: { outcome: 'blue', turnCount: 4 } });
    const late = await say('wait');
    expect([late.status, late.body.error]).toEqual([400, 'validation_error']);
  });
});
