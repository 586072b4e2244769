// How often a wrong key may be tried in the form (architecture §10): per client's address and in all, within a window that
// moves on. An attempt counts from its begin, so that attempts at once cannot pass the limit; a right key takes its own
// back. The table is bounded by the limit in all.

/** Wrong keys within the window. */
const PER_ADDRESS = 10;
const IN_ALL = 100;
const WINDOW_MS = 15 * 60_000;

export type Begun =
  | {
      readonly kind: 'counted';
      /** It was the right key. */
      takeBack(): void;
    }
  | { readonly kind: 'refused'; readonly retryAfterMs: number };

export interface SignInAttempts {
  /** `atMs` of a clock that never goes back. */
  begin(address: string, atMs: number): Begun;
}

export function createSignInAttempts(): SignInAttempts {
  /** Ascending. */
  let counted: { readonly address: string; readonly endsAtMs: number }[] = [];
  return {
    begin(address, atMs) {
      counted = counted.filter(({ endsAtMs }) => endsAtMs > atMs);
      const own = counted.filter((each) => each.address === address);
      const full = own.length >= PER_ADDRESS ? own : counted.length >= IN_ALL ? counted : [];
      const [oldest] = full;
      if (oldest) return { kind: 'refused', retryAfterMs: oldest.endsAtMs - atMs };
      const attempt = { address, endsAtMs: atMs + WINDOW_MS };
      counted.push(attempt);
      return {
        kind: 'counted',
        takeBack() {
          counted = counted.filter((each) => each !== attempt);
        },
      };
    },
  };
}
