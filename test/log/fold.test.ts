// The fold from rows to a run's snapshot (run-snapshot.schema.json).
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { MAX_VOTERS } from '../../src/rules/limits.ts';
import { saidWith, votedFor, votesIn } from '../../src/rules/votes.ts';
import {
  askedInterrupts,
  fold,
  foldedRun,
  openInterrupts,
  snapshotOf,
  summaryOf,
} from '../../src/log/fold.ts';
import type { Head, LogRow } from '../../src/ports/log.ts';
import { runRow } from '../support/log-parts.ts';

type Given = readonly [type: string, payload: JsonObject, nodeId?: string];

function rowsOf(given: readonly Given[]): LogRow[] {
  return given.map(([type, payload, nodeId], sequence) => ({
    runId: 'r',
    sequence,
    eventId: `e${sequence}`,
    key: `k${sequence}`,
    type,
    ...(nodeId ? { nodeId } : {}),
    payload: JSON.stringify(payload),
    timestampMs: 1_000 + sequence,
  }));
}

const folded = (...given: Given[]) => foldedRun(fold(null, rowsOf(given)));

function headWith(snapshot: JsonValue, status: Head['status'] = 'running'): Head {
  return {
    runId: 'r',
    tenant: 'default',
    temporalRunId: 't',
    historyEventId: 1,
    token: '',
    nextSequence: 1,
    lastTimestampMs: 1,
    status,
    closed: false,
    translateVersion: 1,
    translateState: null,
    snapshot,
  };
}

const suspended: Given = [
  'node.suspended',
  { nodeId: 'gate', interruptId: 'int-1', kind: 'approval', key: 'q' },
  'gate',
];
const requested: Given = [
  'interrupt.requested',
  {
    kind: 'approval',
    key: 'q',
    data: { title: 'May I?' },
    resumeSchema: { type: 'object' },
    timeoutMs: 500,
  },
  'gate',
];

describe('run-snapshot.schema.json: the fold', () => {
  it('variables begin with the inputs of run.started and follow variable.changed', () => {
    const run = folded(
      ['run.started', { workflowId: 'w', inputs: { a: 1, b: 2 } }],
      ['variable.changed', { name: 'b', previous: 2, next: { deep: [3] } }],
    );
    expect(run.variables).toEqual({ a: 1, b: { deep: [3] } });
    expect(run.startedAtMs).toBe(1_000);
  });

  it('a node has status, attempts over all visits, and visits', () => {
    const start = (attempt: number): Given => [
      'node.started',
      { nodeId: 'n', typeId: 't', attempt },
      'n',
    ];
    const run = folded(
      start(0),
      ['node.retried', { nodeId: 'n', attempt: 1 }, 'n'],
      start(1),
      ['node.completed', { nodeId: 'n' }, 'n'],
      start(0),
      ['node.failed', { nodeId: 'n', error: { code: 'x', message: 'y' } }, 'n'],
      ['node.skipped', { nodeId: 'm' }, 'm'],
    );
    expect(run.nodes).toEqual({
      n: { status: 'failed', attempts: 3, visits: 2, begunAt: 4, changedAt: 5 },
      m: { status: 'skipped', attempts: 0, visits: 0, changedAt: 6 },
    });
  });

  it('an interrupt is open from node.suspended to interrupt.resolved, with its frozen schema and deadline', () => {
    const rows = rowsOf([suspended, requested]);
    expect(openInterrupts(fold(null, rows))).toEqual([
      {
        nodeId: 'gate',
        interruptId: 'int-1',
        kind: 'approval',
        key: 'q',
        data: { title: 'May I?' },
        resumeSchema: { type: 'object' },
        requestedAtMs: 1_000,
        deadlineMs: 1_501,
      },
    ]);
    const resolved: Given = [
      'interrupt.resolved',
      { nodeId: 'gate', interruptId: 'int-1' },
      'gate',
    ];
    expect(folded(suspended, requested, resolved).interrupts).toEqual([]);
  });

  it('interrupt-profiles.md §quorum: votes and what was asked back stand with the question that is open', () => {
    const vote = (voter: string, value: JsonObject, interruptId = 'int-1'): Given => [
      'openwop-temporal.voted',
      {
        ...{ nodeId: 'gate', interruptId, voter, votedBy: 'tester', resumeValue: value },
        ...{ effect: value.action === 'deny' ? 'end' : 'continue', votes: 1, needed: 3 },
      },
      'gate',
    ];
    const asked = (interruptId: string, text: string): Given => [
      'openwop-temporal.asked-back',
      { nodeId: 'gate', interruptId, askedBy: 'bob', action: 'ask', text },
      'gate',
    ];
    const given = [
      ...[suspended, requested],
      ...['ada', 'eve', 'cyd'].map((voter) => vote(voter, { action: 'accept' })),
      vote('dan', { action: 'edit-accept', editedArtifactData: 5 }),
      vote('ada', { action: 'deny', reason: 'No.', comment: 'Sorry.' }),
      ...[
        vote('ada', { action: 'accept' }, 'int-0'),
        asked('int-1', 'Why?'),
        asked('int-0', 'Who?'),
      ],
    ];
    const said = saidWith({});
    const accept = { action: 'accept' };
    const accepted = { effect: 'continue', ...accept, of: votedFor(accept), said };
    const edited = { action: 'edit-accept', editedArtifactData: 5 };
    expect(folded(...given).interrupts.map(({ data }) => data)).toEqual([
      {
        title: 'May I?',
        heard: 6,
        quorumProgress: { granted: 2, rejected: 1 },
        votes: [
          { voter: 'eve', ...accepted, heard: 2, seq: 3 },
          { voter: 'cyd', ...accepted, heard: 3, seq: 4 },
          {
            ...{ voter: 'dan', effect: 'continue', action: 'edit-accept', of: votedFor(edited) },
            ...{ said, heard: 4, seq: 5, content: 5 },
          },
          {
            ...{ voter: 'ada', effect: 'end', action: 'deny', of: votedFor({ action: 'deny' }) },
            ...{ said: saidWith({ reason: 'No.', comment: 'Sorry.' }), heard: 5, seq: 6 },
            ...{ reason: 'No.', comment: 'Sorry.' },
          },
        ],
        askedBack: [{ by: 'bob', text: 'Why?' }],
      },
    ]);
    const large = ['ada', 'eve', 'cyd'].map((voter) =>
      vote(voter, { action: 'edit-accept', editedArtifactData: voter.repeat(5000) }),
    );
    const shown = folded(suspended, requested, ...large).interrupts.flatMap(({ data }) =>
      votesIn(data).map(({ isCut, content }) => [isCut === true, content !== undefined]),
    );
    expect(shown).toEqual([
      [true, false],
      [false, true],
      [false, true],
    ]);
    // However many there are, and whatever their names: what goes with the newest stands.
    const many = Array.from({ length: MAX_VOTERS }, (_, at) =>
      vote(`${at}`.padEnd(256, '.'), { action: 'accept', reason: 'So it is.'.repeat(50) }),
    );
    const [open] = folded(suspended, requested, ...many).interrupts;
    const reasons = votesIn(open?.data ?? {}).map(({ reason }) => reason !== undefined);
    const kept = reasons.filter(Boolean).length;
    expect(kept).toBeGreaterThan(50);
    expect(reasons.lastIndexOf(false)).toBe(MAX_VOTERS - kept - 1);
    expect(open?.data.quorumProgress).toEqual({ granted: MAX_VOTERS, rejected: 0 });
  });

  it('architecture §4: a node that asks twice is answered one by one, and suspended until the last', () => {
    const asked = (interruptId: string): Given => [
      'node.suspended',
      { nodeId: 'gate', interruptId, kind: 'approval', key: interruptId },
      'gate',
    ];
    const answered = (interruptId: string): Given[] => [
      ['interrupt.resolved', { nodeId: 'gate', interruptId }, 'gate'],
      ['node.resumed', { nodeId: 'gate', interruptId }, 'gate'],
    ];
    const once = folded(asked('int-1'), asked('int-2'), ...answered('int-2'));
    expect(once.interrupts.map(({ interruptId }) => interruptId)).toEqual(['int-1']);
    expect(once.nodes.gate?.status).toBe('suspended');
    const twice = folded(
      asked('int-1'),
      asked('int-2'),
      ...answered('int-2'),
      ...answered('int-1'),
    );
    expect([twice.interrupts, twice.nodes.gate?.status]).toEqual([[], 'running']);
  });

  it('architecture §3.5: live deltas change nothing', () => {
    const before = fold(null, rowsOf([['run.started', { workflowId: 'w' }]]));
    const delta = rowsOf([
      ['x', {}],
      ['agent.reasoning.delta', { agentId: 'core.a', delta: 'x' }],
    ]).slice(1);
    expect(fold(before, delta)).toEqual(before);
  });

  it('RFC 0002 §C: the agent is the last that acted, as its node names it', () => {
    const ref = { agentId: 'core.first', name: 'First' };
    const run = (...more: Given[]) =>
      folded(['node.started', { nodeId: 'n', typeId: 't', agent: ref }, 'n'], ...more).agent;
    expect(run()).toEqual(ref);
    expect(
      run(['agent.handoff', { fromAgentId: 'core.first', toAgentId: 'core.second' }, 'n']),
    ).toEqual({
      agentId: 'core.second',
    });
    expect(
      run(
        ['agent.decided', { agentId: 'core.second', decision: 1 }, 'm'],
        ['agent.decided', { agentId: 'core.first', decision: 1 }, 'n'],
        ['run.completed', {}],
      ),
    ).toEqual(ref);
  });

  it('run-snapshot.schema.json: cost sums tokens; money only where a provider stated it', () => {
    const usage = (more: JsonObject): Given => [
      'provider.usage',
      { provider: 'p', model: 'm', inputTokens: 3, outputTokens: 2, ...more },
    ];
    expect(folded(usage({}), usage({ model: 'm2' })).cost).toEqual({
      tokens: { input: 6, output: 4 },
      provider: 'p',
      model: 'm2',
    });
    expect(folded(usage({ costEstimateUsd: 0.5 }), usage({})).cost).toMatchObject({ usd: 0.5 });
  });

  it('run-event-payloads.schema.json: channel.written carries the write, the fold reduces it', () => {
    const write = (value: JsonValue): Given => [
      'channel.written',
      { channel: 'c', value, reducer: 'append' },
    ];
    const definition = { channels: { c: { reducer: 'append', default: ['z'] } } };
    const rows = rowsOf([write('a'), write('b')]);
    expect(foldedRun(fold(null, rows, definition)).channels).toEqual({ c: ['z', 'a', 'b'] });
  });

  it('channels-and-reducers.md §Channel TTL: the fold prunes by the times of the writes, not by those of the rows', () => {
    const at = (value: string, _ts: number): Given => [
      'channel.written',
      { channel: 'c', value: { value, _ts }, reducer: 'append' },
    ];
    const definition = { channels: { c: { reducer: 'append', ttlMs: 100, maxSize: 2 } } };
    const after = (...given: Given[]) =>
      foldedRun(fold(null, rowsOf(given), definition)).channels.c;
    expect(after(at('a', 0), at('b', 50), at('c', 60))).toEqual([
      { value: 'b', _ts: 50 },
      { value: 'c', _ts: 60 },
    ]);
    expect(after(at('a', 0), at('b', 50), at('d', 500))).toEqual([{ value: 'd', _ts: 500 }]);
  });

  it('channels-and-reducers.md §Replay determinism: the reducer that was recorded with a write folds it', () => {
    const write = (value: JsonValue, reducer: string): Given => [
      'channel.written',
      { channel: 'c', value, reducer },
    ];
    const rows = rowsOf([write('a', 'replace'), write('b', 'append'), write(2, 'counter')]);
    const definition = { channels: { c: { reducer: 'append' } } };
    expect(foldedRun(fold(null, rows, definition)).channels).toEqual({ c: 2 });
  });

  it('channels-and-reducers.md §Legacy mode: what no definition declares is a variable, and no channel', () => {
    const rows = rowsOf([
      ['channel.written', { channel: 'c', value: 'a', reducer: 'append' }],
      ['variable.changed', { name: 'c', next: ['a'] }],
    ]);
    const { channels, variables } = foldedRun(fold(null, rows, { channels: {} }));
    expect({ channels, variables }).toEqual({ channels: {}, variables: { c: ['a'] } });
  });

  it('the end keeps error or outputs and closes what waits', () => {
    const error = { code: 'node_timeout', message: 'late', retryable: true, details: { ms: 1 } };
    const failed = folded(suspended, ['run.failed', { error }]);
    expect(failed).toMatchObject({
      endedAtMs: 1_001,
      interrupts: [],
      error: { code: 'node_timeout', message: 'late', details: { ms: 1 } },
    });
    expect(folded(['run.completed', { outputs: { a: 1 } }]).outputs).toEqual({ a: 1 });
  });

  it('batches may be cut anywhere, and unknown types and odd payloads change nothing', () => {
    const rows = rowsOf([
      ['run.started', { inputs: { a: 1 } }],
      suspended,
      requested,
      ['acme.x', {}],
    ]);
    const odd: LogRow = { ...rows[0]!, type: 'node.started', payload: 'null', sequence: 4 };
    const whole = fold(null, [...rows, odd]);
    const pieces = [...rows, odd].reduce<JsonValue>((state, row) => fold(state, [row]), null);
    expect(JSON.stringify(pieces)).toBe(JSON.stringify(whole));
  });
});

describe('run-snapshot.schema.json: the wire form', () => {
  const snapshot = (given: Given[], status?: Head['status']) =>
    snapshotOf(headWith(fold(null, rowsOf(given)), status), runRow('r'));

  it('before the first row it has the start values', () => {
    expect(snapshotOf(headWith(null, 'pending'), runRow('r'))).toMatchObject({
      runId: 'r',
      workflowId: 'w',
      status: 'pending',
      owner: { tenant: 'default', principal: 'tester' },
      variables: { amount: 5, secret: '[sensitive]' },
      inputs: { amount: 5, secret: '[sensitive]' },
      nodeStates: {},
    });
  });

  it('run-snapshot.schema.json: while suspended it names the node, its question and the deadline; afterwards neither', () => {
    expect(snapshot([suspended, requested], 'waiting-approval')).toMatchObject({
      status: 'waiting-approval',
      currentNodeId: 'gate',
      interrupt: {
        kind: 'approval',
        nodeId: 'gate',
        interruptId: 'int-1',
        title: 'May I?',
        resumeSchema: { type: 'object' },
        expiresAt: new Date(1_501).toISOString(),
        deadline: new Date(1_501).toISOString(),
      },
    });
    const ended = snapshot([suspended, requested, ['run.completed', {}]], 'completed');
    expect(ended).not.toHaveProperty('interrupt');
    expect(ended).not.toHaveProperty('currentNodeId');
    expect(ended.completedAt).toBe(new Date(1_002).toISOString());
    expect(ended.endedAt).toBe(ended.completedAt);
  });

  it('a question that the log does not tell yet is asked of nobody', () => {
    const head = headWith(fold(null, rowsOf([suspended])), 'waiting-approval');
    expect(snapshot([suspended], 'waiting-approval')).not.toHaveProperty('interrupt');
    expect(askedInterrupts(head, runRow('r'))).toEqual([]);
    expect(summaryOf(head.snapshot, runRow('r'))).toMatchObject({ waits: [] });
  });

  it('run-snapshot.schema.json: a question whose time ended while the run is paused is asked no more', () => {
    const head = headWith(fold(null, rowsOf([suspended, requested, ['run.paused', {}]])), 'paused');
    const at = (nowMs: number) => snapshotOf(head, runRow('r'), nowMs);
    expect(at(1_500)).toMatchObject({ currentNodeId: 'gate', interrupt: { interruptId: 'int-1' } });
    expect(at(1_501)).not.toHaveProperty('interrupt');
    expect(at(1_501)).not.toHaveProperty('currentNodeId');
  });

  describe('run-snapshot.schema.json: the deadline shown is the first that ends the wait', () => {
    const iso = (ms: number) => new Date(ms).toISOString();
    const started: Given = ['run.started', {}];
    const began: Given = ['node.started', { nodeId: 'gate', typeId: 't', attempt: 0 }, 'gate'];
    const shown = (nodeMs: number | undefined, runMs: number | undefined, given: Given[]) => {
      const run = runRow('r');
      const { definition } = run.input;
      const [first] = definition.nodes;
      const settings = nodeMs === undefined ? {} : { timeoutMs: nodeMs };
      const nodes: typeof definition.nodes = [{ ...first, id: 'gate', settings }];
      const timed = {
        ...definition,
        nodes,
        settings: runMs === undefined ? {} : { timeout: runMs },
      };
      const row = { ...run, input: { ...run.input, definition: timed } };
      return snapshotOf(headWith(fold(null, rowsOf(given))), row).interrupt;
    };
    const asked = [started, began, suspended, requested];
    it.each([
      ['its own', undefined, undefined, 1_503],
      ['its own, where the others are later', 10_000, 10_000, 1_503],
      ['that of its node’s attempt', 300, undefined, 1_301],
      ['that of the run', undefined, 200, 1_200],
      ['the first of all', 300, 200, 1_200],
    ])('%s', (_name, nodeMs, runMs, expected) => {
      expect(shown(nodeMs, runMs, asked)).toMatchObject({ expiresAt: iso(expected) });
    });

    it('that of the attempt that asks, not of the one before', () => {
      const again: Given = ['node.started', { nodeId: 'gate', typeId: 't', attempt: 1 }, 'gate'];
      const retried: Given = ['node.retried', { nodeId: 'gate', attempt: 1 }, 'gate'];
      const given = [started, began, retried, again, suspended, requested];
      expect(shown(300, undefined, given)).toMatchObject({ expiresAt: iso(1_303) });
    });
  });

  it('observability.md: a sensitive variable stays masked when it changes', () => {
    const { variables } = snapshot([['variable.changed', { name: 'secret', next: 'hunter2' }]]);
    expect(variables).toEqual({ amount: 5, secret: '[sensitive]' });
  });

  it('the status is the head’s: a note moves it without a row', () => {
    expect(snapshot([['run.started', {}]], 'cancelling').status).toBe('cancelling');
  });
});
