// core.clarificationGate: a human answers questions (interrupt.md; status waiting-input). Answers come as an object
// or as a list of {id, answer}; they go on as an object keyed by question id.
import type { NodeKind } from '../context.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { answersOf, interrupt } from '../interrupts.ts';

interface Question {
  readonly id: string;
  readonly question: string;
  readonly schema?: JsonObject;
}

/** What answers must look like: one to each question. */
export function answersSchema(questions: readonly Question[]): JsonObject {
  const properties = Object.fromEntries(
    questions.map(({ id, schema }): [string, JsonValue] => [
      id,
      // An `$id` of its own: `#` references inside the question's schema keep their root.
      schema ? { ...schema, $id: `question-${encodeURIComponent(id)}` } : {},
    ]),
  );
  const list: JsonObject = {
    type: 'array',
    items: {
      type: 'object',
      required: ['id', 'answer'],
      properties: { id: { enum: questions.map(({ id }) => id) }, answer: {} },
    },
  };
  const object: JsonObject = {
    type: 'object',
    properties,
    required: questions.map(({ id }) => id),
    additionalProperties: false,
  };
  return {
    type: 'object',
    required: ['answers'],
    properties: { answers: { anyOf: [object, list] } },
  };
}

export const clarificationGate: NodeKind = async (visit) => {
  const {
    questions = [],
    timeoutMs,
    title,
  } = visit.node.config as { questions?: Question[]; timeoutMs?: number; title?: string };
  const { value } = await interrupt(visit, {
    step: 'ask',
    kind: 'clarification',
    data: {
      questions: questions as unknown as JsonValue,
      ...(title === undefined ? {} : { title }),
    },
    resumeSchema: answersSchema(questions),
    timeoutMs,
  });
  return { kind: 'completed', outputs: { answers: answersOf(value) } };
};
