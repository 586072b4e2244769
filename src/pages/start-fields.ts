// The fields of the form that starts a run, and the way back from what was sent to the run's `inputs`
// (rest-endpoints.md §POST /v1/runs). Pure. A text becomes the JSON value that the variable's type asks for, or a fault
// at its pointer; whether the inputs are right is said by the same rules as the API's.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import { printableJson } from '../words/printable.js';
import { readNumber, readTypedJson } from '../words/typed.ts';
import type { WorkflowVariable } from '../../schemas/types.generated.ts';

export interface StartField {
  /** Name of its control in the form. */
  readonly control: string;
  /** JSON pointer of its value in the request. */
  readonly pointer: string;
  readonly label: string;
  readonly type: WorkflowVariable['type'];
  readonly required: boolean;
  readonly sensitive: boolean;
  readonly description?: string;
  readonly format?: string;
  readonly defaultValue?: JsonValue;
}

/** Fields of a form as it was sent, or as it is filled before. */
export type FormTexts = Readonly<Record<string, string>>;

export interface InputFault {
  /** JSON pointer into the request; '' is the whole. */
  readonly pointer: string;
  /** Without its subject: `is required`. */
  readonly message: string;
}

export interface SentInputs {
  readonly inputs: JsonObject;
  readonly tags: readonly string[];
  readonly faults: readonly InputFault[];
}

/** More variables than this are for the API: a form of them is nothing that a person fills in. */
export const MAX_START_FIELDS = 500;
/** Longer defaults (characters) are told and used, but not put into the field. */
export const DEFAULT_CHARACTERS = 2_000;

export const TAGS_CONTROL = 'tags';
export const TAGS_POINTER = '/tags';
const INPUT = 'input.';
const EMPTY = 'empty.';

/** One for each variable, in the definition's order. */
export function fieldsOf(variables: readonly WorkflowVariable[]): StartField[] {
  return variables.map(
    ({ name, type, required, sensitive, description, format, defaultValue }) => ({
      // As JSON writes it: a form changes line breaks and broken characters, in names too.
      control: `${INPUT}${JSON.stringify(name).slice(1, -1)}`,
      pointer: `/inputs/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      label: name,
      ...{ type, required: required ?? false, sensitive: sensitive ?? false },
      ...{ description, format, defaultValue: defaultValue as JsonValue | undefined },
    }),
  );
}

/** What an agent takes: the whole of its inputs as one JSON object. */
export const AGENT_FIELDS: readonly StartField[] = [
  {
    control: `${INPUT}`,
    pointer: '/inputs',
    label: 'inputs',
    type: 'object',
    required: false,
    sensitive: false,
    description: 'What the agent is given: each member of this JSON object is one of its inputs.',
  },
];

/** Name of the control that says what an empty field stands for: '' (not given), `text` ('') or `null`. */
export function emptyControl({ control }: StartField): string {
  return `${EMPTY}${control.slice(INPUT.length)}`;
}

/** What an empty field may stand for besides nothing. JSON fields and yes or no say it themselves. */
export function emptyMeanings({ type, required }: StartField): readonly ('text' | 'null')[] {
  if (type !== 'string' && type !== 'number') return [];
  return [...(type === 'string' ? ['text' as const] : []), ...(required ? [] : ['null' as const])];
}

/** A new form: defaults, or the values of a run that another is to be like. Sensitive values are never in it. */
export function filledForm(fields: readonly StartField[], inputs?: JsonObject): FormTexts {
  const entries = fields.flatMap((field): [string, string][] => {
    const value = field.pointer === '/inputs' ? inputs : memberOf(inputs, field);
    if (field.sensitive || value === undefined || isLongDefault(field, value)) return [];
    // What the empty field stands for anyhow.
    if ((value === '' || value === null) && value === field.defaultValue) return [];
    if (value === '') return [[emptyControl(field), 'text']];
    if (value === null && emptyMeanings(field).includes('null'))
      return [[emptyControl(field), 'null']];
    return [[field.control, textOf(value)]];
  });
  return Object.fromEntries(entries);
}

function memberOf(inputs: JsonObject | undefined, field: StartField): JsonValue | undefined {
  if (inputs === undefined) return field.defaultValue;
  return Object.hasOwn(inputs, field.label) ? inputs[field.label] : undefined;
}

function isLongDefault({ defaultValue }: StartField, value: JsonValue): boolean {
  if (defaultValue === undefined || textOf(defaultValue).length <= DEFAULT_CHARACTERS) return false;
  return textOf(value) === textOf(defaultValue);
}

/** A value as the text of its field. */
export function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : printableJson(value, 2);
}

/** What the form says; a field with a fault gives no input. */
export function sentInputs(fields: readonly StartField[], form: FormTexts): SentInputs {
  const faults: InputFault[] = [];
  const given: [string, JsonValue][] = [];
  for (const field of fields) {
    const read = readField(field, form);
    if (read.kind === 'fault') faults.push({ pointer: field.pointer, message: read.message });
    if (read.kind === 'given') given.push([field.label, read.value]);
  }
  const [whole] = fields === AGENT_FIELDS ? given : [];
  const tags = (form[TAGS_CONTROL] ?? '').split(',').map((tag) => tag.trim());
  return {
    // A name such as __proto__ becomes a plain member.
    inputs: whole ? (whole[1] as JsonObject) : Object.fromEntries(given),
    tags: tags.filter((tag) => tag !== ''),
    faults,
  };
}

export type ReadField =
  | { readonly kind: 'given'; readonly value: JsonValue }
  | { readonly kind: 'absent' }
  | { readonly kind: 'fault'; readonly message: string };

function readField(field: StartField, form: FormTexts): ReadField {
  // A browser sends each line break as CR and LF.
  const text = (form[field.control] ?? '').replaceAll('\r\n', '\n');
  if (field.type === 'string' ? text === '' : text.trim() === '') {
    const meaning = form[emptyControl(field)];
    if (!emptyMeanings(field).some((known) => known === meaning)) return { kind: 'absent' };
    return { kind: 'given', value: meaning === 'null' ? null : '' };
  }
  switch (field.type) {
    case 'string':
      return { kind: 'given', value: text };
    case 'number':
      return numberOf(text);
    case 'boolean':
      return booleanOf(text);
    case 'object':
    case 'array':
      return jsonOf(text);
  }
}

function numberOf(text: string): ReadField {
  const read = readNumber(text);
  return read.ok ? { kind: 'given', value: read.value } : fault(read.message);
}

function booleanOf(text: string): ReadField {
  const values: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null };
  if (!Object.hasOwn(values, text)) return fault('must be yes or no');
  return { kind: 'given', value: values[text] ?? null };
}

/** No words of the parser: they repeat what was typed. */
export function jsonOf(text: string): ReadField {
  const read = readTypedJson(text);
  if (read.ok) return { kind: 'given', value: read.value };
  if (read.isJson) return fault(read.message);
  return fault(
    'is not valid JSON: names and texts stand in double quotes, and no comma stands after the last part',
  );
}

function fault(message: string): ReadField {
  return { kind: 'fault', message };
}
