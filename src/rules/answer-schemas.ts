// What answers to questions of a definition's own must look like (interrupt.md clarification; RFC 0005): its schemas within
// one of this host's, which is frozen with the question. Workflow code asks by it; the loader refuses what could not be asked.
import type { JsonObject, JsonValue } from './json.ts';

/** What every answer may say beside its action, or beside its answers (interrupt.md §approval). */
export const NOTES: JsonObject = {
  feedback: { type: 'string', maxLength: 8192 },
  comment: { type: 'string', maxLength: 8192 },
  // Who answers is known by the credential; what a client says of it is kept as it is.
  decidedBy: { type: 'string', maxLength: 256 },
  decidedAt: { type: ['string', 'number'], maxLength: 64 },
};

export interface Question {
  readonly id: string;
  readonly question: string;
  readonly schema?: JsonObject;
}

/** What answers must look like: one to each question, by the question's schema, in both forms. */
export function answersSchema(questions: readonly Question[]): JsonObject {
  const ids = questions.map(({ id }) => id);
  const answers = questions.map(({ schema }, at): JsonObject =>
    schema ? { $ref: `#/$defs/question-${at}` } : {},
  );
  const object: JsonObject = {
    type: 'object',
    properties: Object.fromEntries(ids.map((id, at) => [id, answers[at] ?? {}])),
    required: ids,
    additionalProperties: false,
  };
  const entries = ids.map((id, at) => ({
    type: 'object',
    required: ['id', 'answer'],
    properties: { id: { const: id }, answer: answers[at] ?? {} },
    additionalProperties: false,
  }));
  // So many entries, and one of each id: no id twice.
  const list: JsonObject = {
    ...{ type: 'array', minItems: ids.length, maxItems: ids.length },
    items: { anyOf: entries },
    allOf: ids.map((id) => ({ contains: { properties: { id: { const: id } } } })),
  };
  return {
    type: 'object',
    required: ['answers'],
    properties: { answers: { anyOf: [object, list] }, ...NOTES },
    additionalProperties: false,
    $defs: schemasOf(questions),
  };
}

/** The schemas of the questions, each once; with an `$id` of its own, `#` references inside it keep their root. */
function schemasOf(questions: readonly Question[]): JsonObject {
  return Object.fromEntries(
    questions.flatMap(({ id, schema }, at): [string, JsonValue][] =>
      schema ? [[`question-${at}`, { ...schema, $id: `question-${encodeURIComponent(id)}` }]] : [],
    ),
  );
}

/** A schema of the definition within one of ours: an `$id` of its own keeps the root of its `#` references. */
function within(schema: JsonObject | undefined, name: string): JsonObject {
  return schema ? { ...schema, $id: name } : {};
}

/** Of a conversation, by its gate. */
export interface TalkSchemas {
  readonly turnSchema?: JsonObject;
  readonly outcomeSchema?: JsonObject;
}

/** What may be said: a turn more, a close, or where an outcome has a schema the plain outcome, which closes. */
export function conversationSchema({ turnSchema, outcomeSchema }: TalkSchemas): JsonObject {
  const turn: JsonObject = {
    type: 'object',
    required: ['content'],
    properties: {
      content: within(turnSchema, 'turn'),
      messageId: { type: 'string', minLength: 1, maxLength: 256 },
      role: { const: 'user' },
      from: { const: 'user' },
    },
  };
  const exchange: JsonObject = {
    type: 'object',
    required: ['operation', 'turn'],
    properties: { operation: { const: 'exchange' }, turn },
  };
  const close: JsonObject = {
    type: 'object',
    required: ['operation', ...(outcomeSchema ? ['outcome'] : [])],
    properties: {
      operation: { const: 'close' },
      outcome: within(outcomeSchema, 'outcome'),
      turn,
    },
  };
  const plain: JsonObject = {
    allOf: [
      within(outcomeSchema, 'plain-outcome'),
      { not: { type: 'object', required: ['operation'] } },
    ],
  };
  return { anyOf: [exchange, close, ...(outcomeSchema ? [plain] : [])] };
}
