// Run states (spec/01 §12.2) as a pure fold over event types: the head's status is nothing but this fold.
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

export const TERMINAL_EVENTS = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
} as const satisfies Record<string, RunStatus>;

export function isTerminalEvent(type: string): type is keyof typeof TERMINAL_EVENTS {
  return Object.hasOwn(TERMINAL_EVENTS, type);
}

export type InterruptKind =
  'approval' | 'clarification' | 'external-event' | 'custom' | 'low-confidence';

/** Status of a run that waits for one interrupt of this kind (spec/02 §4.2). */
export const WAITING_STATUS: Record<InterruptKind, RunStatus> = {
  approval: 'waiting-approval',
  'low-confidence': 'waiting-approval',
  clarification: 'waiting-input',
  custom: 'waiting-input',
  'external-event': 'waiting-external',
};

/** Small JSON carried by translate: what is noted, and what waits. */
export interface StatusState {
  /** Status without regard to waits. */
  readonly base: RunStatus;
  /** Open interrupts: interruptId -> kind, in the order raised. */
  readonly waiting: readonly (readonly [string, InterruptKind])[];
}

export const INITIAL_STATUS: StatusState = { base: 'pending', waiting: [] };

export function foldStatus(state: StatusState, type: string, payload: JsonObject): StatusState {
  if (isTerminalEvent(type)) return { base: TERMINAL_EVENTS[type], waiting: [] };
  switch (type) {
    case 'run.started':
    case 'run.resumed':
      return { ...state, base: 'running' };
    case 'run.paused':
      return { ...state, base: 'paused' };
    case 'node.suspended': {
      const waiting = [payload.interruptId as string, payload.kind as InterruptKind] as const;
      return { ...state, waiting: [...state.waiting, waiting] };
    }
    case 'interrupt.resolved':
      return { ...state, waiting: state.waiting.filter(([id]) => id !== payload.interruptId) };
    default:
      return state;
  }
}

/** A wait shows as soon as one interrupt is open, also while other branches run; the oldest wait gives the status. */
export function statusOf(state: StatusState): RunStatus {
  const first = state.waiting[0];
  if (first && state.base === 'running') return WAITING_STATUS[first[1]];
  return state.base;
}
