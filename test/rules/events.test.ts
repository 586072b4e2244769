// Which stream mode shows which event type (spec/02 §3.3), and that each type of the table has who states it.
import ts from 'typescript';
import { expect, test } from 'vitest';
import {
  EVENT_TYPES,
  eventTypeRow,
  isMessage,
  isUpdate,
  movesSnapshot,
} from '../../src/rules/events.ts';
import { TERMINAL_EVENTS } from '../../src/rules/status.ts';
import { EVENT_TYPE_NAMES } from '../../src/wire/validators.ts';
import { readSource, repositoryFiles } from '../support/source-tree.ts';

test('every type that has a payload schema has a row, and no other', () => {
  expect(Object.keys(EVENT_TYPES).sort()).toEqual([...EVENT_TYPE_NAMES].sort());
});

/** Where events are stated: by the workflow, in an activity's result, for a run that no workflow ever ran for. */
const EMITTING = ['workflows', 'activities', 'src/rules/endings.ts', 'src/log/start-failed.ts'];

/**
 * Texts in the places of a type that is stated: an argument of emit or emitFact, the member `type` of an event, the
 * member `closing` of the table of endings.
 */
function stated(path: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const { parent } = node;
    if (ts.isStringLiteral(node)) {
      const isMember =
        ts.isPropertyAssignment(parent) && /^(type|closing)$/.test(parent.name.getText());
      const isArgument =
        ts.isCallExpression(parent) && /^emit(Fact)?$/.test(parent.expression.getText());
      if (isMember || isArgument) found.push(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(readSource(path).tree);
  return found;
}

test('every type of the table is stated somewhere', () => {
  const files = repositoryFiles(...EMITTING).filter((path) => path.endsWith('.ts'));
  const told = new Set(files.flatMap(stated));
  expect(Object.keys(EVENT_TYPES).filter((type) => !told.has(type))).toEqual([]);
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
