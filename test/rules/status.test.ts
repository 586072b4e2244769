// Run states as a fold over event types (run-snapshot.schema.json): every state against every kind of event.
import { describe, expect, test } from 'vitest';
import {
  ASKS_A_PERSON,
  foldStatus,
  INITIAL_STATUS,
  isTerminalEvent,
  MAY_WAIT,
  RUN_STATUSES,
  statusOf,
  TERMINAL_STATUSES,
  WAITING_STATUS,
  type InterruptKind,
  type RunStatus,
  type StatusState,
} from '../../src/rules/status.ts';
import { formShapeOf } from '../../src/words/question.ts';

type Event = keyof typeof moves | 'node.completed';
type Base = Exclude<RunStatus, 'waiting-approval' | 'waiting-input' | 'waiting-external'>;

const ends = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
} as const;
const moves = {
  ...ends,
  'run.started': 'running',
  'run.resumed': 'running',
  'run.paused': 'paused',
} as const;

const TRANSITIONS: Record<Base, Record<Event, RunStatus>> = {
  pending: { ...moves, 'node.completed': 'pending' },
  running: { ...moves, 'node.completed': 'running' },
  paused: { ...moves, 'node.completed': 'paused' },
  cancelling: { ...moves, 'node.completed': 'cancelling' },
  completed: { ...moves, 'node.completed': 'completed' },
  failed: { ...moves, 'node.completed': 'failed' },
  cancelled: { ...moves, 'node.completed': 'cancelled' },
};

describe('run-snapshot.schema.json', () => {
  const cases = Object.entries(TRANSITIONS).flatMap(([base, row]) =>
    Object.entries(row).map(
      ([event, expected]) => [base as Base, event as Event, expected] as const,
    ),
  );
  test.each(cases)('%s and %s give %s', (base, event, expected) => {
    expect(statusOf(foldStatus({ base, waiting: [] }, event, {}))).toBe(expected);
  });

  const waits: Record<InterruptKind, RunStatus> = {
    approval: 'waiting-approval',
    clarification: 'waiting-input',
    'conversation.exchange': 'waiting-approval',
    custom: 'waiting-input',
    'external-event': 'waiting-external',
    'low-confidence': 'waiting-approval',
  };

  test.each(Object.entries(waits))(
    'interrupt.md: a running run that waits for %s is %s',
    (kind, expected) => {
      const state = foldStatus({ base: 'running', waiting: [] }, 'node.suspended', {
        interruptId: 'i',
        kind,
      });
      expect(statusOf(state)).toBe(expected);
      expect(WAITING_STATUS).toEqual(waits);
    },
  );

  test('the oldest of several waits gives the status, and each ends with its own resolution', () => {
    const steps: [string, Record<string, string>, RunStatus][] = [
      ['run.started', {}, 'running'],
      ['node.suspended', { interruptId: 'a', kind: 'clarification' }, 'waiting-input'],
      ['node.suspended', { interruptId: 'b', kind: 'approval' }, 'waiting-input'],
      ['interrupt.resolved', { interruptId: 'a' }, 'waiting-approval'],
      ['interrupt.resolved', { interruptId: 'unknown' }, 'waiting-approval'],
      ['interrupt.resolved', { interruptId: 'b' }, 'running'],
    ];
    let state: StatusState = INITIAL_STATUS;
    expect(statusOf(state)).toBe('pending');
    for (const [type, payload, expected] of steps) {
      state = foldStatus(state, type, payload);
      expect(statusOf(state)).toBe(expected);
    }
  });

  test.each(['cancelling', 'paused'] as const)('a %s run shows that, not its wait', (base) => {
    expect(statusOf({ base, waiting: [['i', 'approval']] })).toBe(base);
  });

  test('in what status ever an interrupt can be open, MAY_WAIT has it', () => {
    const bases = ['running', 'paused', 'cancelling'] as const;
    const kinds = Object.keys(WAITING_STATUS) as InterruptKind[];
    const seen = bases.flatMap((base) =>
      kinds.map((kind) => statusOf({ base, waiting: [['i', kind]] })),
    );
    expect(new Set(seen)).toEqual(MAY_WAIT);
  });

  test('a kind asks a person where there is a form for it', () => {
    for (const [kind, asks] of Object.entries(ASKS_A_PERSON))
      expect([kind, formShapeOf({ kind, data: {} }) !== 'none']).toEqual([kind, asks]);
  });

  test.each(Object.entries(ends))('%s forgets open waits and is terminal', (type, expected) => {
    const state = foldStatus({ base: 'running', waiting: [['i', 'approval']] }, type, {});
    expect(state).toEqual({ base: expected, waiting: [] });
    expect(isTerminalEvent(type)).toBe(true);
    expect(TERMINAL_STATUSES.has(expected)).toBe(true);
  });

  test('nothing else is terminal', () => {
    expect(RUN_STATUSES.filter((status) => TERMINAL_STATUSES.has(status))).toEqual([
      'completed',
      'failed',
      'cancelled',
    ]);
    for (const type of ['run.started', 'node.completed', 'toString', '__proto__'])
      expect(isTerminalEvent(type)).toBe(false);
  });
});
