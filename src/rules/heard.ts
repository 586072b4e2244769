// What a run heard of its questions, in order and each answer once (architecture §6): what people sent it, the answer of an
// overlay, and what it took from the record that it goes by. A branch is given it by its places.
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
}

export function answersHeard(batches: readonly Batch[]): Heard[] {
  const answers = new HeardAnswers();
  for (const batch of batches) answers.read(batch);
  return answers.heard;
}

class HeardAnswers {
  readonly heard: Heard[] = [];
  readonly #counts = new Map<string, number>();
  /** By question: answers of the record that the run goes by, heard while it was the run's own. */
  #ofRecord: ReadonlyMap<string, number> = new Map();
  #overlay: Overlay | undefined;
  #timesLeft = 0;
  #kept: readonly Kept[] = [];

  read({ atMs, leaves, stimuli }: Batch): void {
    if (leaves) this.#leave(leaves);
    for (const stimulus of stimuli) {
      if (stimulus.kind === 'message' && !this.#isRepeat(stimulus, atMs))
        this.#hear(stimulus.message, stimulus);
      if (stimulus.kind === 'step') this.#take(stimulus);
    }
  }

  /** As workflows/fork.ts leaves its source. */
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
    const { interruptId, answers } = outcome.result.output;
    if (typeof interruptId !== 'string' || !Array.isArray(answers)) return;
    for (const answer of answers.slice(this.#ofRecord.get(interruptId) ?? 0))
      this.#hear({ ...(answer as RecordedAnswer), interruptId }, stimulus);
  }

  #hear(message: unknown, stimulus?: Stimulus): void {
    const { interruptId, value, resolvedBy } = message as Partial<ResolveInterruptMessage>;
    if (interruptId === undefined || value === undefined || resolvedBy === undefined) return;
    const place = (this.#counts.get(interruptId) ?? 0) + 1;
    this.#counts.set(interruptId, place);
    const by = stimulus ? { stimulus } : {};
    this.heard.push({ interruptId, value, resolvedBy, place, ...by });
  }
}
