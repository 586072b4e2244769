// `fetch` whose response body ends with an error above a size: a provider cannot fill this process's memory, not even
// with one endless line.
import { HostError } from '../../rules/errors.ts';
import { MODEL_RESPONSE_BYTES } from './limits.ts';

/** `onBytes` is called for each piece of the body. */
export async function boundedFetch(
  url: string | URL | Request,
  init?: RequestInit,
  onBytes?: () => void,
): Promise<Response> {
  const response = await fetch(url, init);
  if (!response.body) return response;
  let bytes = 0;
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      bytes += chunk.byteLength;
      onBytes?.();
      if (bytes > MODEL_RESPONSE_BYTES) controller.error(new HostError('model_output_too_large'));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(bound), { status, statusText, headers });
}
