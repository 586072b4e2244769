// core.clarificationGate: a human answers questions (interrupt.md; status waiting-input). Answers come as an object
// or as a list of {id, answer}; they go on as an object keyed by question id.
import { NOTES } from '../approvals.ts';
import type { NodeKind } from '../context.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { answersOf, interrupt } from '../interrupts.ts';

interface Question {
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
