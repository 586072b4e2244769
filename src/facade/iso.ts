// A time as answers tell it.

/** `ms`: epoch. ISO 8601, in UTC. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
