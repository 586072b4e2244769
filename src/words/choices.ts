// The answers that a question permits, each with the words that say what it does and the value that gives it
// (interrupt.md). They were frozen with the question where it was raised: page and terminal say what the API says, and
// the run goes by the same.
import { canonicalAction, offeredActions, type OfferedAction } from '../rules/gate-actions.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import {
  changeTextOf,
  changeTo,
  editableOf,
  formShapeOf,
  outcomeSchemaOf,
  questionsOf,
  type OpenQuestion,
} from './question.ts';

export type Choice = OfferedAction & {
  /**
   * A `resumeValue` that gives this answer; texts and changed values in it are to be filled in. Absent: what is proposed to be
   * changed is too large to be sent back.
   */
  readonly value?: JsonValue;
};

type Asked = Pick<OpenQuestion, 'kind' | 'data'>;

const CLARIFICATION: readonly OfferedAction[] = [
  { action: 'answers', label: 'Send the answer', effect: 'continue' },
];
const TALK: readonly OfferedAction[] = [
  { action: 'say', label: 'Say something; the conversation goes on', effect: 'ask-again' },
  { action: 'close', label: 'Close the conversation; the run goes on', effect: 'continue' },
];

/** In the order of the question. Empty for a wait that no person answers. */
export function choicesOf(interrupt: Asked): readonly Choice[] {
  return offeredBy(interrupt).map((offered) => {
    const value = valueOf(interrupt, offered);
    return { ...offered, ...(value === undefined ? {} : { value }) };
  });
}

/** The answer of this name, or of an old name of it. */
export function choiceOf(interrupt: Asked, action: string): Choice | undefined {
  return choicesOf(interrupt).find((choice) => choice.action === canonicalAction(action));
}

/** What a person fills in to give an answer. `refinement`, `question` and `turn` are texts that it needs. */
export type FillIn =
  | 'answers'
  | 'change'
  | 'refinement'
  | 'question'
  | 'turn'
  /** That of a conversation, where it asks for one, and a last word. */
  | 'outcome'
  /** A text that may be empty. */
  | 'reason'
  | 'nothing';

/** Most names mean something in certain questions alone: elsewhere the answer is its definition's, and its effect counts. */
export function fillInOf(interrupt: Asked, { action, effect }: OfferedAction): FillIn {
  const shape = formShapeOf(interrupt);
  if (shape === 'clarification') return 'answers';
  if (shape === 'talk') return action === 'say' ? 'turn' : 'outcome';
  if (shape === 'low-confidence' && action === 'answers') return 'answers';
  if (shape === 'approval' && action === 'refine') return 'refinement';
  if (action === 'edit-accept' && shape !== 'tool-call') return 'change';
  if (effect === 'ask-again') return 'question';
  // Of a call the agent hears why it was not made, and goes on.
  return effect === 'continue' && action !== 'reject' ? 'nothing' : 'reason';
}

function offeredBy({ kind, data }: Asked): readonly OfferedAction[] {
  switch (formShapeOf({ kind, data })) {
    case 'none':
      return [];
    case 'clarification':
      return CLARIFICATION;
    case 'talk':
      return TALK;
    case 'low-confidence':
    case 'effect':
    case 'tool-call':
    case 'approval':
      return Array.isArray(data.choices) ? data.choices.filter(isOffered) : named(data.actions);
  }
}

/** Of a host that freezes names alone: what this one does not know ends the step. */
function named(actions: JsonValue | undefined): readonly OfferedAction[] {
  const names = Array.isArray(actions) ? actions.filter((name) => typeof name === 'string') : [];
  const [first, ...others] = names;
  return first === undefined ? offeredActions({}) : offeredActions({ actions: [first, ...others] });
}

function isOffered(value: JsonValue): value is OfferedAction {
  return isJsonObject(value) && typeof value.action === 'string' && typeof value.label === 'string';
}

function valueOf(interrupt: Asked, offered: OfferedAction): JsonValue | undefined {
  const { action } = offered;
  switch (fillInOf(interrupt, offered)) {
    case 'answers':
      return { answers: exampleAnswers(interrupt.data) };
    case 'change':
      // No placeholder in its place: sent as it is, that would be taken for the change.
      return changeTextOf(interrupt) === undefined
        ? undefined
        : changeTo(interrupt, editableOf(interrupt));
    case 'refinement':
      return { action, refineFeedback: { scope: 'whole', text: '…' } };
    case 'question':
      return { action, feedback: '…' };
    case 'turn':
      return { operation: 'exchange', turn: { content: '…' } };
    case 'outcome':
      return closingExample(interrupt.data);
    case 'reason':
    case 'nothing':
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
