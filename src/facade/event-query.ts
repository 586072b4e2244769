// The query of an event stream (spec/02 §3.1–§3.5): modes, batching, resume point. Checked in that order, before the
// kind of the answer is chosen.
import type { Request } from 'express';
import { isToolChannel } from '../rules/deltas.ts';
import { HostError, invalid } from '../rules/errors.ts';
import { eventRow } from '../rules/events.ts';
import type { JsonObject } from '../rules/json.ts';
import type { LogRow, LogStore } from '../ports/log.ts';
import { queryInteger, queryText } from './query.ts';

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

export function parseModes(text: string | undefined): ReadonlySet<StreamMode> {
  const names = (text ?? 'updates').split(',');
  const modes = new Set(names.filter(isMode));
  const alone = !modes.has('values') || names.length === 1;
  if (!names.every(isMode) || !alone)
    throw new HostError('unsupported_stream_mode', { supported: [...STREAM_MODES] });
  return modes;
}

export function parseEventQuery(request: Request): EventQuery {
  let mode: string | undefined;
  try {
    mode = queryText(request, 'streamMode');
  } catch {
    throw new HostError('unsupported_stream_mode', { supported: [...STREAM_MODES] });
  }
  return {
    modes: parseModes(mode),
    bufferMs: queryInteger(request, 'bufferMs', { min: 0, max: MAX_BUFFER_MS }) ?? 0,
  };
}

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

/**
 * Sequence that the client has already; -1 for none. `Last-Event-ID` is a sequence or an eventId of this run; the
 * query parameter `lastEventId` is for clients that cannot send the header with their first request.
 */
export async function resumePoint(request: Request, runId: string, log: LogStore): Promise<number> {
  const header = request.headers['last-event-id'];
  const text =
    typeof header === 'string' && header !== '' ? header : queryText(request, 'lastEventId');
  if (text === undefined || text === '') return -1;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const sequence = /^[\x21-\x7e]{1,128}$/.test(text)
    ? await log.sequenceOf(runId, text)
    : undefined;
  if (sequence === undefined)
    throw invalid('Last-Event-ID', 'is neither a sequence nor an eventId of this run');
  return sequence;
}
