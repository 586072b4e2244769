// Rounds in which a part of the host is away (architecture §4.1), drawn by seed: which part, whether it is gone or stands still,
// when, and for how long; and what is under way meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Proxy } from './proxy.ts';
import { seededRandom, type Random } from './random.ts';
import { momentOf, peopleOf, type Plan } from './round.ts';
import type { FaultSystem, Half } from './system.ts';

const PARTS = ['postgres', 'temporal', 'worker', 'workers', 'facade'] as const;
/** Gone: killed, or not reached. Silent: it stands still, and its connections stay. */
const WAYS = ['gone', 'silent'] as const;
/** What is under way beside the runs that pay. */
const WORK = ['speech', 'family', 'fork', 'erasure'] as const;
/** A subject is erased at some time while its run is under way, in ms after its start. */
const ERASED_MS = 2_500;
const LEAST_SECONDS = 1;

export type Work = (typeof WORK)[number];

export interface Absence {
  readonly part: (typeof PARTS)[number];
  readonly way: (typeof WAYS)[number];
  readonly seconds: number;
  /** An effect at whose moment it begins has its answer when the part is back, and not while it is away. */
  readonly isHeld: boolean;
}

export interface AwayPlan extends Plan<Absence> {
  readonly work: readonly Work[];
  readonly erasedAfterMs: number;
  /** The event of its source that the fork begins at, as a share of all. */
  readonly forkedAt: number;
}

/** Every length is as likely as its double. */
function secondsOf(random: Random, mostSeconds: number): number {
  const share = random.below(1_000) / 1_000;
  return LEAST_SECONDS * Math.exp(share * Math.log(mostSeconds / LEAST_SECONDS));
}

function planOf(seed: number, mostSeconds: number): AwayPlan {
  const random = seededRandom(seed);
  const absence = {
    part: random.pick(PARTS),
    way: random.pick(WAYS),
    seconds: secondsOf(random, mostSeconds),
    isHeld: random.chance(0.3),
    moment: momentOf(random),
  };
  const people = peopleOf(seed, random);
  return {
    seed,
    crashes: [absence],
    ...people,
    work: WORK.filter(() => random.chance(0.6)),
    erasedAfterMs: random.below(ERASED_MS),
    forkedAt: random.below(1_000) / 1_000,
  };
}

/** Rounds of following seeds. */
export function awayPlans(
  firstSeed: number,
  { rounds, mostSeconds }: { rounds: number; mostSeconds: number },
): readonly AwayPlan[] {
  return Array.from({ length: rounds }, (_, index) => planOf(firstSeed + index, mostSeconds));
}

export interface AwayParts {
  readonly system: FaultSystem;
  readonly facade: Half;
  readonly workers: readonly [Half, ...Half[]];
  /** The only way of the halves to Temporal. */
  readonly temporal: Proxy;
}

interface Turn {
  begin(): Promise<unknown> | void;
  end(): Promise<unknown> | void;
}

const signal = (pid: number | undefined, name: NodeJS.Signals): void => {
  if (pid === undefined) throw new Error('the part does not run');
  process.kill(pid, name);
};

function ofHalves(halves: readonly Half[], way: Absence['way']): Turn {
  if (way === 'gone')
    return {
      begin: () => Promise.all(halves.map((half) => half.kill())),
      end: () => Promise.all(halves.map((half) => half.restart())),
    };
  const each = (name: NodeJS.Signals) => {
    for (const half of halves) signal(half.process().pid, name);
  };
  return { begin: () => each('SIGSTOP'), end: () => each('SIGCONT') };
}

function turnOf({ part, way }: Absence, parts: AwayParts): Turn {
  const { postgres, temporal } = parts.system;
  const isGone = way === 'gone';
  switch (part) {
    case 'postgres':
      return isGone
        ? { begin: () => postgres.kill(), end: () => postgres.restart() }
        : { begin: () => postgres.freeze(), end: () => postgres.thaw() };
    case 'temporal':
      return isGone
        ? { begin: () => parts.temporal.cut(), end: () => parts.temporal.mend() }
        : {
            begin: () => signal(temporal.pid(), 'SIGSTOP'),
            end: () => signal(temporal.pid(), 'SIGCONT'),
          };
    case 'worker':
      return ofHalves([parts.workers[0]], way);
    case 'workers':
      return ofHalves(parts.workers, way);
    case 'facade':
      return ofHalves([parts.facade], way);
  }
}

export interface Absences {
  /** Resolves when the part is away, or back where the absence is held. Throws where it cannot be taken or brought back. */
  take(absence: Absence): Promise<void>;
  /** Resolves when all parts are back; throws as `take`. */
  allBack(): Promise<void>;
}

/** Absences follow each other, whoever asks for them. */
export function absencesOf(parts: AwayParts): Absences {
  let last: Promise<void> = Promise.resolve();
  return {
    async take(absence) {
      const turn = turnOf(absence, parts);
      const away = last.then(() => turn.begin());
      last = away.then(async () => {
        await sleep(absence.seconds * 1_000);
        await turn.end();
      });
      // It is told to those who wait for it.
      last.catch(() => undefined);
      await away;
      if (absence.isHeld) await last;
    },
    allBack: () => last,
  };
}
