// The framing of the OpenSentience runtime protocol (seed 004 §2): one JSON object in UTF-8 behind a 4-byte big-endian
// length. Both ends use it; what arrives is hostile until it is decoded.

const LENGTH_BYTES = 4;
/** Deeper JSON is refused: what walks a message later may do so by recursion. */
export const MAX_FRAME_DEPTH = 64;
/** A body's first buffer; it doubles as bytes arrive, so that a length alone claims no memory. */
const FIRST_BODY_BYTES = 64 * 1024;

/** `truncated` comes from `end` only. */
export type FrameFault =
  'too-large' | 'empty' | 'not-utf8' | 'not-json' | 'not-object' | 'too-deep' | 'truncated';

export type FrameValue = { [key: string]: unknown };
export type Frame =
  { readonly ok: true; readonly value: FrameValue } | { readonly ok: false; fault: FrameFault };

/** The bytes of one message. Throws an Error with the code `protocol.frame_too_large` above the limit. */
export function encodeFrame(message: object, maxFrameBytes: number): Buffer {
  const text = JSON.stringify(message);
  const length = Buffer.byteLength(text);
  if (length > maxFrameBytes) {
    const message = `The frame has ${length} bytes; ${maxFrameBytes} are permitted.`;
    throw Object.assign(new Error(message), { code: 'protocol.frame_too_large' });
  }
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + length);
  frame.writeUInt32BE(length, 0);
  frame.write(text, LENGTH_BYTES);
  return frame;
}

export interface FrameReading {
  /** In ms: what `openSinceMs` is told in. */
  readonly now?: () => number;
  /** Throws for what is no JSON. */
  readonly parse?: (text: string) => unknown;
  /** Of a message that nests too deep: cuts it to what a frame may have, or says that it is refused. Absent: refused. */
  readonly cut?: (value: FrameValue) => boolean;
}

/**
 * Bytes to messages, over any chunking. The first fault is the last thing it says: after it the stream has no known
 * boundary, so it takes nothing more. What a message holds is as it was sent, members named `__proto__` too: who takes a
 * content over refuses what cannot be kept (I103), so that nothing in a member that nobody reads ends a connection.
 */
export class FrameDecoder {
  readonly #maxFrameBytes: number;
  readonly #now: () => number;
  readonly #parse: (text: string) => unknown;
  readonly #cut: (value: FrameValue) => boolean;
  readonly #prefix = Buffer.alloc(LENGTH_BYTES);
  #prefixBytes = 0;
  #length = 0;
  #body: Buffer | undefined;
  #bodyBytes = 0;
  #openSinceMs: number | undefined;
  #faulted = false;

  constructor(maxFrameBytes: number, { now, parse, cut }: FrameReading = {}) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#now = now ?? (() => performance.now());
    this.#parse = parse ?? ((text) => JSON.parse(text) as unknown);
    this.#cut = cut ?? (() => false);
  }

  /** When the first byte of the frame that is not complete yet arrived (slow senders). */
  get openSinceMs(): number | undefined {
    return this.#openSinceMs;
  }

  /** What is complete with this chunk, in order; a fault is the last of them. The chunk is not kept. */
  push(chunk: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    let rest = chunk;
    while (rest.length > 0 && !this.#faulted) {
      this.#openSinceMs ??= this.#now();
      if (this.#prefixBytes < LENGTH_BYTES) {
        rest = this.#takePrefix(rest);
        const fault = this.#lengthFault();
        if (fault) frames.push(this.#fail(fault));
        continue;
      }
      const taken = Math.min(rest.length, this.#length - this.#bodyBytes);
      const body = this.#takeBody(rest.subarray(0, taken));
      rest = rest.subarray(taken);
      if (!body) continue;
      this.#next();
      const frame = this.#read(body);
      frames.push(frame.ok ? frame : this.#fail(frame.fault));
    }
    return frames;
  }

  /** To be called when the other side has ended: `truncated` when a frame is open. */
  end(): FrameFault | undefined {
    const open = this.#openSinceMs !== undefined && !this.#faulted;
    this.#fail('truncated');
    return open ? 'truncated' : undefined;
  }

  #takePrefix(bytes: Uint8Array): Uint8Array {
    const taken = Math.min(bytes.length, LENGTH_BYTES - this.#prefixBytes);
    this.#prefix.set(bytes.subarray(0, taken), this.#prefixBytes);
    this.#prefixBytes += taken;
    return bytes.subarray(taken);
  }

  /** Decided on the length alone, before any of the body is kept. */
  #lengthFault(): FrameFault | undefined {
    if (this.#prefixBytes < LENGTH_BYTES) return undefined;
    this.#length = this.#prefix.readUInt32BE(0);
    if (this.#length > this.#maxFrameBytes) return 'too-large';
    return this.#length === 0 ? 'empty' : undefined;
  }

  /** The whole body when these bytes complete it. Copies each byte a bounded number of times. */
  #takeBody(bytes: Uint8Array): Uint8Array | undefined {
    if (this.#bodyBytes === 0 && bytes.length === this.#length) return bytes;
    const needed = this.#bodyBytes + bytes.length;
    const body = this.#roomFor(needed);
    body.set(bytes, this.#bodyBytes);
    this.#body = body;
    this.#bodyBytes = needed;
    return needed === this.#length ? body.subarray(0, needed) : undefined;
  }

  #roomFor(needed: number): Buffer {
    const body = this.#body;
    if (body && body.length >= needed) return body;
    const doubled = Math.max(needed, (body?.length ?? 0) * 2, FIRST_BODY_BYTES);
    const next = Buffer.allocUnsafeSlow(Math.min(this.#length, doubled));
    if (body) next.set(body.subarray(0, this.#bodyBytes));
    return next;
  }

  #read(body: Uint8Array): Frame {
    let text: string;
    try {
      text = UTF8.decode(body);
    } catch {
      return { ok: false, fault: 'not-utf8' };
    }
    let value: unknown;
    try {
      value = this.#parse(text);
    } catch {
      return { ok: false, fault: 'not-json' };
    }
    if (!isObject(value)) return { ok: false, fault: 'not-object' };
    const isTaken = isShallow(value) || this.#cut(value);
    return isTaken ? { ok: true, value } : { ok: false, fault: 'too-deep' };
  }

  #next(): void {
    this.#prefixBytes = 0;
    this.#length = 0;
    this.#body = undefined;
    this.#bodyBytes = 0;
    this.#openSinceMs = undefined;
  }

  #fail(fault: FrameFault): Frame {
    this.#faulted = true;
    this.#next();
    return { ok: false, fault };
  }
}

// A byte order mark is kept, so that it is no JSON: the length counts JSON alone.
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function isObject(value: unknown): value is FrameValue {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether it has at most so many levels of objects and lists. By a stack of its own, not recursion. */
export function isShallow(value: FrameValue, most = MAX_FRAME_DEPTH): boolean {
  let level: object[] = [value];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > most) return false;
    const below: object[] = [];
    for (const one of level) {
      for (const inner of Object.values(one))
        if (typeof inner === 'object' && inner !== null) below.push(inner as object);
    }
    level = below;
  }
  return true;
}
