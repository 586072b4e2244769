// The envelope `clarification.request` (capabilities.md): instead of deciding, a model may ask a human. It comes as the
// output itself or in the place of the decision, and is untrusted like any output: counted, bounded, and words alone.
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { CLARIFICATION_ENVELOPE } from '../src/rules/decision-text.ts';
import type { AskedQuestion } from './contract.ts';

/** Questions of one envelope. */
const MAX_QUESTIONS = 10;
// Lengths as a reader sees them, in UTF-16 units; what is recorded is bounded by its bytes (infer-turn.ts).
const MAX_ID_LENGTH = 64;
const MAX_QUESTION_LENGTH = 2_000;

/** Shape of the envelope, for the provider. */
export const CLARIFICATION_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    type: { const: CLARIFICATION_ENVELOPE },
    payload: {
      type: 'object',
      properties: {
        questions: {
          type: 'array',
          minItems: 1,
          maxItems: MAX_QUESTIONS,
          items: {
            type: 'object',
            properties: { id: { type: 'string' }, question: { type: 'string' } },
            required: ['id', 'question'],
            additionalProperties: false,
          },
        },
      },
      required: ['questions'],
      additionalProperties: false,
    },
  },
  required: ['type', 'payload'],
  additionalProperties: false,
};

export type Asked =
  | {
      readonly ok: true;
      readonly kind: 'clarification';
      readonly questions: readonly AskedQuestion[];
    }
  | { readonly ok: false; readonly message: string };

/** The questions of an output; undefined when it is no such envelope. */
export function askedOf(output: JsonObject): Asked | undefined {
  const envelope = [output, output.decision].find(
    (value): value is JsonObject => isJsonObject(value) && value.type === CLARIFICATION_ENVELOPE,
  );
  if (!envelope) return undefined;
  const list = isJsonObject(envelope.payload) ? envelope.payload.questions : undefined;
  const questions = Array.isArray(list) ? list.filter(isQuestion) : [];
  const ids = new Set(questions.map(({ id }) => id));
  const isWhole =
    Array.isArray(list) &&
    questions.length === list.length &&
    ids.size === list.length &&
    list.length > 0 &&
    list.length <= MAX_QUESTIONS;
  if (!isWhole) {
    const message = `A ${CLARIFICATION_ENVELOPE} needs payload.questions: 1 to ${MAX_QUESTIONS} of {"id", "question"}, each id once.`;
    return { ok: false, message };
  }
  // Nothing else of a question goes on: a schema that a model wrote is not compiled.
  return {
    ok: true,
    kind: 'clarification',
    questions: questions.map(({ id, question }) => ({ id, question })),
  };
}

function isQuestion(value: JsonValue): value is { id: string; question: string } {
  if (!isJsonObject(value)) return false;
  const { id, question } = value;
  if (!isText(id, MAX_ID_LENGTH) || !isText(question, MAX_QUESTION_LENGTH)) return false;
  // Its answer is asked for by a schema, which cannot name it.
  return !Object.hasOwn(Object.prototype, id);
}

function isText(value: JsonValue | undefined, length: number): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= length;
}
