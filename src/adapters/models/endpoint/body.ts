// Bodies of answers, within bounds: an endpoint cannot fill this process's memory, not even with one endless line. What
// refuses a request has little time and room to say why.
import type { Response } from 'undici';
import { HostError } from '../../../rules/errors.ts';
import {
  MODEL_DRAIN_LIMIT_MS,
  MODEL_REFUSAL_BYTES,
  MODEL_REFUSAL_LIMIT_MS,
  MODEL_RESPONSE_BYTES,
} from '../limits.ts';

type Body = NonNullable<Response['body']>;
type BodyReader = ReadableStreamDefaultReader<Uint8Array>;

function readerOf(body: Body): BodyReader {
  return body.getReader() as BodyReader;
}

interface ReadOptions {
  /** Called after each piece, unless it was enough. */
  readonly onBytes?: () => void;
  /** MODEL_RESPONSE_BYTES when absent. */
  readonly mostBytes?: number | undefined;
}

/**
 * Gives `use` the text of a body as it arrives, until the body ends or `use` has enough. Throws HostError
 * model_output_too_large above the most bytes, and what the connection fails with.
 */
export async function readText(
  body: Body,
  use: (text: string) => 'more' | 'enough',
  { onBytes, mostBytes = MODEL_RESPONSE_BYTES }: ReadOptions = {},
): Promise<void> {
  const reader = readerOf(body);
  const decoder = new TextDecoder();
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return void use(decoder.decode());
      bytes += value.byteLength;
      if (bytes > mostBytes) throw new HostError('model_output_too_large');
      if (use(decoder.decode(value, { stream: true })) === 'enough') return void drain(reader);
      onBytes?.();
    }
  } catch (error) {
    // Whatever is not read on to its end holds its connection until it is cancelled.
    void reader.cancel().catch(() => {});
    throw error;
  }
}

/** A connection whose answer ends serves the next request; one that stays open is given up. */
async function drain(reader: BodyReader): Promise<void> {
  const limit = setTimeout(() => void reader.cancel().catch(() => {}), MODEL_DRAIN_LIMIT_MS);
  limit.unref();
  try {
    while (!(await reader.read()).done);
  } catch {
    // Nothing more was expected of it.
  } finally {
    clearTimeout(limit);
  }
}

/** What arrives of a body within the limits of a refusal; the rest is not waited for. */
export async function beginningOf(body: Body | null): Promise<string> {
  if (!body) return '';
  const reader = readerOf(body);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  const limit = setTimeout(() => void reader.cancel().catch(() => {}), MODEL_REFUSAL_LIMIT_MS);
  try {
    while (bytes < MODEL_REFUSAL_BYTES) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.byteLength;
      pieces.push(value);
    }
  } catch {
    // What arrived is said, however it ended.
  } finally {
    clearTimeout(limit);
    await reader.cancel().catch(() => {});
  }
  return Buffer.concat(pieces).toString();
}
