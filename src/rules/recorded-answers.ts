// What people answered in a run's record, for a fork that asks the same (replay.md §Modes). The same question stands at the
// same place and asks the same, byte for byte: a person's answer counts for nothing that the person did not see.
import { isJsonObject, canonicalJson, type JsonValue } from './json.ts';
import { MESSAGES, type ResolveInterruptMessage } from './messages.ts';
import type { Batch, Stimulus } from './recording.ts';
import type { Subject } from './subject.ts';

/** A type, not an interface: it is JSON. */
export type RecordedAnswer = { readonly value: JsonValue; readonly resolvedBy: Subject };

/**
 * Two questions are the same where this is: word for word, whatever the values look like. A branch asks under the ids that
 * its source asked under, but for one: an effect in doubt has another id in the ledger of each run.
 */
export function questionText({
  kind = null,
  data = null,
  resumeSchema = null,
}: Readonly<Record<string, JsonValue>>): string {
  return canonicalJson({ kind, data: withoutEffectId(data), resumeSchema });
}

/** No definition names this type: the host asks so by itself, and what the effect is stands beside its id. */
function withoutEffectId(data: JsonValue): JsonValue {
  if (!isJsonObject(data) || data.artifactType !== 'effect-in-doubt') return data;
  return Object.fromEntries(Object.entries(data).filter(([name]) => name !== 'artifactId'));
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
