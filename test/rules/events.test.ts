// The table of event types: which stream mode shows which (stream-modes.md), that its columns agree with each other.
// Who states each type: event-places.test.ts.
import PAYLOADS_SCHEMA from '../../schemas/run-event-payloads.schema.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { EVENT_TYPES, eventRow, type EventRow, type EventType } from '../../src/rules/events.ts';
import { isTerminalEvent, TERMINAL_STATUSES } from '../../src/rules/status.ts';
import { EVENT_TYPE_NAMES } from '../../src/wire/validators.ts';

const PAYLOADS = PAYLOADS_SCHEMA as unknown as {
  properties: Record<string, { $ref: string }>;
  $defs: Record<string, { additionalProperties?: boolean }>;
};

const TYPES = Object.keys(EVENT_TYPES);
const having = (is: (row: EventRow) => boolean) => TYPES.filter((type) => is(eventRow(type)));

test('every type that has a payload schema has a row, and no other', () => {
  expect([...TYPES].sort()).toEqual([...EVENT_TYPE_NAMES].sort());
});

test('stream-modes.md: updates shows exactly these types', () => {
  expect(having(({ updates }) => updates)).toEqual([
    ...['run.started', 'run.paused', 'run.resumed'],
    ...['run.completed', 'run.failed', 'run.cancelled'],
    ...[
      'node.completed',
      'node.failed',
      'node.suspended',
      'node.resumed',
      'node.skipped',
      'node.cancelled',
      'node.dispatched',
    ],
    ...['interrupt.requested', 'interrupt.resolved', 'approval.requested', 'approval.received'],
    ...['clarification.requested', 'clarification.resolved'],
  ]);
});

test('stream-modes.md: values follows every update, and node.started', () => {
  expect(having(({ values }) => values)).toEqual(
    TYPES.filter((type) => eventRow(type).updates || type === 'node.started'),
  );
});

test('stream-modes.md: messages shows output.chunk alone', () => {
  expect(having(({ messages }) => messages)).toEqual(['output.chunk']);
});

test('stream-modes.md: a batch is flushed by a suspension and by the end, by nothing else', () => {
  expect(having(({ urgent }) => urgent)).toEqual([
    ...['run.completed', 'run.failed', 'run.cancelled', 'node.suspended'],
  ]);
});

test('every terminal event is an update that moves the snapshot to a terminal status', () => {
  expect(TYPES.filter(isTerminalEvent)).toEqual(['run.completed', 'run.failed', 'run.cancelled']);
  for (const { updates, values, run } of TYPES.filter(isTerminalEvent).map(eventRow))
    expect({ updates, values, isTerminal: run !== null && TERMINAL_STATUSES.has(run) }).toEqual({
      ...{ updates: true, values: true, isTerminal: true },
    });
});

test('a type that moves the status of the run is a part of the run, and the other way', () => {
  expect(having(({ run }) => run !== null)).toEqual(having(({ part }) => part.startsWith('run-')));
});

test('what a closing closes names it: each opening is closed by the type that cleans up after it', () => {
  const cutOff = 'agent.reasoning.delta';
  for (const type of having(({ opens }) => opens !== null)) {
    const { closing = type } = eventRow(type).opens ?? {};
    const by = eventRow(closing).closes[type as EventType];
    // Of a stream no workflow code sees the opening: nothing closes it but its cut-off.
    expect({ type, isClosed: by !== undefined }).toEqual({ type, isClosed: type !== cutOff });
  }
  const closed = TYPES.flatMap((type) => Object.keys(eventRow(type).closes));
  for (const type of closed)
    expect({ type, opens: eventRow(type).opens }).not.toEqual({ type, opens: null });
});

test('only an open payload has twins', () => {
  for (const type of having(({ twins }) => twins.length > 0)) {
    const { $defs } = PAYLOADS;
    const name = PAYLOADS.properties[type]?.$ref.replace('#/$defs/', '') ?? '';
    expect({ type, open: $defs[name]?.additionalProperties }).toEqual({ type, open: true });
  }
});

/** event-codemap.json: the types of ours that the next major spells in another way; all others keep their names. */
const RENAMED = {
  'agent.reasoning.delta': 'agent.reasoning-delta',
  'agent.promptResolved': 'agent.prompt-resolved',
  'agent.toolCalled': 'agent.tool-called',
  'agent.toolReturned': 'agent.tool-returned',
  'agent.invocation.started': 'agent.invocation-started',
  'agent.invocation.completed': 'agent.invocation-completed',
  'envelope.retry.exhausted': 'envelope.retry-exhausted',
  'runOrchestrator.decided': 'orchestrator.decided',
  'core.workflowChain.event': 'workflow-chain.event',
  'core.workflowChain.confidence-escalated': 'workflow-chain.confidence-escalated',
  'core.dispatch.fanOut': 'dispatch.fanned-out',
  'core.dispatch.join': 'dispatch.joined',
};

test('event-codemap.json: these types are renamed in the next major, and the map can be inverted', () => {
  const names = TYPES.map((type) => [type, eventRow(type).nextMajor] as const);
  expect(Object.fromEntries(names.filter(([type, next]) => next !== type))).toEqual(RENAMED);
  expect(new Set(names.map(([, next]) => next)).size).toBe(names.length);
  for (const [, next] of names) expect(next).toMatch(/^[a-z][a-z-]*\.[a-z][a-z-]*$/);
});

test('run-event.schema.json: events of nodes, interrupts and agents carry nodeId on the envelope', () => {
  for (const type of TYPES) {
    const { nodeScoped } = eventRow(type);
    if (/^(node|interrupt|approval|clarification|agent)\./.test(type))
      expect({ type, nodeScoped }).toEqual({ type, nodeScoped: true });
    if (type.startsWith('run.')) expect({ type, nodeScoped }).toEqual({ type, nodeScoped: false });
  }
});

test('seed 003 §3.3 the types that the seed names', () => {
  const named = TYPES.flatMap((type) => {
    const { inSession } = eventRow(type);
    return inSession === null ? [] : [[type, inSession]];
  });
  expect(named).toEqual([
    ['output.chunk', 'workflow.node.output.delta'],
    ['agent.toolReturned', 'workflow.tool.completed'],
  ]);
});

test.each(['openwop-temporal.note', 'toString', '__proto__', ''])(
  'stream-modes.md: the unknown type %j is in debug only, and tells nothing but itself',
  (type) => {
    expect(eventRow(type)).toEqual({
      ...{ updates: false, values: false, messages: false, nodeScoped: false, urgent: false },
      ...{ part: 'note', run: null, node: null, actor: null, piece: null },
      ...{ opens: null, closes: {}, twins: [], leads: false, inSession: null, nextMajor: null },
    });
  },
);
