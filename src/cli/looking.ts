// What a command waits for that the host does: it looks again and again, over restarts of the host.
import { BackOff, Deadline, rest } from '../system/time.ts';
import type { Cli } from './cli.ts';
import { CliFault } from './faults.ts';

/** ms between two looks. */
const FIRST_LOOK_MS = 200;
const LONGEST_LOOK_MS = 2_000;
/** A host that is away for longer than this (ms) is not waited for. */
const OUTAGE_LIMIT_MS = 10 * 60_000;
/** Refusals that pass. */
const PASSING: ReadonlySet<string> = new Set(['service_unavailable', 'rate_limited']);

/** What `look` gives, as soon as it gives something. Throws what it throws, but for what passes. */
export async function lookUntil<Seen>(
  { signal }: Pick<Cli, 'signal'>,
  look: () => Promise<Seen | undefined>,
): Promise<Seen> {
  const pauses = new BackOff(FIRST_LOOK_MS, LONGEST_LOOK_MS);
  let away = new Deadline(OUTAGE_LIMIT_MS);
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined) return seen;
      away = new Deadline(OUTAGE_LIMIT_MS);
    } catch (error) {
      const passes = error instanceof CliFault && (error.facts.isLost || PASSING.has(error.code));
      if (!passes || away.isOver()) throw error;
    }
    await rest(pauses.next(), signal);
  }
}
