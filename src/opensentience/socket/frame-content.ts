// What agents' messages carry for others (seed 004 §2.2, §4.3): read so that what cannot be kept is marked at its place and
// fails its call, or its piece, alone. The length of the frame is known, so that the next one is found.
import { isJsonObject, type JsonValue } from '../../rules/json.ts';
import { cutBelow, marked, markedWithWords } from '../../rules/json-text.ts';
import { MAX_FRAME_DEPTH, type FrameReading, type FrameValue } from '../frame.ts';
import type { AgentMessageType } from '../messages.ts';

/**
 * Messages whose content is taken over: a number in it that would change, or a name that is there twice, is marked, and
 * refused where it is taken.
 */
const WITH_CONTENT: ReadonlySet<unknown> = new Set<AgentMessageType>([
  'agent.tools.register',
  'agent.tool.stream',
  'agent.tool.result',
]);

/**
 * Messages that end no session where a bare NaN, Infinity or -Infinity is written in them, as serializers of many languages do, or
 * where they nest too deep. Any other text that is no JSON is no message.
 */
const FAILS_ALONE: ReadonlySet<unknown> = new Set<AgentMessageType>([
  'agent.tool.stream',
  'agent.tool.result',
  'agent.heartbeat',
  'agent.error',
]);

export const CONTENT_READING: Pick<FrameReading, 'parse' | 'cut'> = { parse, cut };

function parse(text: string): unknown {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    const withWords = markedWithWords(text);
    if (!isJsonObject(withWords) || !FAILS_ALONE.has(withWords.type)) throw error;
    return withWords;
  }
  return isJsonObject(value) && WITH_CONTENT.has(value.type) ? marked(text, value) : value;
}

function cut(value: FrameValue): boolean {
  if (!FAILS_ALONE.has(value.type)) return false;
  cutBelow(value, MAX_FRAME_DEPTH);
  return true;
}
