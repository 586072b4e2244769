// What a question to a human says (architecture §5: "a question to a human says what `accept` does"): its title, why it
// is asked, and what each answer does. One table per question: page, terminal and API show these words.
import type { JsonObject } from '../src/rules/json.ts';

/** What an answer does, by its action. */
type Words = Readonly<Record<string, string>>;

const DOUBT_WORDS = {
  accept: 'Perform it now',
  reject: 'Do not perform it, and tell the agent so',
  'edit-accept': 'It happened: record this outcome and perform nothing',
} as const satisfies Words;

/** Of a call that is refused as things stand: there is nothing to perform it with. */
const REFUSED_DOUBT_WORDS = {
  reject: 'Go on without it, and tell the agent so',
  'edit-accept': DOUBT_WORDS['edit-accept'],
} as const satisfies Words;

/** The same answers of a call that a rehearsal does not perform. */
const REHEARSED_WORDS = {
  reject: REFUSED_DOUBT_WORDS.reject,
  'edit-accept': 'Go on as if this had come of it',
} as const satisfies Record<keyof typeof REFUSED_DOUBT_WORDS, string>;

const APPROVAL_WORDS = {
  accept: 'Call it once, with these arguments',
  reject: 'Do not call it, and tell the agent so',
} as const satisfies Words;

const DECISION_WORDS = {
  accept: 'Accept the decision and go on with it',
  'edit-accept': 'Change it first, and go on with that',
  answers: 'Answer the agent, and let it decide again',
  reject: 'Reject the decision: the node fails',
} as const satisfies Words;

const TURN_WORDS = {
  accept: 'Do what the orchestrator says',
  reject: 'Do not: the node fails',
} as const satisfies Words;

export const TURN_ACTIONS: readonly string[] = Object.keys(TURN_WORDS);
export const DOUBT_ACTIONS: readonly string[] = Object.keys(DOUBT_WORDS);
export const REFUSED_DOUBT_ACTIONS: readonly string[] = Object.keys(REFUSED_DOUBT_WORDS);
export const APPROVAL_ACTIONS: readonly string[] = Object.keys(APPROVAL_WORDS);

type Question = { title: string; description: string; actionWords: JsonObject };

/** `actionWords` labels the answers; the description spells them for who reads nothing else. */
function question(title: string, why: string, words: Words): Question {
  const spelled = Object.entries(words).map(([action, does]) => `${action}: ${does}.`);
  return { title, description: [why, ...spelled].join(' '), actionWords: { ...words } };
}

/** An effect that may or may not have happened. */
export function doubtQuestion(toolId: string, reason: string): JsonObject {
  return {
    ...question(`Perform ${toolId} again?`, reason, DOUBT_WORDS),
    actions: [...DOUBT_ACTIONS],
  };
}

/** An effect that may have happened, of a call that is not performed any more: only what came of it is asked. */
export function refusedDoubtQuestion(toolId: string, reason: string): JsonObject {
  return {
    ...question(`What came of ${toolId}?`, reason, REFUSED_DOUBT_WORDS),
    actions: [...REFUSED_DOUBT_ACTIONS],
  };
}

/** A call that would change something outside, in a rehearsal: what is to have come of it is asked. */
export function rehearsedQuestion(toolId: string, reason: string): JsonObject {
  return {
    ...question(`What would ${toolId} give?`, reason, REHEARSED_WORDS),
    actions: [...REFUSED_DOUBT_ACTIONS],
  };
}

/** A call that the operator's policy asks a human about. */
export function approvalQuestion(agentId: string, toolId: string): JsonObject {
  const why = "This tool is called only with a human's word.";
  return {
    ...question(`May ${agentId} call ${toolId}?`, why, APPROVAL_WORDS),
    actions: [...APPROVAL_ACTIONS],
  };
}

/** A decision below the threshold (RFC 0002 §F). */
export function decisionQuestion(agentId: string): Question {
  const why = `${agentId} is less sure of this decision than required.`;
  return question(`Go on with the decision of ${agentId}?`, why, DECISION_WORDS);
}

/** The same as a clarification (RFC 0002 §F action 2), for clients that answer `{answers}`: the agent decides again. */
export function clarifyingQuestions(agentId: string): JsonObject[] {
  const question = `What should ${agentId} know? It decides again with your answer.`;
  return [{ id: 'guidance', question }];
}

/** What an orchestrator says comes next, and is not sure of (RFC 0039 §A). */
export function turnQuestion(agentId: string): JsonObject {
  const why = `${agentId} is less sure of what comes next than required.`;
  return { ...question(`Go on as ${agentId} says?`, why, TURN_WORDS), actions: [...TURN_ACTIONS] };
}
