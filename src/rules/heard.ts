// What a run heard of its questions, in order and each answer once (architecture §6): what people sent it, the answer of an
// overlay, and what it took from the record that it goes by. A branch is given it by its places.
import { actionIn } from './gate-actions.ts';
import { isJsonObject, type JsonValue } from './json.ts';
import { MESSAGES, withKept, type Kept, type ResolveInterruptMessage } from './messages.ts';
import { goesByOther, mergedOverlay, type Overlay } from './overlay.ts';
import type { Batch, Stimulus } from './recording.ts';
import type { Subject } from './subject.ts';

/** A type, not an interface: it is JSON. */
export type RecordedAnswer = { readonly value: JsonValue; readonly resolvedBy: Subject };

export interface Heard extends RecordedAnswer {
  readonly interruptId: string;
  /** From 1, among all that were heard of the question. */
  readonly place: number;
  /** What brought it; absent: the answer of an overlay. */
  readonly stimulus?: Stimulus;
  /** Its place among the answers that a step has read in a record, from 0. */
  readonly index?: number;
}

/**
 * What a run takes of the answers that its record has for a question. A word that has a call performed which may have been made
 * before is none of it (`mayRepeat`), unless tools go by a record, too: from there on people are asked.
 */
export function answersLeft(
  answers: readonly RecordedAnswer[],
  {
    heardBefore,
    mayRepeat,
    overlay,
  }: {
    readonly heardBefore: number;
    readonly mayRepeat: boolean | undefined;
    readonly overlay: Pick<Overlay, 'recordedTools'>;
  },
): readonly RecordedAnswer[] {
  const left = answers.slice(heardBefore);
  if (!mayRepeat || overlay.recordedTools) return left;
  const at = left.findIndex(({ value }) => actionIn(value) === 'accept');
  return at < 0 ? left : left.slice(0, at);
}

export function answersHeard(batches: readonly Batch[]): Heard[] {
  const answers = new HeardAnswers();
  for (const batch of batches) answers.read(batch);
  return answers.heard;
}

class HeardAnswers {
  readonly heard: Heard[] = [];
  readonly #counts = new Map<string, number>();
  /** By question: how many answers of the record that the run goes by it has heard, also while they were the run's own. */
  #ofRecord = new Map<string, number>();
  #overlay: Overlay | undefined;
  #timesLeft = 0;
  #kept: readonly Kept[] = [];

  read({ atMs, leaves, stimuli }: Batch): void {
    if (leaves) this.#leave(leaves);
    for (const stimulus of stimuli) {
      if (stimulus.kind === 'message' && !this.#isRepeat(stimulus, atMs))
        this.#hear(stimulus.message, { stimulus });
      if (stimulus.kind === 'step') this.#take(stimulus);
    }
  }

  /**
   * As workflows/fork.ts leaves its source. An overlay's answer takes the place of one that the source heard, but of none in a
   * record that the fork went by before: that gives its next one still, where the question is open.
   */
  #leave({ inherited, overlay }: NonNullable<Batch['leaves']>): void {
    this.#timesLeft++;
    if (overlay?.answer?.kind === 'message') this.#hear(overlay.answer.message);
    const now = mergedOverlay(mergedOverlay(this.#overlay, inherited), overlay);
    if (goesByOther(this.#overlay, now)) this.#ofRecord = new Map(this.#counts);
    this.#overlay = now;
  }

  /**
   * As workflows/messages.ts knows a repeat, which a server does not in another segment. After a fork has left its source, an id
   * that the source also received names another message.
   */
  #isRepeat({ update, updateId: id }: Extract<Stimulus, { kind: 'message' }>, atMs: number) {
    const updateId = `${this.#timesLeft}:${id}`;
    if (this.#kept.some((known) => known.updateId === updateId)) return true;
    // No outcome of it is kept (workflows/messages.ts).
    if (update !== MESSAGES['keep-time'].update)
      this.#kept = withKept(this.#kept, { updateId, atMs });
    return false;
  }

  /** All answers of a record, of which the run may have heard the first while it played it. */
  #take(stimulus: Extract<Stimulus, { kind: 'step' }>): void {
    const { outcome } = stimulus;
    if (!this.#overlay?.recordedAnswers) return;
    if (outcome.kind !== 'completed' || !isJsonObject(outcome.result.output)) return;
    const { interruptId, answers, mayRepeat } = outcome.result.output;
    if (typeof interruptId !== 'string' || !Array.isArray(answers)) return;
    const heardBefore = this.#ofRecord.get(interruptId) ?? 0;
    const asked = { heardBefore, mayRepeat: mayRepeat === true, overlay: this.#overlay };
    const left = answersLeft(answers as unknown as readonly RecordedAnswer[], asked);
    this.#ofRecord.set(interruptId, heardBefore + left.length);
    for (const [at, answer] of left.entries())
      this.#hear({ ...answer, interruptId }, { stimulus, index: heardBefore + at });
  }

  #hear(message: unknown, by: Pick<Heard, 'stimulus' | 'index'> = {}): void {
    const { interruptId, value, resolvedBy } = message as Partial<ResolveInterruptMessage>;
    if (interruptId === undefined || value === undefined || resolvedBy === undefined) return;
    const place = (this.#counts.get(interruptId) ?? 0) + 1;
    this.#counts.set(interruptId, place);
    this.heard.push({ interruptId, value, resolvedBy, place, ...by });
  }
}
