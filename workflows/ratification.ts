// A decision that a human looks at before it stands (RFC 0002 §F; interrupt.md low-confidence): what is asked, what may
// be answered, and what an answer makes of it.
import { NOTES } from '../src/rules/answer-schemas.ts';
import { noOf, reasonOf } from '../src/rules/gate-actions.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { decisionSchema, isDecision } from '../src/rules/orchestrator.ts';
import { actionSchema } from './approvals.ts';
import { nodeFailure, type Visit } from './context.ts';
import { answersOf, interrupt } from './interrupts.ts';
import { clarifyingQuestions, decisionQuestion } from './questions.ts';

export interface Doubted {
  readonly step: string;
  readonly agentId: string;
  readonly threshold: number;
  readonly decision: JsonValue;
  readonly confidence: number | undefined;
  /** What a changed decision must be. */
  readonly returnSchema?: JsonObject;
  /** It says what comes next in the run: another one may be given by itself, as orchestrators give theirs. */
  readonly orchestrates?: boolean;
  /** Key of what asks in the agent's place. */
  readonly because?: string;
}

/** Key of the fact that somebody answered, and what of it: the ratified decision, or answers to go on with. */
type Ratified = { readonly key: string } & (
  { readonly decision: JsonValue } | { readonly answers: JsonObject }
);

/** Waits for the human. Throws the node failures escalation_rejected, and validation_error of a change without one. */
export async function ratified(visit: Visit, doubted: Doubted): Promise<Ratified> {
  const { step, agentId, threshold, decision, confidence, returnSchema, because } = doubted;
  const orchestrates = doubted.orchestrates === true;
  const facts = { agentId, threshold, observed: confidence ?? 0 };
  const { value, key } = await interrupt(visit, {
    step,
    kind: 'low-confidence',
    data: {
      ...decisionQuestion(agentId),
      ...facts,
      decision,
      questions: clarifyingQuestions(agentId),
    },
    resumeSchema: ratificationSchema(
      returnSchema,
      [ANSWER_LIST],
      orchestrates ? PLAIN_DECISION : undefined,
    ),
    because,
    timeoutMs: visit.node.config.escalationTimeoutMs as number | undefined,
    suspended: { reason: 'low-confidence', ...facts },
  });
  const answer = isJsonObject(value) ? value : {};
  switch (answer.action) {
    case 'accept':
      return { key, decision };
    case 'edit-accept':
      if (answer.decision === undefined)
        throw nodeFailure(
          'validation_error',
          'The answer changes the decision, but contains none.',
        );
      return { key, decision: answer.decision };
    case undefined:
      return orchestrates && isDecision(value)
        ? { key, decision: value }
        : { key, answers: answersOf(value) };
    default:
      throw nodeFailure(
        'escalation_rejected',
        noOf('A human rejected the decision', reasonOf(answer)),
      );
  }
}

/** An orchestrator's decision that is given by itself: held to what a changed one is held to (`ratificationSchema`). */
export const PLAIN_DECISION: JsonObject = {
  allOf: [decisionSchema(), { $ref: '#/then/properties/decision' }],
};

/** The other form of answers (interrupt.md clarification); an id comes once (`faultOf` in src/runs/answer.ts). */
export const ANSWER_LIST: JsonObject = {
  type: 'object',
  required: ['answers'],
  properties: {
    answers: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['id', 'answer'],
        properties: { id: { type: 'string' }, answer: {} },
      },
    },
    ...NOTES,
  },
  additionalProperties: false,
};

/**
 * What a human may answer: an action, or without one what the agent decides again with. `decision` of an edit is held to the
 * agent's return schema, which keeps its own root for `#` references by an `$id`. `plain`: what a decision that is given by
 * itself must match, where one may be.
 */
export function ratificationSchema(
  returnSchema: JsonObject | undefined,
  more: readonly JsonObject[] = [],
  plain?: JsonObject,
): JsonObject {
  const schema = returnSchema ? { ...returnSchema, $id: 'decision' } : {};
  const answers: JsonObject = {
    type: 'object',
    required: ['answers'],
    properties: { answers: { type: 'object' }, ...NOTES },
    additionalProperties: false,
  };
  const others: JsonObject = { anyOf: [answers, ...more] };
  // The dialect counts at the root alone.
  const { $schema } = returnSchema ?? {};
  const dialect: JsonObject = $schema === undefined ? {} : { $schema };
  return {
    ...dialect,
    if: { type: 'object', required: ['action'] },
    then: actionSchema(
      ['accept', 'reject', 'edit-accept'],
      [
        { action: 'reject', name: 'reason', schema: { type: 'string', maxLength: 8192 } },
        { action: 'edit-accept', name: 'decision', schema, isRequired: true },
      ],
    ),
    // Told apart by its kind: what is wrong with it has a place of its own.
    else: plain
      ? { if: { type: 'object', required: ['kind'] }, then: plain, else: others }
      : others,
  };
}
