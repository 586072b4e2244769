// The journal: the only place where a run's facts are stated (architecture §2). `emit` is synchronous and ordered; what
// it takes down waits in the outbox until the interceptor puts it on a command of the same activation. Module state
// belongs to one Temporal run: the sandbox gives every run its own modules.
import { ApplicationFailure } from '@temporalio/workflow';
import { causeOf, noteFact } from './causes.ts';
import type { Stated } from './comparison.ts';
import type { EventType, PayloadOf } from '../src/rules/events.ts';
import { trackOpen, type OpenItem } from '../src/rules/endings.ts';
import { activityEventKey } from '../src/rules/ids.ts';
import type { ActivityEvent, CausedBy, JournalEntry, RecordedEvent } from '../src/rules/journal.ts';
import { jsonBytes } from '../src/rules/json.ts';
import { TASK_BYTES } from '../src/rules/limits.ts';
import { TERMINAL_STATUSES, type RunStatus } from '../src/rules/status.ts';

/** An entry with its ordinal in this Temporal run: taken back and carried later, it keeps its place. */
export interface OutboxEntry {
  readonly at: number;
  readonly entry: JournalEntry;
  readonly bytes: number;
}

let outbox: OutboxEntry[] = [];
let nextAt = 0;
/** True until the first activation of this Temporal run is over. */
let beginning = true;
/** What this activation has put on its commands so far. */
let spentBytes = 0;
let open: readonly OpenItem[] = [];
let ended: 'completed' | 'failed' | 'cancelled' | 'frozen' | undefined;
const keys = new Set<string>();
/** Of a fork: what stands in its log already. */
let comparison: { holds(stated: Stated): boolean; keyOf(key: string): string } | undefined;
/** Whose run this is. */
let tenant = '';

/** Before anything is stated. */
export function openJournal(of: string): void {
  tenant = of;
}

/** False: what runs here is no run, and states nothing. */
export function isJournalOpen(): boolean {
  return tenant !== '';
}

export function tenantOfRun(): string {
  return tenant;
}

/** From now on facts are held against those of the source. */
export function compareWith(recorded: typeof comparison): void {
  comparison = recorded;
}

function take(entry: JournalEntry): void {
  const bytes = jsonBytes(entry);
  outbox.push({ at: nextAt++, entry, bytes });
  spentBytes += bytes;
}

/** Notes what goes on a command besides entries. */
export function spend(bytes: number): void {
  spentBytes += bytes;
}

/** True when this workflow task carries enough: what has time waits for the next one. */
export function isTaskFull(): boolean {
  return spentBytes >= TASK_BYTES;
}

function claimKey(key: string): void {
  if (keys.has(key))
    throw ApplicationFailure.nonRetryable(`journal key ${key} is used twice`, 'internal_error');
  keys.add(key);
}

export interface EmitOptions {
  /** Names the fact, unique in the run (architecture §2.1). */
  readonly key: string;
  readonly nodeId?: string;
  readonly causedBy?: CausedBy;
  /** Its cause; absent: what its node, or the run, came to last (causes.ts). */
  readonly because?: string;
}

/** States a fact. After the terminal event nothing is taken down any more. */
export function emit<T extends EventType>(
  type: T,
  payload: PayloadOf<T>,
  { because, ...options }: EmitOptions,
): void {
  if (ended) return;
  claimKey(options.key);
  const causedBy = options.causedBy ?? because ?? causeOf(options.nodeId);
  const { key, nodeId } = options;
  const isHeld = comparison?.holds({ key, type, payload, nodeId, causedBy });
  const own = { ...options, key: comparison?.keyOf(options.key) ?? options.key };
  if (!isHeld) take({ kind: 'emit', type, payload, ...own, causedBy });
  open = trackOpen(open, { type, payload, ...own });
  noteFact({ type, ...own });
}

/** Gives the events of an activity's recorded result their place, in their order. */
export function admit(activityId: string, events: readonly ActivityEvent[]): void {
  if (ended) return;
  events.forEach((event, k) => {
    const key = activityEventKey(activityId, k);
    claimKey(key);
    if (!comparison?.holds({ ...event, key })) take({ kind: 'admit', activityId, k });
    open = trackOpen(open, { ...event, key });
    noteFact({ ...event, key });
  });
}

/** As `admit`, of a result that this run's history does not hold. */
export function admitRecorded(activityId: string, events: readonly RecordedEvent[]): void {
  if (ended) return;
  events.forEach((event, k) => {
    const key = activityEventKey(activityId, k);
    claimKey(key);
    const isHeld = comparison?.holds({ ...event, key });
    const own = comparison?.keyOf(key) ?? key;
    if (!isHeld) take({ kind: 'emit', key: own, ...event });
    open = trackOpen(open, { ...event, key: own });
    noteFact({ ...event, key: own });
  });
}

/** Moves the status without an event (`cancelling`). */
export function noteStatus(status: RunStatus): void {
  if (!ended && !TERMINAL_STATUSES.has(status)) take({ kind: 'status', status });
}

/** A fork has left its source behind so many of its batches. */
export function noteLive(batches: number): void {
  take({ kind: 'live', batches });
}

/** Nothing may follow the terminal event. */
export function endJournal(as: 'completed' | 'failed' | 'cancelled'): void {
  ended = as;
}

/** The segment's state is taken: what continues in this activation states nothing any more. */
export function freezeJournal(): void {
  ended = 'frozen';
}

export function endedAs(): typeof ended {
  return ended;
}

export function openItems(): readonly OpenItem[] {
  return open;
}

/** Continues with what an earlier segment left open. */
export function restoreOpenItems(items: readonly OpenItem[]): void {
  open = items;
}

/** True in the activation that the Temporal run begins with. */
export function isBeginning(): boolean {
  return beginning;
}

/** For the interceptor, at the end of every activation: empties the outbox. */
export function drainOutbox(): OutboxEntry[] {
  const taken = outbox;
  spentBytes = 0;
  beginning = false;
  outbox = [];
  return taken;
}

/** For the interceptor: entries whose command never reached history come back, before everything newer. */
export function takeBack(entries: readonly OutboxEntry[]): void {
  outbox = [...entries, ...outbox];
}
