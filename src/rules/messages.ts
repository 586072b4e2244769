// Messages to a run (architecture §4): one union, and one table of how each kind travels. The facade checks a message
// before it is sent, the workflow decides whether it is taken. A new kind is one member, one row and one handler.
import type { JsonValue } from './json.ts';
import { DAY_MS } from './limits.ts';
import type { Subject } from './subject.ts';

/** Answers one question that a run asked. */
export interface ResolveInterruptMessage {
  readonly kind: 'resolve-interrupt';
  readonly nodeId: string;
  /** The one question that is answered: a node asks many in its life, and an answer must reach no other. */
  readonly interruptId: string;
  /** Validated by the facade against the schema frozen in the interrupt's entry. */
  readonly value: JsonValue;
  /** Digest of that schema: the workflow refuses an answer validated against another one. */
  readonly schemaDigest: string;
  /** Digest of the HTTP body that this answers, returned in the outcome. */
  readonly bodyDigest: string;
  readonly resolvedBy: Subject;
}

export interface CancelRunMessage {
  readonly kind: 'cancel';
  readonly reason?: string;
  readonly cancelledBy: string;
  /** Whose end ends this run. */
  readonly parentRunId?: string;
  readonly bodyDigest: string;
}

/** How a pause treats what runs: `immediate` cuts an attempt, `drain-current-node` lets it come to its end or a question. */
export const DRAIN_POLICIES = ['drain-current-node', 'immediate'] as const;

export interface PauseRunMessage {
  readonly kind: 'pause';
  readonly reason?: string;
  readonly drainPolicy: (typeof DRAIN_POLICIES)[number];
  readonly bodyDigest: string;
}

export interface ResumeRunMessage {
  readonly kind: 'resume';
  readonly reason?: string;
  readonly bodyDigest: string;
}

/** To the end of the first wait that has one, whatever it is. */
export const NEXT_DEADLINE = 'next-deadline';

/** Moves the clock of a rehearsal, and of the runs below it with it. */
export interface SkipMessage {
  readonly kind: 'skip';
  /** ms from where the clock stands. */
  readonly to: number | typeof NEXT_DEADLINE;
  readonly bodyDigest: string;
}

/**
 * Of the run above to one below it in a rehearsal: where does it stand (`rests`), and, with `toMs`, move there. Nothing
 * that it waits for ends before.
 */
export interface KeepTimeMessage {
  readonly kind: 'keep-time';
  /** Time of the rehearsal, ms epoch. */
  readonly toMs?: number;
  readonly bodyDigest: string;
}

export type RunMessage =
  | ResolveInterruptMessage
  | CancelRunMessage
  | PauseRunMessage
  | ResumeRunMessage
  | SkipMessage
  | KeepTimeMessage;
export type MessageKind = RunMessage['kind'];
export type MessageOf<Kind extends MessageKind> = Extract<RunMessage, { kind: Kind }>;

/** What became of a message: `status` is its kind's own word. */
export interface MessageOutcome {
  /** Digest of the body that was answered: a sender who meant another one was not. */
  readonly bodyDigest: string;
  readonly status: string;
  /** Of `keep-time`: what the run stands at. */
  readonly rests?: Resting;
}

/** Where a run of a rehearsal stands while nothing of it is under way. */
export interface Resting {
  /** End of its first wait that has one, by the rehearsal's clock (ms epoch). */
  readonly nextMs?: number;
  /** Runs that it waits for. */
  readonly children: readonly string[];
}

/** What is known of a message that a run has taken: a repeat of it is known by its id. */
export interface Kept {
  readonly updateId: string;
  readonly atMs: number;
}

/** Kept for repeats: 24 h, at most 200 (architecture §4). */
const KEPT = 200;

/** `one` beside those that are still kept when it is taken. */
export function withKept<One extends Kept>(before: readonly One[], one: One): One[] {
  return [...before.filter(({ atMs }) => atMs > one.atMs - DAY_MS).slice(1 - KEPT), one];
}

interface Travel {
  /**
   * Name of its Temporal Update. It stands in recorded histories and never changes; what they hold has no `kind`, so
   * that a workflow knows the kind by this name.
   */
  readonly update: string;
  /** The Update is answered within this time, in ms. */
  readonly deadlineMs: number;
  /**
   * When Temporal does not answer in it. `cancel-request`: Temporal's durable cancel request, which needs no worker;
   * `retry-with-same-key`: service_unavailable, and a repeat under the same id gets the outcome of the first.
   */
  readonly unanswered: 'cancel-request' | 'retry-with-same-key';
  /** To a run that has ended: it is told that nothing changes (status `unchanged`), or refused (run_state_conflict). */
  readonly ofEnded: 'unchanged' | 'refused';
}

export const MESSAGES: Readonly<Record<MessageKind, Travel>> = {
  'resolve-interrupt': {
    update: 'resolveInterrupt',
    deadlineMs: 5_000,
    unanswered: 'retry-with-same-key',
    ofEnded: 'refused',
  },
  cancel: {
    update: 'cancelRun',
    deadlineMs: 2_000,
    unanswered: 'cancel-request',
    ofEnded: 'unchanged',
  },
  pause: {
    update: 'pauseRun',
    deadlineMs: 5_000,
    unanswered: 'retry-with-same-key',
    ofEnded: 'refused',
  },
  resume: {
    update: 'resumeRun',
    deadlineMs: 5_000,
    unanswered: 'retry-with-same-key',
    ofEnded: 'refused',
  },
  skip: {
    update: 'skipTime',
    deadlineMs: 5_000,
    unanswered: 'retry-with-same-key',
    ofEnded: 'refused',
  },
  'keep-time': {
    update: 'keepTime',
    deadlineMs: 5_000,
    unanswered: 'retry-with-same-key',
    ofEnded: 'refused',
  },
};
