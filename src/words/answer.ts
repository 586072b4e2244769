// From what a person filled in, in a form of the page or at the command line, to the value that resumes an interrupt
// (interrupt.md, architecture §9). Pure: the host checks the result against the interrupt's frozen schema like any other
// answer.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import { heardIn } from '../rules/votes.ts';
import { choiceOf, fillInOf } from './choices.ts';
import {
  changeTo,
  editableOf,
  FIELD_CHARACTERS,
  formShapeOf,
  outcomeSchemaOf,
  questionsOf,
  type OpenQuestion,
} from './question.ts';
import { asField, asSent, readNumber, readTypedJson, type ReadTyped } from './typed.ts';

/** Fields of a form as a body parser gives them. What is not one text is refused. */
export type AnswerForm = Readonly<Record<string, unknown>>;

export type ResumeValue = ReadTyped<JsonValue>;

const ANSWER = 'answer.';
const FIELD = 'field.';

/**
 * The resume value that a form stands for. Fields: `action` (one of those that the question offers),
 * `reason`, which goes with every answer, `editedDecision` (JSON text) or `field.<member>` for each member of a flat value,
 * `answer.<questionId>`.
 */
export function resumeValueOf(
  form: AnswerForm,
  interrupt: Pick<OpenQuestion, 'kind' | 'data'>,
): ResumeValue {
  const bad = Object.entries(form).find(
    ([, value]) => typeof value !== 'string' || value.length > FIELD_CHARACTERS,
  );
  if (bad) return no(`The field "${bad[0]}" is missing, repeated or too long.`);
  const fields = form as Readonly<Record<string, string>>;
  const shape = formShapeOf(interrupt);
  if (shape === 'none') return no('This wait is not answered by a person.');
  if (shape === 'clarification') return answersOf(fields, interrupt.data);
  const choice = choiceOf(interrupt, fields.action ?? '');
  if (!choice) return no('Choose one of the answers.');
  const { action } = choice;
  const text = fields.reason?.trim();
  switch (fillInOf(interrupt, choice)) {
    case 'answers':
      return answersOf(fields, interrupt.data);
    case 'change':
      return edited(fields, interrupt);
    case 'refinement':
      if (!text) return no('Say what should change.');
      return yes({ action, refineFeedback: { scope: 'whole', text } });
    case 'question':
      if (!text) return no('Say what you want to know.');
      return yes({ action, feedback: text });
    case 'turn':
      return turnOf(fields, interrupt.data);
    case 'outcome':
      return closingOf(fields, interrupt.data);
    case 'reason':
    case 'nothing':
      // A decision in doubt has it by this name, with a no alone.
      return shape === 'low-confidence' && action === 'reject' && text
        ? yes({ action, reason: text })
        : yes({ action, ...feedbackOf(fields) });
  }
}

/** How much had been heard of a question when its form was shown. Without a word of that: as much as now. */
export function heardBefore(form: AnswerForm, { data }: Pick<OpenQuestion, 'data'>): number {
  const { heard } = form;
  return typeof heard === 'string' && /^\d{1,9}$/.test(heard) ? Number(heard) : heardIn(data);
}

/** A turn names the one before it that its sender saw: the same words said again are another turn. */
function turnOf(fields: Readonly<Record<string, string>>, data: JsonObject): ResumeValue {
  const text = fields.reason?.trim();
  if (!text) return no('Say something.');
  // A form says what was shown with it: by now its first click may have been taken.
  const seen = fields.turnIndex;
  const turnIndex = seen !== undefined && /^\d{1,9}$/.test(seen) ? Number(seen) : data.turnIndex;
  return yes({
    operation: 'exchange',
    turn: { content: text, ...(typeof turnIndex === 'number' ? { turnIndex } : {}) },
  });
}

function closingOf(fields: Readonly<Record<string, string>>, data: JsonObject): ResumeValue {
  const text = fields.reason?.trim();
  const schema = outcomeSchemaOf(data);
  const last: JsonObject = text ? { turn: { content: text } } : {};
  const given = fields.editedDecision?.trim();
  if (!schema)
    return given
      ? no('This conversation asks for no outcome.')
      : yes({ operation: 'close', ...last });
  const outcome = given ? typed(given, schema) : undefined;
  if (!outcome) return no('The outcome is missing.');
  if (!outcome.ok) return no(`The outcome ${outcome.message}.`);
  return yes({ operation: 'close', outcome: outcome.value, ...last });
}

function yes(value: JsonValue): ResumeValue {
  return { ok: true, value };
}

function no(message: string): ResumeValue {
  return { ok: false, message };
}

function feedbackOf({ reason = '' }: Readonly<Record<string, string>>): JsonObject {
  const text = reason.trim();
  return text === '' ? {} : { feedback: text };
}

function edited(
  fields: Readonly<Record<string, string>>,
  interrupt: Pick<OpenQuestion, 'kind' | 'data'>,
): ResumeValue {
  const value = editedValue(fields, interrupt);
  if (!value.ok) return value;
  return yes({ ...changeTo(interrupt, value.value), ...feedbackOf(fields) });
}

function editedValue(
  fields: Readonly<Record<string, string>>,
  interrupt: Pick<OpenQuestion, 'kind' | 'data'>,
): ResumeValue {
  const original = editableOf(interrupt);
  const named = Object.keys(fields).some((name) => name.startsWith(FIELD));
  if (named && isFlat(original)) return editedMembers(fields, original);
  const read = readPart(fields.editedDecision ?? '');
  return read.ok ? read : no(`The changed value ${read.message}. Nothing was sent.`);
}

/** Its members have a field each. */
function isFlat(value: JsonValue): value is Record<string, string | number | boolean | null> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((part) => typeof part !== 'object' || part === null);
}

/** Each member keeps the type that it had, and what nobody changed is as it was. */
function editedMembers(
  fields: Readonly<Record<string, string>>,
  original: Readonly<Record<string, string | number | boolean | null>>,
): ResumeValue {
  const parts: [string, JsonValue][] = [];
  for (const [name, before] of Object.entries(original)) {
    const text = fields[`${FIELD}${name}`];
    if (text === undefined || asField(text) === asField(String(before ?? ''))) {
      parts.push([name, before]);
    } else if (typeof before === 'number') {
      const number = readNumber(text);
      if (!number.ok) return no(`"${name}" ${number.message}.`);
      parts.push([name, number.value]);
    } else if (typeof before === 'boolean') {
      if (text !== 'true' && text !== 'false') return no(`"${name}" must be true or false.`);
      parts.push([name, text === 'true']);
    } else {
      parts.push([name, asField(text)]);
    }
  }
  // Not by assignment: it would lose a member named `__proto__`.
  return yes(Object.fromEntries(parts));
}

/** A browser sends a name with its line breaks as CR and LF. */
function fieldIn(fields: Readonly<Record<string, string>>, name: string): string | undefined {
  return fields[name] ?? fields[asSent(name)];
}

/** What was typed, or the option that was chosen, as the question has it: its text has passed through a form. */
function chosen(text: string, schema: JsonObject | undefined): ResumeValue {
  const options: JsonValue[] = Array.isArray(schema?.enum) ? schema.enum : [];
  const answer = typed(text, schema);
  const isText = !answer.ok || typeof answer.value === 'string';
  const option =
    options.find((each) => each === (isText ? text : answer.value)) ??
    options.find((each) => typeof each !== 'object' && inForm(String(each)) === inForm(text));
  return option === undefined ? answer : yes(option);
}

function inForm(text: string): string {
  return asField(text).trim();
}

function answersOf(fields: Readonly<Record<string, string>>, data: JsonObject): ResumeValue {
  const answers: [string, JsonValue][] = [];
  for (const { id, question, schema } of questionsOf(data)) {
    const text = fieldIn(fields, `${ANSWER}${id}`) ?? '';
    if (text.trim() === '') return no(`Please answer: ${question}`);
    const answer = chosen(text, schema);
    if (!answer.ok) return no(`The answer to "${question}" ${answer.message}.`);
    answers.push([id, answer.value]);
  }
  return yes({ answers: Object.fromEntries(answers), ...feedbackOf(fields) });
}

/** Text as the question's schema types it: what is meant as text stays as it is. A message has no subject and no full stop. */
function typed(text: string, schema: JsonObject | undefined): ResumeValue {
  switch (schema?.type) {
    case 'number':
    case 'integer':
      return readNumber(text);
    case 'boolean':
      if (!/^\s*(?:true|false)\s*$/.test(text)) return no('must be true or false');
      return yes(text.trim() === 'true');
    case 'object':
    case 'array':
      return readPart(text);
    default:
      return yes(text);
  }
}

/** JSON of a person, without the words of a parser. */
function readPart(text: string): ResumeValue {
  const read = readTypedJson(text);
  return read.ok || read.isJson ? read : no('is not valid JSON');
}
