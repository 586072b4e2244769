// The stream of one call (seed 004 §4.3.2): seq from 1 by one, bounded in messages and bytes (§7.3), and one last note
// in place of what was dropped.
import type { AgentPayloads, JsonMap, StreamChannel } from '../opensentience/messages.ts';
import { exactJson, noJson, PARTIAL_LEVELS } from './exact-json.ts';
import type { AgentLimits } from './limits.ts';
import type { ToolStream } from './tool.ts';

type StreamPayload = AgentPayloads['agent.tool.stream'];

export interface StreamSink {
  /** Throws when the message cannot be sent. */
  send(payload: StreamPayload): void;
  crowded(): boolean;
}

export interface CallStream extends ToolStream {
  /** What is written later is dropped: the result has been sent. */
  close(): void;
}

const NOTE = 'Further output of this call was dropped.';

export function openStream(callId: string, limits: AgentLimits, sink: StreamSink): CallStream {
  let seq = 0;
  let bytes = 0;
  let open = true;
  const send = (channel: StreamChannel, data: StreamPayload['data'], done?: true): void => {
    sink.send({ call_id: callId, seq: seq + 1, channel, data, ...(done && { done }) });
    seq += 1;
  };
  const write = (channel: StreamChannel, data: StreamPayload['data'], size: number): void => {
    if (!open) return;
    bytes += size;
    // One message is kept back for the note.
    const full = seq >= limits.maxStreamMessages - 1 || bytes > limits.maxStreamBytes;
    if (!full && !sink.crowded()) {
      try {
        return send(channel, data);
      } catch {
        // Larger than a frame may be.
      }
    }
    open = false;
    send('log', { text: NOTE }, true);
  };
  const text = (channel: StreamChannel) => (all: string) => {
    for (const part of split(String(all), limits.maxTextChars)) {
      if (!open) return;
      write(channel, { text: part }, Buffer.byteLength(part));
    }
  };
  return {
    stdout: text('stdout'),
    stderr: text('stderr'),
    log: text('log'),
    status: text('status'),
    partial: (value) => {
      const json = exactJson(value, PARTIAL_LEVELS);
      if (!json) return text('log')(`A partial result ${noJson(PARTIAL_LEVELS)}.`);
      write('partial_result', { json: json.value as JsonMap }, Buffer.byteLength(json.text));
    },
    close: () => {
      open = false;
    },
  };
}

/** Never between the two halves of a surrogate pair: each part is valid UTF-8. */
function* split(text: string, most: number): Generator<string> {
  let at = 0;
  while (at < text.length) {
    let end = Math.min(text.length, at + most);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff && end - at > 1) end -= 1;
    yield text.slice(at, end);
    at = end;
  }
}
