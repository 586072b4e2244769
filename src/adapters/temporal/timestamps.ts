// Times as the server gives them.

/** ms epoch; undefined: there is none. */
export function toMs(
  time: { readonly seconds?: unknown; readonly nanos?: number | null } | null | undefined,
): number | undefined {
  const seconds = Number(time?.seconds ?? 0);
  return seconds === 0 ? undefined : seconds * 1000 + Math.floor((time?.nanos ?? 0) / 1_000_000);
}
