// src/opensentience/frame.ts: bytes to messages over any chunking, and one defined fault for each way to be wrong
// (seed 004 §2).
import { describe, expect, it } from 'vitest';
import {
  encodeFrame,
  FrameDecoder,
  MAX_FRAME_DEPTH,
  type Frame,
  type FrameFault,
} from '../../src/opensentience/frame.ts';
import { MAX_FRAME_BYTES } from '../../src/opensentience/messages.ts';
import { BAD_FRAMES, framed } from './hostile-streams.ts';

const GOOD = { type: 'agent.pong', text: 'grüße 🎈', list: [1, { a: null }] };

/** Everything that the decoder says of `bytes`, in pieces of `size`. */
function decode(
  bytes: Uint8Array,
  size: number,
  maxFrameBytes = MAX_FRAME_BYTES,
): (Frame | FrameFault)[] {
  const decoder = new FrameDecoder(maxFrameBytes);
  const said: (Frame | FrameFault)[] = [];
  for (let at = 0; at < bytes.length; at += size)
    said.push(...decoder.push(bytes.subarray(at, at + size)));
  const end = decoder.end();
  return end ? [...said, end] : said;
}

describe('seed 004 §2.1: a 4-byte big-endian length, then one JSON object in UTF-8', () => {
  it('given a message, then its frame is the length and the text', () => {
    const frame = encodeFrame({ a: 'ü' }, 100);
    expect(frame.readUInt32BE(0)).toBe(frame.length - 4);
    expect(frame.subarray(4).toString()).toBe('{"a":"ü"}');
  });
  it('given several frames, when cut at every size, then every message arrives, in order', () => {
    const bytes = Buffer.concat([1, 2, 3].map((n) => encodeFrame({ ...GOOD, n }, 1000)));
    for (let size = 1; size <= bytes.length; size += 1)
      expect(decode(bytes, size)).toEqual(
        [1, 2, 3].map((n) => ({ ok: true, value: { ...GOOD, n } })),
      );
  });
  it('given a frame of the largest size in chunks of one byte, then it takes linear work', () => {
    const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(MAX_FRAME_BYTES - 11) }));
    expect(body.length).toBe(MAX_FRAME_BYTES);
    const decoder = new FrameDecoder(MAX_FRAME_BYTES);
    const bytes = framed(body);
    let frames: Frame[] = [];
    for (let at = 0; at < bytes.length; at += 1) frames = decoder.push(bytes.subarray(at, at + 1));
    expect(frames[0]?.ok).toBe(true);
  });
  it('given a chunk that is reused after it was pushed, then the message is what was pushed', () => {
    const bytes = encodeFrame(GOOD, 1000);
    const decoder = new FrameDecoder(1000);
    const chunk = Buffer.from(bytes.subarray(0, 20));
    decoder.push(chunk);
    chunk.fill(0);
    expect(decoder.push(bytes.subarray(20))).toEqual([{ ok: true, value: GOOD }]);
  });
});

describe('seed 004 §2.2: limits', () => {
  it('encoding above the limit throws with a code', () => {
    expect(() => encodeFrame({ text: 'x'.repeat(100) }, 100)).toThrow(
      expect.objectContaining({ code: 'protocol.frame_too_large' }) as Error,
    );
  });
  it('a length above the limit is refused on its four bytes', () => {
    const decoder = new FrameDecoder(100);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(101);
    expect(decoder.push(length)).toEqual([{ ok: false, fault: 'too-large' }]);
  });
  it('a frame of exactly the limit is taken', () => {
    const frame = encodeFrame({ a: 1 }, 7);
    expect(decode(frame, 3, 7)).toEqual([{ ok: true, value: { a: 1 } }]);
  });
});

describe('each fault of a frame has one word', () => {
  for (const { name, bytes, fault } of BAD_FRAMES)
    it(`${name}: ${fault}, cut anywhere, after a good frame, and nothing more is taken`, () => {
      const good = encodeFrame(GOOD, 1000);
      const stream = Buffer.concat([good, bytes, ...(fault === 'truncated' ? [] : [good])]);
      for (let size = 1; size <= stream.length; size += Math.ceil(stream.length / 200)) {
        const [first, second, ...rest] = decode(stream, size, 64 * 1024);
        expect(first).toEqual({ ok: true, value: GOOD });
        expect(second).toEqual(fault === 'truncated' ? fault : { ok: false, fault });
        expect(rest).toEqual([]);
      }
    });
});

describe('JSON that is dangerous to walk', () => {
  it(`nesting of ${MAX_FRAME_DEPTH} levels is taken`, () => {
    const text = '{"a":'.repeat(MAX_FRAME_DEPTH) + '1' + '}'.repeat(MAX_FRAME_DEPTH);
    expect(decode(framed(text), 10)[0]).toMatchObject({ ok: true });
  });
  it('[I103] members named __proto__ are there as they were sent, and nobody’s prototype', () => {
    const text = '{"__proto__":{"x":1},"a":[{"\\u005f_proto__":{"y":2},"b":1}]}';
    const [frame] = decode(framed(text), 7);
    expect(JSON.stringify(frame)).toBe(
      '{"ok":true,"value":{"__proto__":{"x":1},"a":[{"__proto__":{"y":2},"b":1}]}}',
    );
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
  it('a message is parsed by who reads it, its depth bounded all the same', () => {
    const parse = (text: string): unknown => ({ text });
    const frames = new FrameDecoder(1_000, { parse }).push(framed('{"a":1}'));
    expect(frames).toEqual([{ ok: true, value: { text: '{"a":1}' } }]);
  });
});

describe('slow senders can be seen', () => {
  it('openSinceMs is the time of the open frame’s first byte, and of none when none is open', () => {
    let now = 10;
    const decoder = new FrameDecoder(1000, { now: () => now });
    const bytes = encodeFrame(GOOD, 1000);
    expect(decoder.openSinceMs).toBeUndefined();
    decoder.push(bytes.subarray(0, 1));
    now = 20;
    decoder.push(bytes.subarray(1, 30));
    expect(decoder.openSinceMs).toBe(10);
    decoder.push(bytes.subarray(30));
    expect(decoder.openSinceMs).toBeUndefined();
    now = 30;
    decoder.push(Buffer.concat([bytes, bytes.subarray(0, 2)]));
    expect(decoder.openSinceMs).toBe(30);
  });
});
