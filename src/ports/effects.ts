// The ledger of effects (architecture §5): what was performed, and what nobody knows.
import type { RunRef } from './runs.ts';

/** Identity of an effect (architecture §5): what it is, not which try performs it. */
export interface EffectIdentity {
  readonly tenant: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly visit: number;
  readonly toolId: string;
  readonly argsHash: string;
  readonly occurrence: number;
  /** Root of the run's family, and the run's series (seriesOf): both are the run itself where it is no child. */
  readonly rootRunId: string;
  readonly series: string;
}

export type EffectState =
  | 'claimed'
  | 'done'
  /** It happened, and what came of it cannot be used: the outcome is an error. */
  | 'done-without-result'
  | 'failed-before-send'
  /** The other side said that it did not happen. */
  | 'failed-final'
  | 'in-doubt';

/** States whose outcome is {code, message}. */
export type FailedState = Extract<EffectState, 'done-without-result' | 'failed-final'>;

export interface EffectRow {
  readonly effectId: string;
  readonly identity: EffectIdentity;
  /** Node attempt that claimed last. */
  readonly attempt: number;
  readonly state: EffectState;
  readonly epoch: number;
  readonly leaseUntilMs: number;
  /** Content hash of the outcome (done) or of {code, message} (FailedState). */
  readonly outcomeHash?: string;
}

export type EffectClaim =
  /** Perform it under this epoch. */
  | {
      readonly kind: 'perform';
      readonly effectId: string;
      readonly epoch: number;
      /** A former sending may have happened: a failure of this one does not tell. A human's word has settled that. */
      readonly inDoubt: boolean;
    }
  | { readonly kind: 'done'; readonly effectId: string; readonly outcomeHash: string }
  | { readonly kind: 'failed'; readonly effectId: string; readonly outcomeHash: string }
  /** Claimed, lease still running elsewhere, or a call is under way at another node or visit: try again at that time. */
  | { readonly kind: 'busy'; readonly effectId: string; readonly leaseUntilMs: number }
  /** The lease ran out without a word: it may have happened. A human's word about it names its epoch. */
  | { readonly kind: 'in-doubt'; readonly effectId: string; readonly epoch: number }
  /**
   * It matches no row, and a human must know what stands: a call of the tool is in doubt in this visit, or
   * was left elsewhere (`doubt`), the same call happened in this visit and its result could not be used (`result`), or this
   * visit has a row of the tool from an earlier node attempt that is done or may be (`attempt`).
   */
  | {
      readonly kind: 'differs';
      readonly effectId: string;
      readonly why: 'doubt' | 'result' | 'attempt';
      /** The calls that stand in the way for this reason, oldest first; only so many as a human reads. */
      readonly earlier: readonly EarlierCall[];
      /** There are others, which are asked about at a later call. */
      readonly isMore: boolean;
    }
  | { readonly kind: 'run-closed' };

/** A call that stands in the way of another one. */
export interface EarlierCall {
  readonly effectId: string;
  readonly runId: string;
  readonly nodeId: string;
}

/**
 * A human's answer to a doubt: the doubt with this `epoch`, or one about a call without a row. It holds for one claim, which
 * raises the epoch above it. `doubts`: effect ids of the earlier calls in doubt that the human was shown; nobody is asked
 * about another call for their sake. `settles`: the answer is an outcome; nothing is performed, whatever was claimed meanwhile.
 */
export type HumanWord =
  'settles' | { readonly epoch?: number; readonly doubts?: readonly string[] };

/** What a former claim left, for who will not perform it. */
export type EffectRecall = Extract<EffectClaim, { kind: 'done' | 'failed' | 'busy' | 'in-doubt' }>;

/** What a call came to before a fork left its source, as the fork's log says. */
export interface FormerEffect {
  /** Of the fork. */
  readonly identity: EffectIdentity;
  /** Node attempt that called. */
  readonly attempt: number;
  readonly state: 'done' | FailedState | 'in-doubt';
  /** As of an EffectRow. */
  readonly outcomeHash?: string;
}

/** A claim whose row the database has lost, and what it came to. */
export interface LostEffect extends Omit<FormerEffect, 'state'> {
  readonly state: EffectState;
  /** Of the claim. */
  readonly idempotent: boolean;
  readonly epoch: number;
  /** While its call is under way. */
  readonly leaseMs?: number;
}

export interface ClaimOptions {
  /** Of the tool, now: a call in doubt is made again under its key, if it was idempotent when it was made, too. */
  readonly idempotent: boolean;
  /** A call under another key changes nothing: nothing stands in its way. */
  readonly isHarmless?: boolean;
  /**
   * A call of the tool was cut off in this run or in one above it, or left in doubt by a human: doubts of the tool in the family
   * stand in the way wherever they are.
   */
  readonly hasLeftCalls?: boolean;
  readonly leaseMs: number;
  readonly force?: HumanWord | undefined;
}

export interface EffectLedger {
  /** Notes them as if the fork had performed them itself. What the ledger knows already stands; nothing of a closed run. */
  inherit(effects: readonly FormerEffect[]): Promise<void>;
  /** Atomic claim, or the state that stands in its way. */
  claim(identity: EffectIdentity, attempt: number, options: ClaimOptions): Promise<EffectClaim>;
  /**
   * What became of an effect, without a claim: undefined when nothing was performed under this identity. A claim whose
   * lease is over is in doubt from then on, also of an idempotent tool.
   */
  recall(identity: EffectIdentity): Promise<EffectRecall | undefined>;
  renew(effectId: string, epoch: number, leaseMs: number): Promise<boolean>;
  /** False when the epoch was lost: the result must not be used. */
  settle(
    effectId: string,
    epoch: number,
    state: Exclude<EffectState, 'claimed'>,
    outcomeHash?: string,
  ): Promise<boolean>;
  /** After a `settle` or a `renew` that was false. True: no row stood by this identity, and now it does. Nothing of a closed run. */
  putBack(effect: LostEffect): Promise<boolean>;
  ofRun(run: RunRef): Promise<readonly EffectRow[]>;
}
