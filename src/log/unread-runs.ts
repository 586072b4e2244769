// Since when this process cannot read open runs of an erasure (architecture §10.1): one failed read ends no run that may end
// in order, so the time counts from the first of the rounds, one after the other, in which it could not be read.
import { Recent } from '../system/recent.ts';
import { Deadline } from '../system/time.ts';

/** Erasures whose runs are remembered. */
const MAX_ERASURES = 1_000;
/** Runs that are remembered of one; others have their turn once these have ended. */
const MAX_RUNS = 1_000;

export interface UnreadRound {
  /** The run cannot be read in this round. True: nor could it in any round for so long, of which there were enough. */
  isLate(runId: string, unreadMs: number): boolean;
  /** Each open run was looked at: those that were read are forgotten. A round that was cut is not ended, and changes nothing. */
  end(): void;
}

interface Unread {
  readonly deadline: Deadline;
  /** In which it could not be read. */
  readonly rounds: number;
}

export class UnreadRuns {
  readonly #erasures = new Recent<string, ReadonlyMap<string, Unread>>(MAX_ERASURES);
  readonly #minRounds: number;

  /** `minRounds`: time alone passes also where no round is made, as while the database is away. */
  constructor(minRounds = 1) {
    this.#minRounds = minRounds;
  }

  round(erasureId: string): UnreadRound {
    const before = this.#erasures.get(erasureId) ?? new Map<string, Unread>();
    const now = new Map<string, Unread>();
    return {
      isLate: (runId, unreadMs) => {
        const { deadline = new Deadline(unreadMs), rounds = 0 } = before.get(runId) ?? {};
        if (now.size < MAX_RUNS) now.set(runId, { deadline, rounds: rounds + 1 });
        return deadline.isOver() && rounds + 1 >= this.#minRounds;
      },
      end: () => {
        if (now.size > 0) this.#erasures.set(erasureId, now);
        else this.#erasures.delete(erasureId);
      },
    };
  }

  /** None of its runs is open any more. */
  forget(erasureId: string): void {
    this.#erasures.delete(erasureId);
  }
}
