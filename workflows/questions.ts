// What a question to a human says (architecture §5: "a question to a human says what `accept` does"): its title, why it
// is asked, and what each answer does. One table per question: page, terminal and API show these words.
import type { ActionEffect, OfferedAction } from '../src/rules/gate-actions.ts';
import type { JsonObject } from '../src/rules/json.ts';

/** The answers of a question: what each is called, and what it does to the run. */
type Choices = readonly OfferedAction[];

const choice = (action: string, effect: ActionEffect, label: string): OfferedAction => ({
  action,
  label,
  effect,
});

const HAPPENED = choice(
  'edit-accept',
  'continue',
  'It happened: record this outcome and perform nothing',
);
const DOUBT: Choices = [
  choice('accept', 'continue', 'Perform it now'),
  choice('reject', 'continue', 'Do not perform it, and tell the agent so'),
  HAPPENED,
];

/** Of a call that was not made, where an earlier one stands in its way. That one's outcome is not this one's. */
const NEW_CALL: Choices = [
  choice('accept', 'continue', 'Perform this call, whatever the earlier one did'),
  choice('reject', 'continue', 'Do not perform this call, and tell the agent so'),
];

/** Of a call that is refused as things stand: there is nothing to perform it with. */
const WITHOUT = choice('reject', 'continue', 'Go on without it, and tell the agent so');
const REFUSED_DOUBT: Choices = [WITHOUT, HAPPENED];
/** The same answers, in other words, of a call that a rehearsal does not perform. */
const REHEARSED: Choices = REFUSED_DOUBT.map((one) =>
  one === HAPPENED ? { ...one, label: 'Go on as if this had come of it' } : one,
);

const APPROVAL: Choices = [
  choice('accept', 'continue', 'Call it once, with these arguments'),
  choice('reject', 'continue', 'Do not call it, and tell the agent so'),
];

const DECISION: Choices = [
  choice('accept', 'continue', 'Accept the decision and go on with it'),
  choice('edit-accept', 'continue', 'Change it first, and go on with that'),
  choice('answers', 'ask-again', 'Answer the agent, and let it decide again'),
  choice('reject', 'end', 'Reject the decision: the node fails'),
];

const TURN: Choices = [
  choice('accept', 'continue', 'Do what the orchestrator says'),
  choice('reject', 'end', 'Do not: the node fails'),
];

const namesOf = (choices: Choices): readonly string[] => choices.map(({ action }) => action);
export const TURN_ACTIONS = namesOf(TURN);
export const DOUBT_ACTIONS = namesOf(DOUBT);
export const NEW_CALL_ACTIONS = namesOf(NEW_CALL);
export const REFUSED_DOUBT_ACTIONS = namesOf(REFUSED_DOUBT);
export const APPROVAL_ACTIONS = namesOf(APPROVAL);

type Question = { title: string; description: string; choices: OfferedAction[] };

/** `choices` label the answers; the description spells them for who reads nothing else. */
function question(title: string, why: string, choices: Choices): Question {
  const spelled = choices.map(({ action, label }) => `${action}: ${label}.`);
  return { title, description: [why, ...spelled].join(' '), choices: [...choices] };
}

function approval(title: string, why: string, choices: Choices): JsonObject {
  return { ...question(title, why, choices), actions: [...namesOf(choices)] };
}

/** An effect that may or may not have happened. */
export function doubtQuestion(toolId: string, reason: string): JsonObject {
  return approval(`Perform ${toolId} again?`, reason, DOUBT);
}

/** A call that was not made: an earlier one may have happened, or has (`reason`). */
export function newCallQuestion(toolId: string, reason: string): JsonObject {
  return approval(`Perform ${toolId}?`, reason, NEW_CALL);
}

/** An effect that may have happened, of a call that is not performed any more: only what came of it is asked. */
export function refusedDoubtQuestion(toolId: string, reason: string): JsonObject {
  return approval(`What came of ${toolId}?`, reason, REFUSED_DOUBT);
}

/** A call that would change something outside, in a rehearsal: what is to have come of it is asked. */
export function rehearsedQuestion(toolId: string, reason: string): JsonObject {
  return approval(`What would ${toolId} give?`, reason, REHEARSED);
}

/** A call that the operator's policy asks a human about. */
export function approvalQuestion(agentId: string, toolId: string): JsonObject {
  const why = "This tool is called only with a human's word.";
  return approval(`May ${agentId} call ${toolId}?`, why, APPROVAL);
}

/** A decision below the threshold (RFC 0002 §F). */
export function decisionQuestion(agentId: string): Question {
  const why = `${agentId} is less sure of this decision than required.`;
  return question(`Go on with the decision of ${agentId}?`, why, DECISION);
}

/** The same as a clarification (RFC 0002 §F action 2), for clients that answer `{answers}`: the agent decides again. */
export function clarifyingQuestions(agentId: string): JsonObject[] {
  const question = `What should ${agentId} know? It decides again with your answer.`;
  return [{ id: 'guidance', question }];
}

/** What an orchestrator says comes next, and is not sure of (RFC 0039 §A). */
export function turnQuestion(agentId: string): JsonObject {
  const why = `${agentId} is less sure of what comes next than required.`;
  return approval(`Go on as ${agentId} says?`, why, TURN);
}
