// The answers that a question permits, each with the words that say what it does and the value that gives it
// (interrupt.md). The words are the question's own where it has some: page and terminal say what the API says.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import {
  editableOf,
  formShapeOf,
  outcomeSchemaOf,
  questionsOf,
  type FormShape,
  type OpenQuestion,
} from './question.ts';

export interface Choice {
  /** accept | reject | edit-accept | refine | ask | answers, or what a definition calls it. */
  readonly action: string;
  /** What the answer does. */
  readonly words: string;
  /** A `resumeValue` that gives this answer; texts and changed values in it are to be filled in. */
  readonly value: JsonValue;
}

type Asked = Pick<OpenQuestion, 'kind' | 'data'>;

/** Where the question itself has no words: a definition's gates. */
const GATE_WORDS: Readonly<Record<string, string>> = {
  accept: 'Accept',
  'edit-accept': 'Accept with changes',
  edit: 'Accept with changes',
  refine: 'Ask for changes',
  reject: 'Reject',
  ask: 'Ask a question back; the run goes on waiting',
};
const GATE_ACTIONS = ['accept', 'edit-accept', 'refine', 'reject'];
const EFFECT_WORDS: Readonly<Record<string, string>> = {
  accept: 'Perform it now',
  reject: 'Do not perform it',
  'edit-accept': 'It happened',
};
const CALL_WORDS: Readonly<Record<string, string>> = {
  accept: 'Call it once',
  reject: 'Do not call it',
};
const DECISION_WORDS: Readonly<Record<string, string>> = {
  accept: 'Accept the decision',
  'edit-accept': 'Change it first',
  answers: 'Tell the agent more',
  reject: 'Reject',
};
const TALK_WORDS: Readonly<Record<string, string>> = {
  say: 'Say something; the conversation goes on',
  close: 'Close the conversation; the run goes on',
};
const USUAL: Readonly<Record<FormShape, Readonly<Record<string, string>>>> = {
  approval: GATE_WORDS,
  'low-confidence': DECISION_WORDS,
  clarification: { answers: 'Send the answer' },
  talk: TALK_WORDS,
  effect: EFFECT_WORDS,
  'tool-call': CALL_WORDS,
  none: {},
};

/** In the order of the question. Empty for a wait that no person answers. */
export function choicesOf(interrupt: Asked): readonly Choice[] {
  return actionsOf(interrupt).map((action) => ({
    action,
    words: wordsOf(interrupt, action),
    value: valueOf(interrupt, action),
  }));
}

function actionsOf({ kind, data }: Asked): readonly string[] {
  const given = Array.isArray(data.actions)
    ? data.actions.filter((action): action is string => typeof action === 'string')
    : undefined;
  switch (formShapeOf({ kind, data })) {
    case 'none':
      return [];
    case 'clarification':
      return ['answers'];
    case 'talk':
      return Object.keys(TALK_WORDS);
    case 'low-confidence':
      return Object.keys(DECISION_WORDS);
    case 'effect':
      return given ?? Object.keys(EFFECT_WORDS);
    case 'tool-call':
      return given ?? Object.keys(CALL_WORDS);
    case 'approval':
      return given ?? GATE_ACTIONS;
  }
}

/** What an answer does: the question's own words, else the usual ones. */
export function wordsOf({ kind, data }: Asked, action: string): string {
  const own = isJsonObject(data.actionWords) ? data.actionWords[action] : undefined;
  if (typeof own === 'string') return own;
  return USUAL[formShapeOf({ kind, data })][action] ?? action;
}

function valueOf(interrupt: Asked, action: string): JsonValue {
  const isDecision = formShapeOf(interrupt) === 'low-confidence';
  switch (action) {
    case 'answers':
      return { answers: exampleAnswers(interrupt.data) };
    case 'edit-accept':
    case 'edit':
      return { action, [isDecision ? 'decision' : 'editedArtifactData']: editableOf(interrupt) };
    case 'refine':
      return { action, refineFeedback: { scope: 'whole', text: '…' } };
    case 'ask':
      return { action, feedback: '…' };
    case 'say':
      return { operation: 'exchange', turn: { content: '…' } };
    case 'close':
      return closingExample(interrupt.data);
    default:
      return { action };
  }
}

function closingExample(data: JsonObject): JsonObject {
  const schema = outcomeSchemaOf(data);
  return { operation: 'close', ...(schema ? { outcome: exampleOf(schema) } : {}) };
}

/** One value per question that its schema's type and enum permit. */
function exampleAnswers(data: JsonObject): JsonObject {
  return Object.fromEntries(questionsOf(data).map(({ id, schema }) => [id, exampleOf(schema)]));
}

function exampleOf(schema: JsonObject | undefined): JsonValue {
  if (Array.isArray(schema?.enum)) return schema.enum[0] ?? null;
  switch (schema?.type) {
    case 'number':
    case 'integer':
      return 0;
    case 'boolean':
      return true;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return '…';
  }
}

function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
