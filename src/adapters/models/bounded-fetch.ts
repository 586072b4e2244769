// `fetch` whose response body ends with an error above a size: a provider cannot fill this process's memory, not even
// with one endless line. What refuses a request has little time and room to say why, and where it points to is not asked:
// key and conversation go to the endpoint that was named.
import { HostError } from '../../rules/errors.ts';
import { MODEL_REFUSAL_BYTES, MODEL_REFUSAL_LIMIT_MS, MODEL_RESPONSE_BYTES } from './limits.ts';

/** `onBytes` is called for each piece of the body. */
export async function boundedFetch(
  url: string | URL | Request,
  init?: RequestInit,
  onBytes?: () => void,
): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  if (!response.body) return response;
  if (!response.ok) return new Response(await beginningOf(response.body), headOf(response));
  let bytes = 0;
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      bytes += chunk.byteLength;
      onBytes?.();
      if (bytes > MODEL_RESPONSE_BYTES) controller.error(new HostError('model_output_too_large'));
      else controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(bound), headOf(response));
}

function headOf({ status, statusText, headers }: Response): ResponseInit {
  return { status, statusText, headers };
}

/** What arrives within the limits of a refusal; the rest is not waited for. */
async function beginningOf(body: ReadableStream<Uint8Array>): Promise<Buffer> {
  const reader = body.getReader();
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
  } finally {
    clearTimeout(limit);
    await reader.cancel().catch(() => {});
  }
  return Buffer.concat(pieces);
}
