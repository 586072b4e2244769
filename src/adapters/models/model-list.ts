// The list of models that an endpoint gives when it is asked whether it answers.

/** Ids. Some endpoints give the list itself, and not an object around it. */
export function listedModels(body: unknown): string[] {
  const rows = Array.isArray(body) ? body : (body as { data?: unknown } | null)?.data;
  if (!Array.isArray(rows)) return [];
  return rows.flatMap((row: { id?: unknown } | null) =>
    typeof row?.id === 'string' ? [row.id] : [],
  );
}
