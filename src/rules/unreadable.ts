// What a list says of a row that cannot be read: why, in the place of what stands in it. The other rows of the list have
// nothing to do with it.
import { codeOf, HostError, type ErrorCode } from './errors.ts';
import { isTime } from './forms.ts';

/** What is damaged, or needs a key that this process does not have; another process may have it. */
export interface Unreadable {
  readonly code: ErrorCode;
  /** Which key it lacks, or where it stands: names alone, nothing that is kept there. */
  readonly message: string;
}

export function isUnreadable(code: ErrorCode): boolean {
  return code === 'history_undecodable' || code === 'key_unavailable';
}

/** Undefined: what was thrown is no fault of the row that was read. */
export function unreadableFor(error: unknown): Unreadable | undefined {
  const code = codeOf(error);
  return code !== undefined && isUnreadable(code)
    ? { code, message: (error as Error).message }
    : undefined;
}

/** What is read of a row; else `instead`, with why. Throws what is no fault of the row. */
export function toldOr<Told extends object>(
  instead: Told,
  read: () => Told,
): Told & { readonly unreadable?: Unreadable } {
  try {
    return read();
  } catch (error) {
    const unreadable = unreadableFor(error);
    if (!unreadable) throw error;
    return { ...instead, unreadable };
  }
}

/** For `catch`: nothing in the place of what cannot be read. Throws what is no fault of the row. */
export function nothingOf(error: unknown): undefined {
  if (!unreadableFor(error)) throw error;
}

/** `ms`: epoch. ISO 8601, in UTC. Throws HostError history_undecodable: what is stored is no time that a date can tell. */
export function iso(ms: number): string {
  if (isTime(ms)) return new Date(ms).toISOString();
  throw new HostError('history_undecodable', { reason: 'A time that is stored is none.' });
}

/** When an event was (`ms`: epoch), in ISO 8601, in UTC; the epoch, with why, in the place of what is no time. */
export function shownTime(ms: number): {
  readonly timestamp: string;
  readonly unreadable?: Unreadable;
} {
  return toldOr({ timestamp: iso(0) }, () => ({ timestamp: iso(ms) }));
}
