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

/** Of an effect that is claimed or in doubt. */
export interface OpenEffect {
  readonly effectId: string;
  readonly epoch: number;
  /** A doubt about it goes to a human: its tool has effects, or had them at a former sending that is in doubt. */
  readonly isAsked: boolean;
  /** A sending under another key may have happened: its tool cannot say that it did not. */
  readonly isForeign: boolean;
}

export type EffectClaim =
  /** Perform it under this epoch. */
  | (OpenEffect & {
      readonly kind: 'perform';
      /** A former sending may have happened: no failure of this one says that it did not, also after a human's word. */
      readonly inDoubt: boolean;
    })
  | { readonly kind: 'done'; readonly effectId: string; readonly outcomeHash: string }
  | { readonly kind: 'failed'; readonly effectId: string; readonly outcomeHash: string }
  /** Claimed, lease still running elsewhere, or a call is under way at another node or visit: try again at that time. */
  | { readonly kind: 'busy'; readonly effectId: string; readonly leaseUntilMs: number }
  /** The lease ran out without a word: it may have happened. A human's word about it names its epoch. */
  | (OpenEffect & { readonly kind: 'in-doubt' })
  /** It matches no row, and a human must know which calls stand in its way. */
  | {
      readonly kind: 'differs';
      readonly effectId: string;
      /** What is certain comes first, then the oldest; only so many as a human reads. */
      readonly earlier: readonly EarlierCall[];
      /** There are others, which are asked about after these. */
      readonly isMore: boolean;
    }
  | { readonly kind: 'run-closed' };

/**
 * Why a call stands in the way of another one: the same call happened in this visit and its result could not be used
 * (`result`), it is in doubt in this visit or was left elsewhere (`doubt`), or it is one of an earlier attempt of this visit
 * that is done or may be (`attempt`).
 */
export type StandingReason = 'result' | 'doubt' | 'attempt';

/** A call that stands in the way of another one, as a human is shown it. */
export interface ShownCall {
  readonly effectId: string;
  /** Of its row. Of a claim whose lease is over: of the doubt that comes of it. */
  readonly epoch: number;
  readonly why: StandingReason;
}

export interface EarlierCall extends ShownCall {
  readonly runId: string;
  readonly nodeId: string;
}

/**
 * A human's answer to a doubt: the doubt with this `epoch`, or one about a call without a row. It holds for one claim, which
 * raises the epoch above it. `shown`: the earlier calls that the human was shown. Any other one is asked about first, and so
 * is one of these of which something else is known by then. About another call nobody is asked for the sake of the doubts among
 * them. `settles`: the answer is an outcome; nothing is performed, whatever was claimed meanwhile.
 */
export type HumanWord =
  'settles' | { readonly epoch?: number; readonly shown?: readonly ShownCall[] };

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
export interface LostEffect
  extends Omit<FormerEffect, 'state'>, Pick<OpenEffect, 'epoch' | 'isAsked' | 'isForeign'> {
  readonly state: EffectState;
  /** Of the claim. */
  readonly idempotent: boolean;
  /** While its call is under way. */
  readonly leaseMs?: number;
}

export interface ClaimOptions {
  /** Of the tool, now: a call in doubt is made again under its key, if it was idempotent when it was made, too. */
  readonly idempotent: boolean;
  /** A call under another key changes nothing: nothing stands in its way, and nobody is asked about a doubt. */
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
  /**
   * Notes them as if the fork had performed them itself. What the ledger knows already stands; what it knows only by a word of
   * this kind from a run above the fork is the fork's own from then on. Nothing of a run that is not there.
   */
  inherit(effects: readonly FormerEffect[]): Promise<void>;
  /** Atomic claim, or the state that stands in its way. Throws HostError run_not_found. */
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
