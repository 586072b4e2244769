// What `upgrade-check` is asked to look at, by its flags (docs/upgrades.md).
import { isBuildId } from '../rules/builds.ts';

/** Runs that have ended, where nobody says how many. */
const ENDED = 50;

export interface Asked {
  readonly ended: number;
  /** Open runs of this build alone. */
  readonly build?: string;
}

/** Of one build nobody asks for what has ended, unless it is said. Throws at a flag that it does not know. */
export function askedOf(args: readonly string[]): Asked {
  let asked: { ended?: number; build?: string } = {};
  for (let at = 0; at < args.length; at += 2) {
    const [flag, value = ''] = args.slice(at, at + 2);
    if (flag === '--ended' && /^\d{1,6}$/.test(value)) asked = { ...asked, ended: Number(value) };
    else if (flag === '--build' && isBuildId(value)) asked = { ...asked, build: value };
    else
      throw new Error(
        'upgrade-check takes --ended N, how many runs that have ended it looks at, and --build ID, whose open runs, alone',
      );
  }
  return { ended: asked.build === undefined ? ENDED : 0, ...asked };
}
