// How many wrong keys were sent (architecture §10), in the sign-in form or as a bearer: per client's address and in all,
// within a window that moves on. Beyond a limit a wrong key is refused in other words, and the operator's log says so. A right
// key is compared first and never refused: a stranger behind the same proxy could lock everybody out. What keeps a key from
// being guessed is its length.
import { isIP } from 'node:net';
import type { Logger } from '../ports/logger.ts';

/** Wrong keys of one address within the window: by a person in the form, and by a client that knows no better. */
export const WRONG_IN_FORM = 10;
export const WRONG_AS_BEARER = 1_000;
/** Of all addresses: the table is bounded by it. */
const IN_ALL = 10_000;
const WINDOW_MS = 15 * 60_000;

export interface WrongKeys {
  /**
   * Counts a wrong key. Gives the time in ms until it would be counted again where `limit` of its address, or all that are
   * counted, have been sent within the window; such a one is not counted. `atMs` of a clock that never goes back.
   */
  count(ip: string | undefined, limit: number, atMs: number): number | undefined;
}

interface Counted {
  readonly address: string;
  /** When each stops to count, ascending. */
  readonly endsMs: number[];
  /** The log has been told of this address. */
  quietUntilMs: number;
}

export function createWrongKeys(logger: Logger): WrongKeys {
  /** Ascending. */
  const all: { readonly by: Counted; readonly endsAtMs: number }[] = [];
  const byAddress = new Map<string, Counted>();
  let quietUntilMs = 0;

  function forget(atMs: number): void {
    for (let [first] = all; first && first.endsAtMs <= atMs; [first] = all) {
      all.shift();
      first.by.endsMs.shift();
      if (first.by.endsMs.length === 0) byAddress.delete(first.by.address);
    }
  }

  function warn(by: Counted, limit: number, atMs: number): void {
    const isMany = by.endsMs.length >= limit && by.quietUntilMs <= atMs;
    const isManyInAll = all.length >= IN_ALL && quietUntilMs <= atMs;
    if (!isMany && !isManyInAll) return;
    by.quietUntilMs = atMs + WINDOW_MS;
    if (isManyInAll) quietUntilMs = atMs + WINDOW_MS;
    logger.warn('many wrong keys', {
      ...{ address: by.address, count: by.endsMs.length, inAll: all.length },
    });
  }

  return {
    count(ip, limit, atMs) {
      forget(atMs);
      const address = keyOf(ip);
      const by = byAddress.get(address) ?? { address, endsMs: [], quietUntilMs: 0 };
      const endsAtMs = by.endsMs.at(-limit) ?? (all.length < IN_ALL ? undefined : all[0]?.endsAtMs);
      if (endsAtMs !== undefined) {
        warn(by, limit, atMs);
        return endsAtMs - atMs;
      }
      all.push({ by, endsAtMs: atMs + WINDOW_MS });
      by.endsMs.push(atMs + WINDOW_MS);
      byAddress.set(address, by);
      warn(by, limit, atMs);
      return undefined;
    },
  };
}

/** A text of its own: a piece of a header would keep all of it in memory. What is no address counts as one. */
function keyOf(ip = ''): string {
  return isIP(ip) === 0 ? 'unknown' : Buffer.from(ip, 'latin1').toString('latin1');
}
