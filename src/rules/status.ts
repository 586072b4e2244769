// Run states (run-snapshot.schema.json) as a pure fold over event types: the head's status is nothing but this fold.
import { eventRow } from './events.ts';
import type { JsonObject } from './json.ts';

export const RUN_STATUSES = [
  'pending',
  'running',
  'paused',
  'waiting-approval',
  'waiting-input',
  'waiting-external',
  'cancelling',
  'completed',
  'failed',
  'cancelled',
] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const TERMINAL_STATUSES: ReadonlySet<RunStatus> = new Set([
  'completed',
  'failed',
  'cancelled',
]);

/** Nothing follows it in the run's log. */
export function isTerminalEvent(type: string): boolean {
  return eventRow(type).part === 'run-ends';
}

export type InterruptKind =
  | 'approval'
  | 'clarification'
  | 'external-event'
  | 'custom'
  | 'low-confidence'
  | 'conversation.exchange';

/** Status of a run that waits for one interrupt of this kind (interrupt.md). */
export const WAITING_STATUS: Record<InterruptKind, RunStatus> = {
  approval: 'waiting-approval',
  'low-confidence': 'waiting-approval',
  'conversation.exchange': 'waiting-approval',
  clarification: 'waiting-input',
  custom: 'waiting-input',
  'external-event': 'waiting-external',
};

/** Interrupts of this kind are questions to a person; the others end by another system's event. */
export const ASKS_A_PERSON: Readonly<Record<InterruptKind, boolean>> = {
  approval: true,
  'low-confidence': true,
  'conversation.exchange': true,
  clarification: true,
  custom: false,
  'external-event': false,
};

/** Statuses in which an interrupt may be open: beside the waiting ones those that go before a wait (`statusOf`). */
export const MAY_WAIT: ReadonlySet<RunStatus> = new Set([
  ...Object.values(WAITING_STATUS),
  'paused',
  'cancelling',
]);

/** Small JSON carried by translate: what is noted, and what waits. */
export interface StatusState {
  /** Status without regard to waits. */
  readonly base: RunStatus;
  /** Open interrupts: interruptId -> kind, in the order raised. */
  readonly waiting: readonly (readonly [string, InterruptKind])[];
}

export const INITIAL_STATUS: StatusState = { base: 'pending', waiting: [] };

export function foldStatus(state: StatusState, type: string, payload: JsonObject): StatusState {
  const { part, run } = eventRow(type);
  if (run !== null) return { base: run, waiting: TERMINAL_STATUSES.has(run) ? [] : state.waiting };
  if (part === 'wait-opens') {
    const waiting = [payload.interruptId as string, payload.kind as InterruptKind] as const;
    return { ...state, waiting: [...state.waiting, waiting] };
  }
  if (part !== 'wait-ends') return state;
  return { ...state, waiting: state.waiting.filter(([id]) => id !== payload.interruptId) };
}

/** A wait shows as soon as one interrupt is open, also while other branches run; the oldest wait gives the status. */
export function statusOf(state: StatusState): RunStatus {
  const first = state.waiting[0];
  if (first && state.base === 'running') return WAITING_STATUS[first[1]];
  return state.base;
}
