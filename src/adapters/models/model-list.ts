// The list of models that an endpoint gives when it is asked whether it answers.
import type { EndpointState } from '../../ports/models.ts';
import { Refusal } from './endpoint/refusal.ts';

/** Ids. Some endpoints give the list itself, and not an object around it. */
export function listedModels(body: unknown): string[] {
  const rows = Array.isArray(body) ? body : (body as { data?: unknown } | null)?.data;
  if (!Array.isArray(rows)) return [];
  return rows.flatMap((row: { id?: unknown } | null) =>
    typeof row?.id === 'string' ? [row.id] : [],
  );
}

/** What an endpoint is that gave no list. */
export function stateAfter(error: unknown): EndpointState {
  if (!(error instanceof Refusal)) return { kind: 'silent' };
  const { status, words } = error.parts;
  return { kind: 'refuses', status, said: words.text };
}
