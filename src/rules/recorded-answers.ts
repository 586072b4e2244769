// What people answered in a run's record, for a fork that asks the same (replay.md §Modes). The same question stands at the
// same place and asks the same, whatever ids its run minted and whatever the time: what it asks otherwise is another one.
import { isJsonObject, canonicalJson, type JsonValue } from './json.ts';
import { withoutClocks } from './log-differences.ts';
import { MESSAGES, type ResolveInterruptMessage } from './messages.ts';
import type { Batch, Stimulus } from './recording.ts';
import type { Subject } from './subject.ts';

/** A type, not an interface: it is JSON. */
export type RecordedAnswer = { readonly value: JsonValue; readonly resolvedBy: Subject };

/** Ids that hosts mint for their own: values of people's are no such ids, and stay what they are. */
const MINTED = /\b(?:(?:evt|run|session|int|inv|call|conv)-[0-9A-Za-z]{27}|eff-[0-9a-f]{64})\b/g;

/** Two questions are the same where this is. */
export function questionText({
  kind = null,
  data = null,
  resumeSchema = null,
}: Readonly<Record<string, JsonValue>>): string {
  const text = canonicalJson(withoutClocks({ kind, data, resumeSchema }));
  const names = new Map<string, string>();
  return text.replace(MINTED, (id) => {
    const [kindOfId = ''] = id.split('-');
    const name = names.get(id) ?? `${kindOfId}-${names.size}`;
    names.set(id, name);
    return name;
  });
}

/** In their order: those that people sent, and those that a fork took from the record of its own source. */
export function answersTo(interruptId: string, batches: readonly Batch[]): RecordedAnswer[] {
  return batches.flatMap(({ stimuli, leaves }) => {
    const given = leaves?.overlay?.answer;
    const ofOverlay = given?.kind === 'message' ? answerIn(given.message, interruptId) : [];
    return [...ofOverlay, ...stimuli.flatMap((stimulus) => answersOf(stimulus, interruptId))];
  });
}

function answersOf(stimulus: Stimulus, interruptId: string): RecordedAnswer[] {
  if (stimulus.kind === 'message')
    return stimulus.update === MESSAGES['resolve-interrupt'].update
      ? answerIn(stimulus.message as Partial<ResolveInterruptMessage>, interruptId)
      : [];
  if (stimulus.kind !== 'step' || stimulus.outcome.kind !== 'completed') return [];
  const { output } = stimulus.outcome.result;
  const isTaken = isJsonObject(output) && output.interruptId === interruptId;
  return isTaken && Array.isArray(output.answers) ? (output.answers as RecordedAnswer[]) : [];
}

function answerIn(
  { interruptId: of, value, resolvedBy }: Partial<ResolveInterruptMessage>,
  interruptId: string,
): RecordedAnswer[] {
  return of === interruptId && value !== undefined && resolvedBy !== undefined
    ? [{ value, resolvedBy }]
    : [];
}
