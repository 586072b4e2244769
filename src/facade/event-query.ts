// What is asked of an event stream (stream-modes.md): modes, batching, resume point.
import { isToolChannel } from '../rules/deltas.ts';
import { HostError, invalid } from '../rules/errors.ts';
import { eventRow } from '../rules/events.ts';
import { EVENT_ID } from '../rules/ids.ts';
import type { JsonObject } from '../rules/json.ts';
import type { Head, LogRow } from '../ports/log.ts';
import type { RunRef, RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import type { RunLog } from './deps.ts';
import { header, text, type Parameter } from './parameters.ts';

/**
 * Whether a place after the end of an open log is of events that the database lost: the client gets them all. The head of a
 * read that was shared with others may be older than what the client has.
 */
export async function isLost(
  { log }: { readonly log: Pick<RunLog, 'head'> },
  run: RunRef,
  { head, asked }: { readonly head: Head; readonly asked: number },
): Promise<boolean> {
  if (head.closed || asked < head.nextSequence) return false;
  const stored = await log.head(run);
  return stored !== undefined && !stored.closed && asked >= stored.nextSequence;
}

export const STREAM_MODES = ['values', 'updates', 'messages', 'debug'] as const;
export type StreamMode = (typeof STREAM_MODES)[number];

/** Longest time in ms that events may be held back into one batch. */
export const MAX_BUFFER_MS = 5_000;

export interface EventQuery {
  readonly modes: ReadonlySet<StreamMode>;
  /** 0: no batching. */
  readonly bufferMs: number;
}

function isMode(name: string): name is StreamMode {
  return (STREAM_MODES as readonly string[]).includes(name);
}

const unsupported = (): HostError =>
  new HostError('unsupported_stream_mode', { supported: [...STREAM_MODES] });

export function parseModes(text: string): ReadonlySet<StreamMode> {
  const names = text.split(',');
  const modes = new Set(names.filter(isMode));
  const alone = !modes.has('values') || names.length === 1;
  if (!names.every(isMode) || !alone) throw unsupported();
  return modes;
}

export const STREAM_MODE: Parameter<ReadonlySet<StreamMode>> = {
  in: 'query',
  name: 'streamMode',
  description: 'values, updates, messages, debug, or a comma list of the last three.',
  schema: {
    type: 'string',
    pattern: '^(values|(updates|messages|debug)(,(updates|messages|debug))*)$',
    default: 'updates',
  },
  example: 'updates,messages',
  absent: new Set(['updates']),
  refuse: unsupported,
  errors: ['unsupported_stream_mode'],
  parse: parseModes,
};

const RESUME_TEXT: Parameter<string | undefined> = {
  ...text('Go on after this sequence or eventId.', { example: '17' }),
  emptyIsAbsent: true,
};

/** The query is for clients that cannot send the header with their first request. Looked up by resumePoint. */
export const RESUME_AFTER: Parameter<string | undefined> = {
  ...header('Last-Event-ID', RESUME_TEXT),
  schema: { type: 'string', pattern: `^([0-9]{1,15}|${EVENT_ID})?$` },
  otherwise: {
    ...RESUME_TEXT,
    name: 'lastEventId',
    description: 'As the header, for a first request without it; beside it this is not read.',
  },
};

/** How a row leaves in these modes: whole, as an answer's text chunk, or not at all. */
export function frameKind(
  modes: ReadonlySet<StreamMode>,
  { type, payload }: Pick<LogRow, 'type' | 'payload'>,
): 'event' | 'message' | undefined {
  const { updates, messages } = eventRow(type);
  if (modes.has('debug') || (modes.has('updates') && updates)) return 'event';
  return modes.has('messages') && messages && isAnswer(payload) ? 'message' : undefined;
}

/** What a tool tells while it works is no text of the answer. */
function isAnswer(payload: string): boolean {
  return !isToolChannel((JSON.parse(payload) as JsonObject).channel);
}

const IS_EVENT_ID = new RegExp(`^${EVENT_ID}$`);

/** Of a run whose head has been read since. */
export interface Resumed {
  readonly log: Pick<RunLog, 'sequenceOf'>;
  readonly runs: Pick<Stores['runs'], 'find'>;
  /** Its history cannot be read now. */
  readonly isAway: boolean;
}

/**
 * Sequence that the client has already, by a sequence or an eventId of this run; -1 for none. A log that was made again may
 * have had other events at the same sequences: from where they differ the client gets them all. Throws service_unavailable of
 * an event that history may give back, and validation_error of one that nobody knows.
 */
export async function resumePoint(
  text: string | undefined,
  run: RunRow,
  { log, runs, isAway }: Resumed,
): Promise<number> {
  if (text === undefined) return -1;
  const sequence = await sequenceSeen(text, run, log);
  // The log may have been made again after the run was read, and before the event was looked for.
  const { retoldFrom } = (await runs.find(run.tenant, run.runId)) ?? run;
  if (retoldFrom !== undefined) return Math.min(sequence ?? Infinity, retoldFrom - 1);
  if (sequence !== undefined) return sequence;
  if (isAway && IS_EVENT_ID.test(text)) throw new HostError('service_unavailable');
  throw invalid('Last-Event-ID', 'is neither a sequence nor an eventId of this run');
}

async function sequenceSeen(
  text: string,
  run: RunRef,
  log: Pick<RunLog, 'sequenceOf'>,
): Promise<number | undefined> {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  return /^[\x21-\x7e]{1,128}$/.test(text) ? log.sequenceOf(run, text) : undefined;
}
