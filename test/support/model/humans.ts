// Humans of a generated case: they answer what the log shows, late, twice, under a wrong schema, or never.
import { subjectOf } from '../../../src/rules/subject.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../../src/rules/json.ts';
import { digestOf } from '../../../src/rules/ids.ts';
import type { ResolveInterruptMessage } from '../../../src/rules/messages.ts';
import { drawsOf, type Draws } from './draws.ts';

/** As the log shows a question: `node.suspended` and `interrupt.requested` behind it. */
export interface Question {
  readonly nodeId: string;
  readonly interruptId: string;
  readonly kind: string;
  readonly resumeSchema: JsonObject;
}

export interface Answering {
  readonly afterMs: number;
  readonly updateId: string;
  readonly message: ResolveInterruptMessage;
}

/** The question is about an orchestrator's decision, which has a shape. */
function isTurn(resumeSchema: JsonObject): boolean {
  return JSON.stringify(resumeSchema).includes('next-worker');
}

function valueOf({ kind, resumeSchema }: Question, draws: Draws, voter: string): JsonValue {
  if (kind === 'clarification') return { answers: { q: 'this one' } };
  if (kind === 'low-confidence')
    return draws.pick<JsonValue>([
      { action: 'accept' },
      { action: 'reject', reason: 'no' },
      { action: 'edit-accept', decision: isTurn(resumeSchema) ? { kind: 'terminate' } : 1 },
      { answers: { q: 'think again' } },
    ]);
  const { action } = resumeSchema.properties as { action: { enum: [string, ...string[]] } };
  const taken = draws.chance(0.8) ? 'accept' : draws.pick(action.enum);
  return { action: action.enum.includes(taken) ? taken : action.enum[0], voter };
}

/** Everything that anybody will say to the question. */
export function answersTo(seed: string, question: Question): Answering[] {
  const { nodeId, interruptId, resumeSchema } = question;
  const draws = drawsOf(seed, interruptId);
  if (draws.chance(0.1)) return [];
  const isQuorum = question.kind === 'approval';
  const answers: Answering[] = [];
  // Quorums need several voices; questions back (`ask`) leave the gate open for the next one.
  for (let voice = 0; voice < (isQuorum ? 4 : 1); voice++) {
    const message: ResolveInterruptMessage = {
      kind: 'resolve-interrupt',
      nodeId,
      interruptId,
      value: valueOf(question, draws, `voter-${voice}`),
      schemaDigest: draws.chance(0.05) ? 'sha256:other' : digestOf(canonicalJson(resumeSchema)),
      bodyDigest: 'model',
      resolvedBy: subjectOf('session', 'default', `voter-${voice}`),
    };
    const answering = {
      afterMs: draws.int(0, 6_000),
      updateId: `${interruptId}-${voice}`,
      message,
    };
    answers.push(answering);
    // Once more under its id, as a client does that heard nothing.
    if (draws.chance(0.2))
      answers.push({ ...answering, afterMs: answering.afterMs + draws.int(0, 500) });
  }
  return answers;
}

/** An answer to a question that nobody asked. */
export function strayAnswer(nodeId: string): ResolveInterruptMessage {
  return {
    kind: 'resolve-interrupt',
    nodeId,
    interruptId: 'int-nobody-asked',
    value: { action: 'accept' },
    schemaDigest: 'sha256:other',
    bodyDigest: 'model',
    resolvedBy: subjectOf('session', 'default', 'stranger'),
  };
}
