// A time as answers tell it.
import { HostError } from '../rules/errors.ts';

/** `ms`: epoch. ISO 8601, in UTC. Throws HostError history_undecodable: what is stored is no time that a date can tell. */
export function iso(ms: number): string {
  const date = new Date(ms);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  throw new HostError('history_undecodable', { reason: 'A time that is stored is none.' });
}
