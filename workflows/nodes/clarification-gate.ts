// core.clarificationGate: a human answers questions (interrupt.md; status waiting-input). Answers come as an object
// or as a list of {id, answer}; they go on as an object keyed by question id.
import { answersSchema, type Question } from '../../src/rules/answer-schemas.ts';
import type { NodeKind } from '../context.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { answersOf, interrupt } from '../interrupts.ts';

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
