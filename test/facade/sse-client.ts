// A small reader of server-sent events for tests: frames as they came, byte for byte.
export interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

export interface SseAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly frames: readonly Frame[];
  readonly comments: readonly string[];
}

function parse(block: string): Frame | undefined {
  const fields: Record<string, string> = {};
  for (const line of block.split('\n')) {
    const match = /^(id|event|data): (.*)$/.exec(line);
    if (match?.[1]) fields[match[1]] = match[2] ?? '';
  }
  const { id, event, data } = fields;
  return data === undefined ? undefined : { id, event, data };
}

export interface SseRequest {
  readonly url: string;
  readonly headers?: Record<string, string>;
  /** Stops reading and disconnects after the frame for which it is true. */
  readonly until?: (frame: Frame) => boolean;
}

/** Reads until the server closes, or until `until`. */
export async function readSse({ url, headers = {}, until }: SseRequest): Promise<SseAnswer> {
  const stop = new AbortController();
  const response = await fetch(url, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: stop.signal,
  });
  const frames: Frame[] = [];
  const comments: string[] = [];
  if (!response.body) throw new Error('no body');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const blocks = (rest + chunk.value).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      if (block.startsWith(':')) comments.push(block);
      const frame = parse(block);
      if (!frame) continue;
      frames.push(frame);
      if (until?.(frame)) {
        stop.abort();
        return { status: response.status, headers: response.headers, frames, comments };
      }
    }
  }
  return { status: response.status, headers: response.headers, frames, comments };
}
