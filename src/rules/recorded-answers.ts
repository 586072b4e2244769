// What people answered in a run's record, for a fork that asks the same (replay.md §Modes). The same question stands at the
// same place and asks the same, byte for byte: a person's answer counts for nothing that the person did not see.
import { answersHeard, type RecordedAnswer } from './heard.ts';
import { isJsonObject, canonicalJson, type JsonValue } from './json.ts';
import type { Batch } from './recording.ts';

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
  return answersHeard(batches)
    .filter((heard) => heard.interruptId === interruptId)
    .map(({ value, resolvedBy }) => ({ value, resolvedBy }));
}
