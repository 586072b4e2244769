// Which stream mode shows which event type (spec/02 §3.3).
import { expect, test } from 'vitest';
import {
  EVENT_TYPES,
  eventTypeRow,
  isMessage,
  isUpdate,
  movesSnapshot,
} from '../../src/core/events.ts';
import { TERMINAL_EVENTS } from '../../src/core/status.ts';
import { EVENT_TYPE_NAMES } from '../../src/wire/validators.ts';

test('every type that has a payload schema has a row, and no other', () => {
  expect(Object.keys(EVENT_TYPES).sort()).toEqual([...EVENT_TYPE_NAMES].sort());
});

test('spec/02 §3.3 updates shows exactly these types', () => {
  expect(Object.keys(EVENT_TYPES).filter(isUpdate)).toEqual([
    ...['run.started', 'run.completed', 'run.failed', 'run.cancelled'],
    ...[
      'node.completed',
      'node.failed',
      'node.suspended',
      'node.resumed',
      'node.skipped',
      'node.cancelled',
    ],
    ...['interrupt.requested', 'interrupt.resolved', 'approval.requested', 'approval.received'],
    ...['clarification.requested', 'clarification.resolved'],
  ]);
});

test('spec/02 §3.3 values follows every update, and node.started', () => {
  const types = Object.keys(EVENT_TYPES);
  expect(types.filter(movesSnapshot)).toEqual(
    types.filter((type) => isUpdate(type) || type === 'node.started'),
  );
});

test('spec/02 §3.3 messages shows output.chunk alone', () => {
  expect(Object.keys(EVENT_TYPES).filter(isMessage)).toEqual(['output.chunk']);
});

test('every terminal event is an update that moves the snapshot', () => {
  for (const type of Object.keys(TERMINAL_EVENTS))
    expect([isUpdate(type), movesSnapshot(type)]).toEqual([true, true]);
});

test('spec/02 §1.1 events of nodes, interrupts and agents carry nodeId on the envelope', () => {
  for (const type of Object.keys(EVENT_TYPES)) {
    const scoped = /^(node|interrupt|approval|clarification|agent)\./.test(type);
    if (scoped)
      expect({ type, scoped: eventTypeRow(type).nodeScoped }).toEqual({ type, scoped: true });
    if (type.startsWith('run.'))
      expect({ type, scoped: eventTypeRow(type).nodeScoped }).toEqual({ type, scoped: false });
  }
});

test.each(['openwop-temporal.note', 'toString', '__proto__', ''])(
  'spec/02 §3.3 the unknown type %j is in debug only',
  (type) => {
    expect(eventTypeRow(type)).toEqual({
      updates: false,
      values: false,
      messages: false,
      nodeScoped: false,
    });
  },
);
