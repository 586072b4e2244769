// What a command asks of the host that it has started itself, by the API that everybody has.
import type { Host } from './host.ts';

/** Throws what the host answered when it was no success. */
export async function post<T>(
  host: Pick<Host, 'url' | 'apiKey'>,
  path: string,
  request: { readonly body: unknown; readonly idempotencyKey?: string },
): Promise<T> {
  const response = await fetch(`${host.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${host.apiKey}`,
      'content-type': 'application/json',
      ...(request.idempotencyKey && { 'idempotency-key': request.idempotencyKey }),
    },
    body: JSON.stringify(request.body),
  });
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
